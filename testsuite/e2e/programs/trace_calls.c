/* Calls: recursion, mutual recursion, through pointers, back from the library, and in tail position. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

static __attribute__((noinline)) unsigned fibonacci(unsigned n) {
    if (n < 2)
        return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
}

static unsigned odd(unsigned n);
static __attribute__((noinline)) unsigned even(unsigned n) {
    if (n == 0)
        return 1;
    sink = n;
    return odd(n - 1);
}
static __attribute__((noinline)) unsigned odd(unsigned n) {
    if (n == 0)
        return 0;
    return even(n - 1);
}

/* A recursion inside a loop. */
static __attribute__((noinline)) unsigned tree(unsigned depth, unsigned width) {
    unsigned sum = 1;
    for (unsigned i = 0; i < width; i++) {
        if (depth > i)
            sum += tree(depth - i - 1, width);
        else
            sink = sum;
    }
    return sum;
}

static unsigned triple(unsigned n) { return 3 * n; }
static unsigned clamp(unsigned n) { return n > 7 ? 7 : n; }
static unsigned weigh(unsigned n) {
    unsigned w = 0;
    while (n) {
        w += n & 1;
        n >>= 1;
    }
    return w;
}
static unsigned (*const operations[])(unsigned) = {triple, clamp, weigh};

static __attribute__((noinline)) unsigned apply(unsigned n, unsigned which) {
    unsigned result = n;
    for (unsigned i = 0; i < 3; i++) {
        if (which & (1u << i))
            result = operations[i](result);
    }
    return result;
}

static int compare(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    if (x % 10 != y % 10)
        return x % 10 < y % 10 ? -1 : 1;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    unsigned sum = fibonacci(7) + even(5) + odd(4) + tree(3, 3);
    unsigned numbers[12];
    for (unsigned i = 0; i < 12; i++) {
        seed = seed * 1664525 + 1013904223;
        numbers[i] = seed >> 22;
        sum += apply(numbers[i] % 23, i);
    }
    qsort(numbers, 12, sizeof *numbers, compare);
    for (unsigned i = 0; i < 12; i++)
        sum = sum * 31 + numbers[i];
    printf("%u\n", sum);
    return 0;
}
