// Phases that are known: the arguments are pairs of a phase (a digit) and its length in milliseconds of CPU time. On
// standard output, when each began: nanoseconds of CLOCK_MONOTONIC.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned state = 12345;

static unsigned next(void) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

// Phase 0: a binary search.
__attribute__((noinline)) unsigned search(const unsigned *sorted, unsigned size, unsigned key) {
  unsigned low = 0;
  while (size > 1) {
    unsigned half = size / 2;
    if (sorted[low + half] <= key)
      low += half;
    size -= half;
  }
  return low;
}

// Phase 1: bubbles.
__attribute__((noinline)) unsigned sort(unsigned *values, unsigned size) {
  unsigned swaps = 0;
  for (unsigned i = 0; i < size; i++)
    for (unsigned j = 1; j < size - i; j++)
      if (values[j - 1] > values[j]) {
        unsigned larger = values[j - 1];
        values[j - 1] = values[j];
        values[j] = larger;
        swaps++;
      }
  return swaps;
}

// Phases 2 and 3: one loop, whose branch goes mostly one way or mostly the other.
__attribute__((noinline)) unsigned choose(unsigned rare) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 64; i++) {
    if (next() % 16 < rare)
      sum += next() % 7;
    else
      sum ^= i * 5;
  }
  return sum;
}

static unsigned long nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000ul + now.tv_nsec;
}

int main(int argc, char **argv) {
  unsigned sorted[256], values[64], sum = 0;
  for (unsigned i = 0; i < 256; i++)
    sorted[i] = i << 24;
  for (int i = 1; i + 1 < argc; i += 2) {
    printf("%lu\n", nanoseconds(CLOCK_MONOTONIC));
    unsigned long end = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) + strtoul(argv[i + 1], 0, 10) * 1000000;
    while (nanoseconds(CLOCK_PROCESS_CPUTIME_ID) < end)
      switch (argv[i][0]) {
      case '0':
        for (unsigned k = 0; k < 2000; k++)
          sum += search(sorted, 256, next());
        break;
      case '1':
        for (unsigned k = 0; k < 10; k++) {
          for (unsigned j = 0; j < 64; j++)
            values[j] = next();
          sum += sort(values, 64);
        }
        break;
      default:
        for (unsigned k = 0; k < 200; k++)
          sum += choose(argv[i][0] == '2' ? 1 : 15);
      }
  }
  fprintf(stderr, "%u\n", sum);
}
