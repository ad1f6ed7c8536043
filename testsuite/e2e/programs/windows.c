// A loop whose iterations come in an order: what one does follows from the two before, not from how often each is done.
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

__attribute__((noinline)) static void left(unsigned x) { sink = x * 3; }
__attribute__((noinline)) static void right(unsigned x) { sink = x ^ 9; }
__attribute__((noinline)) static void both(unsigned x) { sink = x + 5; }

__attribute__((noinline)) static unsigned run(const char *order, unsigned rounds) {
  unsigned done = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    for (const char *step = order; *step; ++step) {
      if (*step == 'l')
        left(i);
      else if (*step == 'r')
        right(i);
      else
        both(i);
      ++done;
    }
  }
  return done;
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1000000;
  printf("%u\n", run("llrllrlbrr", rounds));
}
