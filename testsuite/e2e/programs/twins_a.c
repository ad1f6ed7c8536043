// One of two files with a local function of the same name; the graphs differ.
#include <stdio.h>

static __attribute__((noinline)) int step(int x) {
    if (x % 3 == 0)
        return x + 1;
    return x * 2;
}

int run_b(int n);

int run_a(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += step(sum + i);
    return sum;
}

int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 60000; i++)
        sum += run_a(100 + argc) + run_b(100 + argc);
    printf("%d\n", sum);
    return 0;
}
