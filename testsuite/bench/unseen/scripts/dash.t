# Text processing: strings, patterns, fields.
i=0 seed=7 text=
while [ $i -lt 15000 ]; do
    seed=$(((seed * 16807 + i) % 2147483647))
    case $((seed % 7)) in
        0) word=lorem ;;
        1) word=ipsum/dolor ;;
        2) word=sit.amet ;;
        3) word="consectetur-$i" ;;
        4) word=adipiscing ;;
        *) word=elit$((seed % 100)) ;;
    esac
    text="$text $word"
    [ ${#text} -lt 400 ] || { set -- $text; lines="$# ${1%%[-.]*} ${2#*/} ${#3}"; echo "$lines"; text=; }
    i=$((i + 1))
done
upper() {
    out= rest=$1
    while [ -n "$rest" ]; do
        tail=${rest#?}
        c=${rest%"$tail"}
        case $c in
            [aeiou]) out=$out. ;;
            [a-m]) out=$out$c$c ;;
            *) out=$c$out ;;
        esac
        rest=$tail
    done
}
for word in profile guided optimisation of sampled paths in programs that nobody tuned for; do
    for suffix in s ed ing er able ness less ful; do
        upper "$word$suffix-$word"
        printf '%s:%5d|%-12.12s|\n' "$out" ${#out} "$word"
    done
done
n=0 i=0
IFS=:
while [ $i -lt 25000 ]; do
    line=name$((i % 50)):value$i:more:of$((i * i)):things
    set -f -- $line
    n=$((n + ${#1} + ${#4}))
    [ "${2%[05]}" = "$2" ] || found="$3 $1 ${2#val}"
    [ "${4##*[13579]}" ] && n=$((n + 1))
    i=$((i + 1))
done
echo "$n $found"
