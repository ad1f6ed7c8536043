// A call behind inlined code: the last block that was passed before it belongs to another function than the call.
#include <stdlib.h>

static volatile unsigned sink;

__attribute__((noinline)) static void work(unsigned x) {
  if (x & 1)
    sink += 3;
  else
    sink ^= 5;
  ++sink;
}

static inline unsigned fold(unsigned r) {
  unsigned sum = 0;
  while (r) {
    sink += r;
    sum += r & 3;
    r >>= 8;
  }
  if (sum > 6)
    ++sink;
  else
    sink -= sum;
  return sum;
}

__attribute__((noinline)) static void choose(unsigned r) {
  work(fold(r) + fold(r ^ 5));
  ++sink;
}

int main(int argc, char **argv) {
  unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 8000000, r = 1;
  for (unsigned i = 0; i < n; ++i)
    choose(r = r * 1664525 + 1013904223);
  return 0;
}
