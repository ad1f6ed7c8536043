// A branch of which one way leaves no probe in optimised code: one in eight values is within the gap.
#include <stdio.h>
#include <stdlib.h>

struct gap {
  int before, run;
};

static unsigned state = 5;

static unsigned draw(void) {
  state = state * 1103515245u + 12345u;
  return state >> 9;
}

static int is_third(struct gap *gap, int value) {
  const int difference = value - gap->before;
  gap->before = value;
  if (difference > 100 || difference < -100) {
    gap->run = 0;
    return 0;
  }
  return ++gap->run > 2;
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 200000;
  int values[64] = {0};
  unsigned long sum = 0;
  struct gap gap = {0, 0};
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < 64; i++)
      values[i] = draw() % 8 == 0 ? values[(i + 63) % 64] : (int)(draw() % 60000);
    for (int i = 0; i < 64; i++)
      if (is_third(&gap, values[i])) {
        sum = sum * 31 + (unsigned long)values[i];
        if (sum & 1)
          values[i & 7] = (int)sum;
      }
  }
  printf("%lx\n", sum);
  return 0;
}
