/* Loops: of one block, nested, left in the middle, with two entries, and computed jumps. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

static __attribute__((noinline)) unsigned length(const char *text) {
    unsigned n = 0;
    while (text[n])
        n++;
    return n;
}

static __attribute__((noinline)) unsigned alone(unsigned n) {
    do {
        sink += n;
    } while (--n);
    return sink;
}

static __attribute__((noinline)) unsigned nested(unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        if (i == 3)
            continue;
        for (unsigned j = 0; j < i; j++) {
            if ((i ^ j) & 1)
                sink = j;
            else
                sum += sink;
            if (sum > 90)
                goto out;
        }
        if (i & 4)
            sink = sum;
    }
out:
    return sum;
}

static __attribute__((noinline)) unsigned endless(unsigned n) {
    unsigned turns = 0;
    for (;;) {
        turns++;
        if (n == 1)
            return turns;
        if (n % 2)
            n = 3 * n + 1;
        else
            n /= 2;
        if (turns > 30)
            break;
        sink = n;
    }
    return turns + 100;
}

/* The loop can be entered in two places. */
static __attribute__((noinline)) unsigned two_ways_in(unsigned n) {
    unsigned sum = 0;
    if (n & 1)
        goto middle;
top:
    sink = n;
    sum += 2;
middle:
    sum += sink;
    if (n-- > 1)
        goto top;
    return sum;
}

static __attribute__((noinline)) int interpret(const unsigned char *code) {
    static const void *const labels[] = {&&stop, &&push, &&add, &&repeat, &&negate};
    int value = 0, turns = 0;
    goto *labels[*code];
push:
    value += code[1];
    code += 2;
    goto *labels[*code];
add:
    value *= 2;
    code++;
    goto *labels[*code];
repeat:
    if (turns++ < 4)
        code -= code[1];
    else
        code += 2;
    goto *labels[*code];
negate:
    value = -value;
    code++;
    goto *labels[*code];
stop:
    return value;
}

int main(int argc, char **argv) {
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    unsigned sum = length("pleach") + length("") + length("hedge and bough");
    static const unsigned char code[] = {1, 5, 4, 2, 1, 3, 3, 2, 4, 0};
    for (unsigned i = 0; i < 8; i++) {
        sum += alone(1 + (seed + i * i) % 5);
        sum += nested((seed + i) % 9);
        sum += endless(1 + (seed * 7 + i) % 30);
        sum += two_ways_in(i);
    }
    sum += (unsigned)interpret(code);
    printf("%u\n", sum);
    return 0;
}
