// Many paths; the arguments are their seed and how often.
#include <stdio.h>
#include <stdlib.h>

static unsigned seed;
static unsigned roll(void) { return seed = seed * 1664525u + 1013904223u; }
volatile unsigned sink;

// 2^20 paths.
__attribute__((noinline)) static void twenty(unsigned bits) {
#define BIT(i) if (bits >> i & 1) sink = i;
  BIT(0) BIT(1) BIT(2) BIT(3) BIT(4) BIT(5) BIT(6) BIT(7) BIT(8) BIT(9)
  BIT(10) BIT(11) BIT(12) BIT(13) BIT(14) BIT(15) BIT(16) BIT(17) BIT(18) BIT(19)
}

// 2^60 paths: cut somewhere.
__attribute__((noinline)) static void sixty(unsigned a, unsigned b) {
#define BOTH(i) if (a >> i & 1) sink = i; if (b >> i & 1) sink = i + 32;
  BOTH(0) BOTH(1) BOTH(2) BOTH(3) BOTH(4) BOTH(5) BOTH(6) BOTH(7) BOTH(8) BOTH(9)
  BOTH(10) BOTH(11) BOTH(12) BOTH(13) BOTH(14) BOTH(15) BOTH(16) BOTH(17) BOTH(18) BOTH(19)
  BOTH(20) BOTH(21) BOTH(22) BOTH(23) BOTH(24) BOTH(25) BOTH(26) BOTH(27) BOTH(28) BOTH(29)
}

// Two branches take turns.
__attribute__((noinline)) static void turns(int n) {
  for (int i = 0; i < n; ++i)
    if (i & 1)
      sink = 1;
    else
      sink = 2;
}

// In a loop, 2^18 paths an iteration.
__attribute__((noinline)) static void inside(int n) {
  for (int i = 0; i < n; ++i) {
    unsigned bits = roll() >> 12;
    BIT(0) BIT(1) BIT(2) BIT(3) BIT(4) BIT(5) BIT(6) BIT(7) BIT(8) BIT(9)
    BIT(10) BIT(11) BIT(12) BIT(13) BIT(14) BIT(15) BIT(16) BIT(17)
  }
}

int main(int argc, char **argv) {
  seed = atoi(argv[1]);
  int n = atoi(argv[2]);
  for (int i = 0; i < n; ++i)
    twenty(roll() >> 12);
  for (int i = 0; i < n; ++i) {
    unsigned a = roll() >> 2;
    sixty(a, roll() >> 2);
  }
  turns(101);
  inside(n);
  printf("%u\n", seed);
  return 0;
}
