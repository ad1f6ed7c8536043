/* The program ends deep in calls; a handler runs after that. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

static void last(void) {
    for (unsigned i = 0; i < 3; i++) {
        if (sink > i)
            sink -= i;
    }
    printf("%u\n", sink);
    fflush(stdout);
}

static __attribute__((noinline)) unsigned descend(unsigned depth) {
    if (depth == 0) {
        if (sink > 5)
            exit(3);
        sink += 2;
        return 1;
    }
    unsigned sum = 0;
    for (unsigned i = 0; i < 2; i++)
        sum += descend(depth - 1);
    return sum;
}

static __attribute__((noinline)) void leave(unsigned n) {
    while (n--) {
        if (n & 1)
            sink++;
        sink -= descend(n) & 1;
    }
}

int main(int argc, char **argv) {
    (void)argv;
    atexit(last);
    leave(4 + (unsigned)argc);
    return 0;
}
