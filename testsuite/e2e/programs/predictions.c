// Branches that go both ways: by chance, by turns, and by turns with calls in between. Weights alone hardly tell them apart.
#include <stdio.h>
#include <stdlib.h>

static unsigned calls;

__attribute__((noinline)) static void call(unsigned x) {
  if (x % 5 == 0)
    calls += x;
}

#define LOOP(NAME, NEXT, CALL)                                                                                         \
  __attribute__((noinline)) static unsigned NAME(unsigned rounds, unsigned state) {                                    \
    unsigned sum = 0, last = 1;                                                                                        \
    for (unsigned i = 0; i < rounds; ++i) {                                                                            \
      NEXT;                                                                                                            \
      CALL;                                                                                                            \
      if (state & 4) {                                                                                                 \
        sum += (state * 7) ^ i;                                                                                        \
        last = last * 3 + 1;                                                                                           \
      }                                                                                                                \
    }                                                                                                                  \
    return sum + last;                                                                                                 \
  }

LOOP(by_chance, (state ^= state << 13, state ^= state >> 17, state ^= state << 5), )
LOOP(by_turns, ++state, )
LOOP(between_calls, ++state, call(i))

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20000000;
  printf("%u %u %u\n", by_chance(rounds, 88172645), by_turns(rounds, 0), between_calls(rounds, 0));
}
