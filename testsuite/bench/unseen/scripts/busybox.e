# Arithmetic, functions, arrays; a few fields.
function gcd(a, b) { return b ? gcd(b, a % b) : a }
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
function sort(list, n,    i, j, value) {
    for (i = 2; i <= n; i++) {
        value = list[i]
        for (j = i - 1; j > 0 && list[j] > value; j--) list[j + 1] = list[j]
        list[j + 1] = value
    }
}
{ seen[$4] = (seen[$4] * 31 + $3) % 65521; if (NR % 50 == 0) times[++n] = $5 * 1000 + 0 }
END {
    sort(times, n)
    for (i = 1; i <= n; i += 40) printf "%s ", times[i]
    for (user in seen) total += seen[user]
    print total, fib(21)
    for (i = 1; i < 8000; i++) divisors += gcd(i * 7919, 360360)
    for (i = 2; i < 20000; i++)
        if (!composite[i]) { primes++; for (j = i * i; j < 20000; j += i) composite[j] = 1 }
    print divisors, primes, int(exp(log(2) * 20) + sqrt(2) * sin(1))
}
