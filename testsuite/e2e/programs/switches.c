// Switches: with chance and in turn, and comparisons that the optimiser makes a switch of.
#include <stdio.h>
#include <stdlib.h>

#define ALONE __attribute__((noinline)) static

enum { LENGTH = 1 << 16 };

static unsigned char random_cases[LENGTH], turns[LENGTH];
static char text[LENGTH];

ALONE unsigned of_case(unsigned x, unsigned char which) {
  switch (which) {
  case 0: return x * 3 + 1;
  case 1: return x ^ (x >> 7);
  case 2: return (x << 5) - x;
  case 3: return x + (x >> 3) + 17;
  case 4: return ~x * 7;
  case 5: return x / 5 + 11;
  default: return x - 1;
  }
}

// Nothing tells the next case; half of all are case 4.
ALONE unsigned by_chance(unsigned x) {
  for (int i = 0; i < LENGTH; i++)
    switch (random_cases[i]) {
    case 0: x = x * 3 + 1; break;
    case 1: x ^= x >> 7; break;
    case 2: x = (x << 5) - x; break;
    case 3: x += (x >> 3) + 17; break;
    case 4: x = ~x * 7; break;
    case 5: x = x / 5 + 11; break;
    }
  return x;
}

// The last case tells the next one.
ALONE unsigned in_turn(unsigned x) {
  for (int i = 0; i < LENGTH; i++)
    switch (turns[i]) {
    case 0: x = x * 5 + 1; break;
    case 1: x ^= x >> 9; break;
    case 2: x = (x << 3) - x; break;
    case 3: x += (x >> 2) + 19; break;
    case 4: x = ~x * 9; break;
    case 5: x = x / 7 + 13; break;
    }
  return x;
}

// Comparisons of the program, which the optimiser makes one switch of. Most characters are others.
ALONE unsigned scan(unsigned x) {
  for (int i = 0; i < LENGTH; i++) {
    char c = text[i];
    if (c == '*')
      x *= 3;
    else if (c == '/')
      x = x / 3 + 11;
    else if (c == '%')
      x = x % 1000003 + 12;
    else if (c == '-')
      x -= 7;
    else
      x = x * 31 + (unsigned char)c;
  }
  return x;
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? atoi(argv[1]) : 300, x = 1, state = 12345;
  for (int i = 0; i < LENGTH; i++) {
    state = state * 1103515245 + 12345;
    unsigned chance = state >> 16;
    random_cases[i] = chance % 20 < 10 ? 4 : chance % 6;
    turns[i] = i % 6;
    text[i] = chance % 100 < 70 ? 'a' + chance % 7 : "*/%-"[chance % 4];
  }
  for (unsigned round = 0; round < rounds; round++) {
    x = of_case(x, round);
    x += by_chance(x) + in_turn(x) + scan(x);
  }
  printf("%u\n", x);
}
