function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
function collatz(n, steps) { while (n != 1) { if (n % 2) n = 3 * n + 1; else n = n / 2; steps++ } return steps }
BEGIN { FS = "[ /]"; print fib(19); for (i = 1; i < 5000; i++) { c = collatz(i); if (c > best) best = c }; print best }
{ sum[$4 % 97, $1] += $5; if ($7 > m) m = $7; line[NR % 300] = $0 }
END { for (k in sum) { split(k, at, SUBSEP); grand += sum[k] * log(at[1] + 2) }; printf "%.3f %s\n", grand, m
  for (i = 0; i < 300; i++) for (j = i + 1; j < 300; j += 7) if (line[i] > line[j]) swaps++; print swaps }
