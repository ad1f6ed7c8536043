// A function as small as a call of it, a larger one, which is also called where nothing is executed, and a large one that
// is called from one place.
#include <stdio.h>
#include <stdlib.h>

static unsigned fold(unsigned x) { return x * 31 + (x >> 7); }

static unsigned larger(unsigned x) {
  x = (x ^ x >> 3) * 7919;
  x = (x ^ x >> 5) * 31;
  x = (x ^ x >> 9) * 127;
  return x ^ x >> 16;
}

static unsigned only(unsigned x) {
  for (unsigned i = 0; i < (x & 7); ++i)
    x = x & 1 ? x * 3 + 1 : (x >> 1) ^ i;
  return x;
}

__attribute__((noinline)) static unsigned run(unsigned rounds) {
  unsigned x = 1;
  for (unsigned i = 0; i < rounds; ++i)
    x = fold(only(x ^ i)) + fold(i) + larger(i);
  return x;
}

__attribute__((noinline)) static unsigned never(unsigned x) { return larger(x) * larger(x + 1); }

int main(int argc, char **argv) {
  printf("%u\n", run(argc > 1 ? atoi(argv[1]) : 20000000));
  if (argc > 2)
    printf("%u\n", never(argc));
  return 0;
}
