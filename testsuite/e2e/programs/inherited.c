// A function that is inlined in two places: one is recorded, one is never executed when recorded.
#include <stdio.h>
#include <stdlib.h>

static inline unsigned long step(unsigned long kind, volatile unsigned long *state) {
    if (__builtin_expect(*state == 12345, 0))
        abort();
    if (kind & 7)
        *state += kind;
    else
        *state ^= kind << 5;
    return *state;
}

__attribute__((noinline)) unsigned long recorded(unsigned long n) {
    volatile unsigned long state = n;
    for (unsigned long i = 0; i < n; i++)
        step(i % 1000, &state);
    return state;
}

__attribute__((noinline)) unsigned long never_recorded(unsigned long n) {
    volatile unsigned long state = n;
    for (unsigned long i = 0; i < n; i++)
        step(i * 8 % 1000, &state);
    return state;
}

int main(int argc, char **argv) {
    unsigned long n = 20000000;
    (void)argv;
    printf("%lu\n", argc > 1 ? never_recorded(n) : recorded(n));
    return 0;
}
