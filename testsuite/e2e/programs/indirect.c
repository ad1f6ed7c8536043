// An indirect call with a dominant local target.
#include <stdio.h>

static int add(int x) { return x + 1; }
static int flip(int x) { return x ^ 0x55; }
int shift(int x) { return x << 1; }

static int (*const table[])(int) = {add, add, add, add, add, add, add, flip, add, shift};

__attribute__((noinline)) int drive(int n) {
    int x = n;
    for (int i = 0; i < n; i++)
        x = table[(unsigned)i % 10](x);
    return x;
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 20000; i++)
        sum += drive(1000);
    printf("%d\n", sum);
    return 0;
}
