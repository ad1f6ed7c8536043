// A loop that LLVM vectorises, and that always runs as often as the second argument says, which the compiler does not know.
#include <stdio.h>
#include <stdlib.h>

static int length;

__attribute__((noinline)) void add(unsigned char *restrict to, const unsigned char *restrict from, int times) {
  for (int k = 0; k < times; k++) {
    int n = length;
    for (int i = 0; i < n; i++)
      to[i] += from[i];
    to += n;
  }
}

int main(int argc, char **argv) {
  static unsigned char data[1 << 17];
  long calls = argc > 1 ? atol(argv[1]) : 20000;
  unsigned sum = 0;
  length = argc > 2 ? atoi(argv[2]) : 8;
  for (int i = 0; i < 65536; i++)
    data[i] = i * 2654435761u >> 24;
  for (long call = 0; call < calls; call++) {
    add(data + 66000 + call % 512, data, 100 + call % 64);
    sum = sum * 31 + data[66000 + call % 2000];
  }
  printf("%u\n", sum);
}
