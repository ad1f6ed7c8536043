// Narrows numbers to two widths. Training uses one of them.
#include <stdio.h>
#include <stdlib.h>

static int in[4096];
static signed char bytes[4096];
static short words[4096];

static void to_bytes(signed char *to, const int *from, int count, int offset) {
  for (; count--; from++, to++) {
    int x = *from >> 20;
    if (x > 127)
      *to = 127;
    else if (x < -128)
      *to = -128;
    else
      *to = x;
    if (offset)
      *to += offset;
  }
}

static void to_words(short *to, const int *from, int count, int offset) {
  for (; count--; from++, to++) {
    int x = *from >> 12;
    if (x > 32767)
      *to = 32767;
    else if (x < -32768)
      *to = -32768;
    else
      *to = x;
    if (offset)
      *to += offset;
  }
}

__attribute__((noinline)) void clamp(int format, int count) {
  if (format & 1)
    to_bytes(bytes, in, count, format & 2 ? 64 : 0);
  else
    to_words(words, in, count, format & 2 ? 64 : 0);
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20000;
  for (int i = 0; i < 4096; i++)
    in[i] = i * 777777 - 1400000000;
  for (int i = 0; i < rounds; i++)
    clamp(argc > 2, 4096);
  long sum = 0;
  for (int i = 0; i < 4096; i++)
    sum = sum * 3 + bytes[i] + words[i];
  printf("%ld\n", sum);
}
