# Arithmetic, recursion, functions.
fib() {
    if [ "$1" -lt 2 ]; then result=$1; return; fi
    local n=$1 a
    fib $((n - 1))
    a=$result
    fib $((n - 2))
    result=$((a + result))
}
fib 19
echo "$result"
gcd() { a=$1 b=$2; while [ $b -ne 0 ]; do c=$((a % b)); a=$b; b=$c; done; }
i=1 sum=0
while [ $i -le 4000 ]; do gcd $((i * 7919)) 360360; sum=$((sum + a)); i=$((i + 1)); done
echo $sum
collatz() {
    local n=$1
    steps=0
    until [ $n -eq 1 ]; do
        if [ $((n & 1)) -eq 1 ]; then n=$((3 * n + 1)); else n=$((n >> 1)); fi
        steps=$((steps + 1))
    done
}
best=0
for hundreds in 0 1 2 3 4 5; do for tens in 0 1 2 3 4 5 6 7 8 9; do for ones in 1 3 7 9; do
    collatz $((hundreds * 100 + tens * 10 + ones))
    if [ $steps -gt $best ]; then best=$steps; at=$hundreds$tens$ones; fi
done; done; done
echo "$best $at"
hanoi() {
    [ "$1" -gt 0 ] || return 0
    hanoi $(($1 - 1)) "$2" "$4" "$3"
    moves=$((moves + 1))
    hanoi $(($1 - 1)) "$4" "$3" "$2"
}
moves=0
hanoi 13 a b c
echo $moves
