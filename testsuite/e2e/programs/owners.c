// Two threads access cells by chance, each only its own ones, without a lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ALONE __attribute__((noinline)) static
enum { CELLS = 64 };

struct cell {
  unsigned left, right, both[2];
};
static struct cell cells[CELLS];
// By cell, whether its left half belongs to the first thread. Never written while threads run.
static unsigned char first_owns[CELLS];
static unsigned rounds = 3000000;
// Neither thread is done before the other begins: the sanitizer compares accesses of the same time.
static pthread_barrier_t together;

#ifdef EVERY_CELL
// What no compiler may make of it: the value of another's cell is read, and written back.
ALONE void adds(unsigned mine, unsigned *to, unsigned x) {
  volatile unsigned *cell = to;
  *cell = mine ? *cell + x : *cell;
}
#else
ALONE void adds(unsigned mine, unsigned *to, unsigned x) {
  if (mine)
    *to += x;
}
#endif
ALONE unsigned reads(unsigned mine, const unsigned *from, unsigned x) {
  if (mine)
    x ^= *from + 3;
  return x;
}
ALONE void either(unsigned mine, unsigned *a, unsigned *b, unsigned x) {
  if (mine)
    *a -= x;
  else
    *b += x * 5;
}
ALONE unsigned differs(unsigned mine, unsigned *a, const unsigned *b, unsigned x) {
  if (mine) {
    a[0] = x;
    a[1] = x + 1;
  } else {
    x ^= *b;
  }
  return x;
}

static void *work(void *argument) {
  unsigned me = argument != NULL, x = me, *own = &cells[me].both[0];
  unsigned long long chance = 88172645463325252 + me;
  for (unsigned i = 0; i < rounds; ++i) {
    if (i % 4096 == 0)
      pthread_barrier_wait(&together);
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    unsigned at = (unsigned)(chance >> 30) % CELLS;
    unsigned mine = first_owns[at] ^ me;
    struct cell *cell = &cells[at];
    adds(mine, &cell->left, i);
    at = (unsigned)(chance >> 40) % CELLS;
    x = reads(first_owns[at] ^ me, &cells[at].left, x);
    // Of each cell, one thread has the left half, the other the right half.
    at = (unsigned)(chance >> 50) % CELLS;
    either(first_owns[at] ^ me, &cells[at].left, &cells[at].right, i);
    x = differs((unsigned)(chance >> 13) & 1, own, &own[1], x);
  }
  return (void *)(unsigned long)(x & 1);
}

int main(int argc, char **argv) {
  if (argc > 1)
    rounds = (unsigned)atoi(argv[1]);
  unsigned long long chance = 1234567;
  for (unsigned i = 0; i < CELLS; ++i) {
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    first_owns[i] = chance >> 20 & 1;
  }
  pthread_t other;
  if (pthread_barrier_init(&together, NULL, 2) || pthread_create(&other, NULL, work, &cells))
    return 2;
  work(NULL);
  pthread_join(other, NULL);
  unsigned sum = 0;
  for (unsigned i = 0; i < CELLS; ++i)
    sum = sum * 31 + cells[i].left * 7 + cells[i].right + cells[i].both[0] + cells[i].both[1];
  printf("%u\n", sum);
}
