// Local functions that are called from one place, where control never comes.
#include <stdio.h>
#include <stdlib.h>

static unsigned long many(unsigned long x) {
    for (int i = 0; i < 5; i++)
        x = (x * 0x9e3779b97f4a7c15 ^ x >> 29) + (x % 1000003) * (x / 77773) + (x << (x & 31));
    return x % 65521 + (x >> 7) * (x & 255) + (x ^ x >> 3) * 31 + (x | 5) % 127;
}

// A copy would need instructions that its caller must not have.
__attribute__((target("avx2"))) static unsigned long wide(unsigned long x) {
    for (int i = 0; i < 5; i++)
        x = (x * 0xbf58476d1ce4e5b9 ^ x >> 29) + (x % 1000033) * (x / 77771) + (x << (x & 31));
    return x % 65521 + (x >> 7) * (x & 255) + (x ^ x >> 3) * 31 + (x | 5) % 131;
}

// A copy would make its caller's frame much larger.
static unsigned long deep(unsigned long x) {
    volatile unsigned long words[512];
    for (int i = 0; i < 512; i++)
        words[i] = x * i;
    x = words[x % 512] + words[x / 512 % 512];
    for (int i = 0; i < 5; i++)
        x = (x * 0x94d049bb133111eb ^ x >> 31) + (x % 1000037) * (x / 77783) + (x << (x & 31));
    return x % 65519 + (x >> 9) * (x & 127) + (x ^ x >> 5) * 37 + (x | 9) % 137;
}

int main(int argc, char **argv) {
    int mode = argc > 1 ? atoi(argv[1]) : 0;
    unsigned long sum = 1;
    for (unsigned long i = 0; i < 3000000; i++) {
        if (mode == 1)
            sum += many(sum ^ i);
        else if (mode == 2)
            sum += wide(sum ^ i);
        else if (mode == 3)
            sum += deep(sum ^ i);
        else
            sum = sum * 7 + i % 13;
    }
    printf("%lu\n", sum);
    return 0;
}
