// An adaptive decoder: both ways of its branch load and store alike, so that one load and one store will do, and selects say of what.
#include <stdio.h>
#include <stdlib.h>

struct state {
  unsigned limit, symbol;
  const struct state *likely, *unlikely;
};

static struct state states[8];

__attribute__((noinline)) unsigned decode(const unsigned char *in, int n, const struct state **contexts) {
  unsigned sum = 0;
  for (int i = 0; i < n; ++i) {
    const struct state **now = &contexts[i & 3];
    unsigned symbol;
    if (in[i] < (*now)->limit) {
      symbol = (*now)->symbol;
      *now = (*now)->likely;
    } else {
      symbol = 1 - (*now)->symbol;
      *now = (*now)->unlikely;
    }
    sum = sum * 31 + symbol;
  }
  return sum;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20000;
  static unsigned char in[4096];
  unsigned seed = 1, sum = 0;
  for (int i = 0; i < 8; ++i)
    states[i] = (struct state){150 + 10 * i, i & 1, &states[i < 7 ? i + 1 : 7], &states[i > 0 ? i - 1 : 0]};
  const struct state *contexts[4] = {&states[1], &states[2], &states[3], &states[4]};
  for (int r = 0; r < rounds; ++r) {
    for (int i = 0; i < 4096; ++i)
      in[i] = (unsigned char)((seed = seed * 1103515245u + 12345u) >> 16);
    sum += decode(in, 4096, contexts);
  }
  printf("%u\n", sum);
  return 0;
}
