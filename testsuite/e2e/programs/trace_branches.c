/* Branches without loops in them: diamonds, one-armed ifs, short circuits, switches, selections. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

static __attribute__((noinline)) int diamonds(unsigned bits) {
    int value = 1;
    if (bits & 1)
        value *= 3;
    else
        value += 5;
    if (bits & 2)
        sink = value;
    if (bits & 4) {
        sink = 2;
        if (bits & 8)
            return value;
    } else if (bits & 16) {
        sink = 3;
    }
    return value - 1;
}

static __attribute__((noinline)) int choose(unsigned key) {
    switch (key) {
    case 0:
        return 7;
    case 1:
        sink = 1;
        break;
    case 2:
        sink = 4;
        /* fall through */
    case 3:
        sink = 5;
        break;
    case 4:
        break;
    case 5:
        return 9;
    case 900:
        sink = 900;
        break;
    default:
        sink = 6;
    }
    return (int)sink;
}

static __attribute__((noinline)) int circuits(unsigned a, unsigned b) {
    int hits = 0;
    if (a > 3 && b < 9 && (a ^ b) & 1)
        hits++;
    if (a < 2 || b == 5 || a == b)
        hits += 2;
    hits += a > b ? (int)(a - b) : (int)sink;
    return hits;
}

/* Blocks without instructions of their own. */
static __attribute__((noinline)) int hollow(unsigned a) {
    if (a & 1) {
    }
    if (a & 2) {
    } else {
        sink = 8;
    }
    if (a & 4)
        goto out;
    sink = 9;
out:
    return (int)a;
}

int main(int argc, char **argv) {
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    unsigned sum = 0;
    for (unsigned i = 0; i < 40; i++) {
        seed = seed * 1664525 + 1013904223;
        unsigned roll = seed >> 20;
        sum += (unsigned)diamonds(roll);
        sum += (unsigned)choose(i % 9 == 8 ? 900 : roll % 8);
        sum += (unsigned)circuits(roll % 11, roll / 11 % 11);
        sum += (unsigned)hollow(roll);
    }
    printf("%u\n", sum);
    return 0;
}
