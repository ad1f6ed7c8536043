// Functions that run never, once, a few times, and all the time, for about a second and a half of CPU time.
#include <stdio.h>
#include <time.h>

#define OWN __attribute__((noinline))

static volatile unsigned sink;

OWN static unsigned never(unsigned n) {
    sink = n;
    return n * 7 + sink;
}
OWN static unsigned once(unsigned n) {
    sink = n;
    return n * 3 + sink;
}
OWN static unsigned rare(unsigned n) {
    sink = n;
    return n * 5 + sink;
}
OWN static unsigned frequent(unsigned n) { return n * 1664525 + 1013904223; }

static double cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
    unsigned state = once(1);
    if (count > 3)
        state += never(count);
    // `rare` is called fifteen times, evenly spread.
    for (int part = 1; part <= 15; part++) {
        while (cpu() < part * 0.1)
            for (int i = 0; i < 1000; i++)
                state = frequent(state);
        state += rare(state) & 1;
    }
    return state == 0;
}
