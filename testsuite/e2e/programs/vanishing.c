/* Functions that are executed only where they were inlined, and leave no code of their own there. */
#include <stdio.h>
#include <stdlib.h>

struct region {
  long allocated, used;
  long *starts, *ends;
};

/* Becomes a part of calloc. */
void clear(struct region *region) {
  region->allocated = 0;
  region->used = 0;
  region->starts = 0;
  region->ends = 0;
}

__attribute__((noinline)) struct region *fresh(void) {
  struct region *region = malloc(sizeof *region);
  if (region) clear(region);
  return region;
}

/* Become selects. */
long low(long a) { return a < 10 ? a : 10; }
long bounded(long a) { return a > -10 ? low(a) : -10; }
long chosen(long a, long b, int way) { return way ? bounded(a) : bounded(b); }

__attribute__((noinline)) long run(long n) {
  long sum = 0;
  for (long i = 0; i < n; i++) sum += chosen(i - n / 2, n / 2 - i, i & 1);
  return sum;
}

/* Never executed. */
__attribute__((noinline)) long unused(long n) { return run(n) + bounded(n) + chosen(n, n, 1); }

int main(int count, char **arguments) {
  struct region *region = fresh();
  long sum = region ? region->used : 1;
  if (count > 7) sum += unused(count);
  printf("%ld %s\n", sum + run(1000), count > 8 ? arguments[1] : "");
  free(region);
  return 0;
}
