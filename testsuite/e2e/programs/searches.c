// Binary searches whose selects code generation makes branches of: for keys at random, and for two keys in turn.
#include <stdio.h>

static unsigned state = 12345;

static unsigned next(void) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

__attribute__((noinline)) unsigned by_chance(const unsigned *sorted, unsigned size, unsigned key) {
  unsigned low = 0, high = size;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (sorted[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

__attribute__((noinline)) unsigned in_turn(const unsigned *sorted, unsigned size, unsigned key) {
  unsigned low = 0, high = size;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (sorted[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int main(void) {
  static unsigned sorted[1000];
  unsigned sum = 0;
  for (unsigned i = 0; i < 1000; i++)
    sorted[i] = i * 4294967u;
  for (int i = 0; i < 6000; i++) {
    unsigned keys[] = {next(), next()};
    for (int k = 0; k < 300; k++)
      sum += by_chance(sorted, 1000, next());
    for (int k = 0; k < 300; k++)
      sum += in_turn(sorted, 1000, keys[k % 2]);
  }
  printf("%u\n", sum);
}
