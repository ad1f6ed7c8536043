// All the work is done in eight inlined copies of one loop.
#include <stdio.h>
#include <stdlib.h>

static inline unsigned turn(unsigned x, unsigned times) {
  for (unsigned i = 0; i < times; ++i)
    x = x & 1 ? x * 3 + 1 : (x >> 1) ^ i;
  return x;
}

#define COPY(N)                                                                                                        \
  __attribute__((noinline)) static unsigned copy##N(unsigned x) { return turn(x + N, 1000); }
COPY(0) COPY(1) COPY(2) COPY(3) COPY(4) COPY(5) COPY(6) COPY(7)

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? atoi(argv[1]) : 30000, x = 1;
  for (unsigned i = 0; i < rounds; ++i)
    x = copy0(copy1(copy2(copy3(copy4(copy5(copy6(copy7(x))))))));
  printf("%u\n", x);
  return 0;
}
