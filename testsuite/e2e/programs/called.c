// What a function does follows from what its caller did before.
#include <stdlib.h>

static volatile unsigned sink;

__attribute__((noinline)) static void work(unsigned x) {
  if (x & 1)
    sink += 3;
  else
    sink ^= 5;
  ++sink;
}

__attribute__((noinline)) static void choose(unsigned r) {
  unsigned x;
  if (r & 1024) {
    sink += r;
    x = 1;
  } else {
    sink -= r;
    x = 2;
  }
  work(x);
  ++sink;
}

int main(int argc, char **argv) {
  unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 20000000, r = 1;
  for (unsigned i = 0; i < n; ++i)
    choose(r = r * 1664525 + 1013904223);
  return 0;
}
