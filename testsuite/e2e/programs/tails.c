// Calls at the ends of blocks: some return at once and become jumps, others go on.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) unsigned odd(unsigned x) { return x * 3 + 1; }
__attribute__((noinline)) unsigned even(unsigned x) { return x / 2 + 9; }
__attribute__((noinline)) unsigned mix(unsigned x) { return x * 1103515245u + 12345u; }

__attribute__((noinline)) unsigned choose(unsigned x) {
  if (x >> 16 & 1)
    return odd(x ^ 5);
  return even(x + 3);
}

__attribute__((noinline)) unsigned go_on(unsigned x, int n) {
  for (int i = 0; i < n; ++i) {
    if (x >> 17 & 1)
      x = odd(x);
    else
      x = even(x);
    x = mix(x);
  }
  return x;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20000;
  unsigned x = 1;
  for (int r = 0; r < rounds; ++r)
    x = choose(mix(go_on(x, 50)));
  printf("%u\n", x);
  return 0;
}
