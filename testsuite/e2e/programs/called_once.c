/* A loop that is all of the program, in a function that is inlined into its only caller, which no sample meets. */
#include <stdio.h>
#include <stdlib.h>

static unsigned short prefix[4096];
static unsigned char suffix[4096];

static unsigned char one_code(unsigned char *at, unsigned code) {
    unsigned length = code % 3 + 1;
    unsigned char last = 0;
    while (length > 0) {
        last = suffix[code];
        code = prefix[code];
        *--at = last;
        length--;
    }
    return last;
}

static unsigned expand(unsigned char *room, long count) {
    unsigned seed = 1, sum = 0;
    for (long i = 0; i < count; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned code = seed >> 20;
        if (code % 64 == 0) {
            sum ^= seed;
            continue;
        }
        sum += one_code(room + 8 + code % 4096, code);
    }
    return sum;
}

__attribute__((noinline)) unsigned drive(long count) {
    static unsigned char room[8192];
    return expand(room, count) + room[17];
}

int main(int argc, char **argv) {
    for (unsigned i = 0; i < 4096; i++) {
        prefix[i] = i * 7 % 4096;
        suffix[i] = i * 13;
    }
    printf("%u\n", drive(argc > 1 ? atol(argv[1]) : 20000000));
    return 0;
}
