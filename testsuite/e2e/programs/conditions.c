// Conditions joined by `&&`, nearly always true.
#include <stdio.h>

static int table[64 * 64];

__attribute__((noinline)) static int at(int x, int y, int width, int height) {
    if (!(x < width && y < height && width < 100 && height < 100))
        puts("outside");
    return table[(y & 63) * 64 + (x & 63)];
}

int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < 2000000; i++) {
        table[i & 4095] += i;
        sum += at(i & 63, (i >> 6) & 63, 63 + argc, 64);
    }
    printf("%ld\n", sum);
    return argc > 9;
}
