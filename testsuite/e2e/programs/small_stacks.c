/* A handler on an alternate stack with room for one signal frame and what it uses, or, with `unused`, a stack that no
   handler runs on, and that has no room for any frame. Otherwise the argument says what is handled, `faults` or
   `signals`, or that a handler ends the process (`ends`) or starts another program (`execs`). */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 1 << 16, SMALL = 8192, TINY = 2048, USED = 1000 };
static sigjmp_buf before;
static volatile int taken;
static int ends, execs;

__attribute__((noinline)) static int describe(char *text, int signal) {
    if (signal == SIGSEGV) return snprintf(text, USED, "fault %d", taken);
    return snprintf(text, USED, "signal %d", taken);
}

static void on_signal(int signal) {
    if (ends) _exit(5);
    if (execs) execl("/bin/sh", "sh", "-c", "exit 5", (char *)0);
    char text[USED];
    memset(text, signal, sizeof text);
    taken += describe(text, signal) > 0;
    if (signal == SIGSEGV) siglongjmp(before, 1);
}

__attribute__((noinline)) static unsigned work(unsigned n) {
    unsigned sum = 1;
    for (unsigned i = 0; i < n; i++) sum = sum & 1 ? sum * 3 + i : sum / 2 ^ i;
    return sum;
}

/* Executed only once the handler has run. */
__attribute__((noinline)) static unsigned after(unsigned n) {
    return n % 3 ? work(n) : n;
}

int main(int argc, char **argv) {
    int unused = argc > 1 && !strcmp(argv[1], "unused"), faults = argc > 1 && !strcmp(argv[1], "faults");
    ends = argc > 1 && !strcmp(argv[1], "ends");
    execs = argc > 1 && !strcmp(argv[1], "execs");
    char *memory = mmap(0, 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + GUARD, GUARD, PROT_READ | PROT_WRITE)) return 1;
    stack_t stack = {.ss_sp = memory + GUARD, .ss_size = unused ? TINY : SMALL};
    if (sigaltstack(&stack, 0)) return 2;
    struct sigaction action, known;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGUSR1, 0, &known);
    if (known.sa_handler != on_signal || !(known.sa_flags & SA_ONSTACK)) return 3;
    unsigned sum = work(2000000);
    for (int i = 0; i < 3 && !unused; i++) {
        if (!faults)
            raise(SIGUSR1);
        else if (!sigsetjmp(before, 1))
            *(volatile int *)(memory + 8 * i) = 1;
    }
    sum += after(2000001);
    if (signal(SIGUSR1, SIG_IGN) != on_signal) return 4;
    printf("%u, %d taken\n", sum, taken);
    return 5;
}
