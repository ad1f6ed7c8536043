// Calls a function in assembly, which has a symbol within.
#include <stdio.h>

unsigned sum_to(unsigned n);

__attribute__((noinline)) unsigned call(unsigned n) { return sum_to(n % 64 + 1); }

int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 1000000; i++)
    sum = sum * 3 + call(i + sum);
  printf("%u\n", sum);
  return 0;
}
