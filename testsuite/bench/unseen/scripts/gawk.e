# Numbers and functions; the input is a table of requests.
function collatz(n,   steps) { while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; steps++ } return steps }
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
BEGIN { print fib(19); for (i = 1; i < 4000; i++) { c = collatz(i); if (c > best) best = c }; print best }
{ n = split($2, part, "/"); sum[part[n] % 50][$1] += $3; last = $4 }
$5 > 0.9 { late[NR % 1000] = $0 }
END {
    for (k in sum) for (m in sum[k]) grand += sum[k][m] * log(k + 2)
    printf "%.3f %d %s\n", grand, length(late), last
    for (i = 0; i < 60; i++) for (j = 0; j < 60; j++) { s = 0; for (k = 0; k < 12; k++) s += (i * k + j) % 7; cell[i, j] = s }
    for (ij in cell) { split(ij, at, SUBSEP); trace += at[1] == at[2] ? cell[ij] : 0 }
    print trace
}
