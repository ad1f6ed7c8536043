// Adds rows of very different lengths: by the first argument, `mixed`, most of them are short and their mean is not; or
// `long`, all of them are.
#include <stdio.h>
#include <string.h>

enum { ROWS = 4096, CELLS = 1 << 14 };

static int cells[CELLS];
static int lengths[ROWS];

__attribute__((noinline)) static unsigned sum_row(const int *row, int length) {
  unsigned sum = 0;
  for (int i = 0; i < length; i++)
    sum += (unsigned)row[i];
  return sum;
}

int main(int argc, char **argv) {
  const int mixed = argc < 2 || strcmp(argv[1], "long") != 0;
  unsigned random = 12345, sum = 0;
  for (int i = 0; i < CELLS; i++)
    cells[i] = i * 7;
  for (int i = 0; i < ROWS; i++) {
    random = random * 1103515245 + 12345;
    const unsigned kind = random >> 16;
    lengths[i] = mixed && kind % 8 ? 1 + (int)(kind % 3) : 80 + (int)(kind % 40);
  }
  for (int round = 0; round < 4000; round++)
    for (int i = 0; i < ROWS; i++)
      sum = sum * 31 + sum_row(cells + i, lengths[i]);
  printf("%u\n", sum);
}
