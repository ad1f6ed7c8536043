// The second test of each step goes the way of the first, which no edge profile tells: each side is taken half of the time.
#include <stdio.h>
#include <stdlib.h>

static unsigned seed = 1;

static unsigned next(void) { return seed = seed * 1103515245u + 12345u; }

__attribute__((noinline)) unsigned odd(unsigned x) { return x * 3 + 1; }
__attribute__((noinline)) unsigned even(unsigned x) { return x / 2; }
__attribute__((noinline)) unsigned log_it(unsigned x) { return x ^ (x >> 7); }

__attribute__((noinline)) unsigned step(unsigned x, unsigned *kinds, int n) {
  for (int i = 0; i < n; ++i) {
    unsigned kind = kinds[i];
    if (kind & 1)
      x = odd(x);
    else
      x = even(x);
    x = log_it(x);
    if (kind & 2)
      x += odd(x) + 1;
    else
      x -= even(x);
  }
  return x;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20000;
  unsigned kinds[64], x = 27;
  for (int r = 0; r < rounds; ++r) {
    // Both bits or none.
    for (int i = 0; i < 64; ++i)
      kinds[i] = (next() >> 16) & 1 ? 3 : 0;
    x = step(x, kinds, 64);
  }
  printf("%u\n", x);
  return 0;
}
