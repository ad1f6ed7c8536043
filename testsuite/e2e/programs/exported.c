// Branches that sampling tells apart, a function that is inlined, and an indirect call.
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

static int twice(int x) { return 2 * x; }
static int minus(int x) { return -x; }
static int (*const table[])(int) = {twice, twice, twice, minus};

static unsigned step(unsigned x) {
  if (x % 16 == 0)
    sink += x;
  else
    sink ^= x;
  return x * 1664525 + 1013904223;
}

__attribute__((noinline)) static unsigned rarely(unsigned x) { return x / 3 + sink; }

__attribute__((noinline)) static unsigned work(unsigned rounds) {
  unsigned x = rounds;
  for (unsigned i = 0; i < rounds; ++i) {
    x = step(x);
    if (x > 4000000000u)
      x = rarely(x);
    x += table[i & 3](i);
  }
  return x;
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? atoi(argv[1]) : 5000000;
  unsigned sum = 0;
  for (int i = 0; i < 10; ++i)
    sum += work(rounds);
  printf("%u\n", sum);
  return 0;
}
