# Text processing: strings, patterns, arrays.
words=(lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor)
declare -A count
text= seed=7
for ((i = 0; i < 9000; i++)); do
    seed=$(((seed * 16807 + i) % 2147483647))
    word=${words[seed % 12]}
    ((count[$word]++))
    text+="$word "
done
for word in "${words[@]}"; do printf '%s %d\n' "$word" "${count[$word]}"; done
longest= vowels=0
for word in $text; do
    case $word in
        *[aeiou]t) word=${word%t}s ;;
        [a-d]*) word=${word^} ;;
        *or*) word=${word//o/0} ;;
    esac
    [[ $word =~ ^([a-z]+)s(.*)$ ]] && word=${BASH_REMATCH[2]}${BASH_REMATCH[1]}
    rest=${word//[^aeiou]/}
    vowels=$((vowels + ${#rest}))
    if [ "${#word}" -gt "${#longest}" ]; then longest=$word; fi
    lines+=("${word:0:5}-${#word}")
done
echo "$longest $vowels ${#lines[@]} ${lines[*]:100:8}"
printf -v all '%s,' "${lines[@]}"
IFS=, read -r -a fields <<< "$all"
echo "${#fields[@]} ${fields[1234]} ${all:5000:60}"
for ((i = 0; i < 4000; i++)); do
    IFS=- read -r a b c <<< "${lines[i]}-${lines[i * 2]}"
    [[ $a == l* && $b != "${c#e}" ]] && found+=("$b:$c")
done
echo "${#found[@]} ${found[*]:0:6}"
