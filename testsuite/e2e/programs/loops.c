// Counts that a person can check: main calls `mix` 100 000 times, `mix` loops 100 times, a third of it through `square`.
#include <stdio.h>

static int square(int x) {
    if (x & 1)
        return x * x;
    return x + 7;
}

__attribute__((noinline)) int mix(int n, int seed) {
    int sum = seed;
    for (int i = 0; i < n; i++) {
        if (i % 3 == 0)
            sum += square(sum ^ i);
        else
            sum ^= sum << 1;
        if (sum == 123456789) {
            puts("never");
            return 0;
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 100000; i++)
        sum += mix(100, i + argc);
    printf("%d\n", sum);
    return 0;
}
