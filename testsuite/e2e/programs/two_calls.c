// A function that is called from two places of a loop that is not hot, and too large to be inlined where LLVM regards a
// call as cold.
#include <stdio.h>

unsigned mix(unsigned x) {
  x ^= x >> 3, x *= 7919, x ^= x >> 5, x += x << 7, x ^= x >> 11, x *= 31;
  x ^= x >> 13, x += x << 9, x ^= x >> 17, x *= 127, x ^= x >> 19, x += x << 3;
  x ^= x >> 4, x *= 8191, x ^= x >> 6, x += x << 5, x ^= x >> 12, x *= 61;
  return x ^ x >> 16;
}

__attribute__((noinline)) static unsigned spin(unsigned x) {
  for (unsigned i = 0; i < 200; ++i)
    x = x & 1 ? x * 3 + i : (x >> 1) ^ i;
  return x;
}

__attribute__((noinline)) static unsigned run(unsigned x, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    x = spin(mix(x));
    x ^= mix(i);
  }
  return x;
}

int main(void) {
  printf("%u\n", run(1, 1000));
  return 0;
}
