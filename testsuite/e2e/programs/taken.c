/* Every way to take a branch: jumps that are calls, calls that never return here, tables, and libraries that call back. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KEEP __attribute__((noinline))
#define TAIL __attribute__((musttail)) return

static volatile unsigned sink;
static jmp_buf back;

static KEEP unsigned last(unsigned n, unsigned sum) { return sum ^ n; }

/* Tail calls: always, on a condition, to itself, and through a pointer. */
static KEEP unsigned middle(unsigned n, unsigned sum) { TAIL last(n, sum + 1); }
static KEEP unsigned maybe(unsigned n, unsigned sum) {
    if (n & 1)
        TAIL middle(n, sum);
    if (n & 2)
        TAIL last(n, sum);
    return n + sum;
}
static KEEP unsigned down(unsigned n, unsigned sum) {
    sink = n;
    if (n == 0)
        return sum;
    TAIL down(n - 1, sum + n);
}
static unsigned (*volatile steps[])(unsigned, unsigned) = {last, middle, maybe, down};
static KEEP unsigned through(unsigned n, unsigned sum) { TAIL steps[n % 4](n, sum); }

/* Recursion that is none of these. */
static KEEP unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0)
        return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

/* An indirect jump: threaded code. */
static KEEP unsigned threaded(const char *code) {
    static const void *const places[] = {&&stop, &&add, &&twice, &&flip};
    unsigned sum = 1;
#define NEXT goto *places[(unsigned char)*code++ & 3]
    NEXT;
add:
    sum += 7;
    NEXT;
twice:
    sum *= 2;
    NEXT;
flip:
    sum = ~sum;
    NEXT;
stop:
    return sum;
}

static KEEP unsigned table(unsigned n) {
    switch (n) {
    case 0: return last(1, 2);
    case 1: sink = 5; break;
    case 2: sink += 6; return 9;
    case 3: return middle(2, 3);
    case 4: sink = 1; return 4;
    default: return 0;
    }
    return sink;
}

/* Calls that end elsewhere. */
static KEEP void leave(unsigned depth) {
    if (depth == 0)
        longjmp(back, 1);
    leave(depth - 1);
    sink = depth;
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Not branches, though a simulator loops: repeated string instructions. And branches on a counter. */
static KEEP unsigned repeated(unsigned n) {
    char from[64] = "a text that is copied", to[64];
    char *source = from, *target = to;
    unsigned long count = n;
    __asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(count) : : "memory");
    unsigned long rounds = n, passed = 0;
    __asm__ volatile("1: inc %1\n\tloop 1b\n\tjrcxz 2f\n\tinc %1\n2:" : "+c"(rounds), "+r"(passed));
    return (unsigned)passed + (unsigned char)to[n / 2];
}

/* Code made at run time, which is in no file: calls its third argument. */
static KEEP unsigned made(unsigned n) {
    static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd2, 0x48, 0x83, 0xc4, 0x08, 0xc3};
    void *place = mmap(NULL, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return 0;
    memcpy(place, code, sizeof code);
    unsigned (*run)(unsigned, unsigned, unsigned (*)(unsigned, unsigned)) = place;
    unsigned sum = run(n, n + 1, maybe);
    munmap(place, sizeof code);
    return sum;
}

int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 3, sum = 0;
    for (unsigned i = 0; i < rounds * 5; i++)
        sum += maybe(i, sum) + through(i, i) + table(i % 7);
    sum += made(rounds) + ackermann(2, rounds) + threaded("abcabcbbca`") + repeated(rounds * 5);
    if (setjmp(back) == 0)
        leave(rounds);
    int values[32];
    for (int i = 0; i < 32; i++)
        values[i] = i * 7919 % 101;
    qsort(values, 32, sizeof values[0], by_value);
    char text[100];
    snprintf(text, sizeof text, "%u %d", sum, values[16]);
    printf("%s\nchecksum %u\n", text, (unsigned)strlen(text));
    return 0;
}
