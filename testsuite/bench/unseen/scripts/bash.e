# Arithmetic, recursion, functions, a game of life.
fib() {
    local n=$1 a
    if ((n < 2)); then result=$n; return; fi
    fib $((n - 1))
    a=$result
    fib $((n - 2))
    ((result += a))
}
fib 15
echo "$result"
sieve() {
    local -a composite=()
    local -i n i j primes=0
    for ((i = 2; i <= $1; i++)); do
        if ((!composite[i])); then
            primes+=1
            for ((j = i * i; j <= $1; j += i)); do composite[j]=1; done
        fi
    done
    echo "$primes"
}
sieve 12000
size=24
for ((i = 0; i < size * size; i++)); do grid[i]=$(((i * 7 + i / 3) % 5 < 2)); done
for step in {1..3}; do
    for ((y = 0; y < size; y++)); do
        up=$(((y + size - 1) % size * size)) down=$(((y + 1) % size * size)) at=$((y * size))
        for ((x = 0; x < size; x++)); do
            l=$(((x + size - 1) % size)) r=$(((x + 1) % size))
            n=$((grid[up + l] + grid[up + x] + grid[up + r] + grid[at + l] + grid[at + r] + grid[down + l]))
            n=$((n + grid[down + x] + grid[down + r]))
            new[at + x]=$((n == 3 || n == 2 && grid[at + x]))
        done
    done
    grid=("${new[@]}")
done
echo "${grid[@]}"
hanoi() { if (($1)); then hanoi $(($1 - 1)) "$2" "$4" "$3"; ((moves++)); hanoi $(($1 - 1)) "$4" "$3" "$2"; fi; }
hanoi 11 a b c
echo "$moves"
sort() {
    local -n list=$1
    local i j value
    for ((i = 1; i < ${#list[@]}; i++)); do
        value=${list[i]}
        for ((j = i - 1; j >= 0 && list[j] > value; j--)); do list[j + 1]=${list[j]}; done
        list[j + 1]=$value
    done
}
for ((i = 0, seed = 1; i < 160; i++)); do ((seed = seed * 16807 % 2147483647)); numbers+=($((seed % 1000))); done
sort numbers
echo "${numbers[@]}"
