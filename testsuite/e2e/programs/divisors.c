// Divisions whose divisor is mostly the same, and some whose divisors are not.
#include <stdint.h>
#include <stdio.h>

__attribute__((noinline)) uint64_t slot(uint64_t key, uint64_t slots) { return key * 0x9e3779b97f4a7c15 % slots; }

// Quotient and remainder are one instruction; the divisor is negative.
__attribute__((noinline)) int64_t both(int64_t value, int by, int64_t *rest) {
    *rest = value % by;
    return value / by;
}

// A call comes between the block's beginning and the division.
__attribute__((noinline)) uint32_t after_call(uint32_t key, uint32_t slots) { return (uint32_t)slot(key, 97) / slots; }

// Divisors of one block are not told apart.
__attribute__((noinline)) uint32_t two(uint32_t key, uint32_t first, uint32_t second) {
    return key / first + (key ^ 5) / second;
}

__attribute__((noinline)) uint32_t various(uint32_t key, uint32_t by) { return key % by; }

int main(void) {
    uint64_t sum = 0;
    uint32_t random = 1;
    for (uint32_t i = 0; i < 4000000; i++) {
        random = random * 1103515245 + 12345;
        int is_rare = (random >> 8) % 16 == 5;
        int64_t rest;
        sum += slot(i, is_rare ? 1009 : 99991);
        sum += (uint64_t)both((int64_t)i - 1000, is_rare ? 13 : -60, &rest);
        sum += (uint64_t)rest;
        sum += after_call(i, is_rare ? 3 : 64) + two(i, 7, 9) + various(i, random >> 28 | 1);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
