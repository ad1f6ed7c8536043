// A function as small as a call of it, that is called from two places, and a large one that is called from one.
#include <stdio.h>
#include <stdlib.h>

static unsigned fold(unsigned x) { return x * 31 + (x >> 7); }

static unsigned only(unsigned x) {
  for (unsigned i = 0; i < (x & 7); ++i)
    x = x & 1 ? x * 3 + 1 : (x >> 1) ^ i;
  return x;
}

__attribute__((noinline)) static unsigned run(unsigned rounds) {
  unsigned x = 1;
  for (unsigned i = 0; i < rounds; ++i)
    x = fold(only(x ^ i)) + fold(i);
  return x;
}

int main(int argc, char **argv) {
  printf("%u\n", run(argc > 1 ? atoi(argv[1]) : 20000000));
  return 0;
}
