// Classifies the bytes that it reads, again and again: what it does depends on its standard input alone, unless an
// argument asks for something that differs from run to run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static unsigned classify(unsigned char byte, unsigned state) {
  if (byte & 1)
    state = state * 3 + 1;
  else
    state ^= byte << 3;
  if (byte < 64)
    state += 17;
  if (state % 7 == 0)
    state ^= 0x5555;
  return state;
}

int main(int argc, char **argv) {
  static unsigned char bytes[4096];
  size_t length = fread(bytes, 1, sizeof bytes, stdin);
  int rounds = argc > 1 ? atoi(argv[1]) : 2000;
  unsigned state = 1;
  for (int round = 0; round < rounds; ++round)
    for (size_t at = 0; at < length; ++at)
      state = classify(bytes[at], state);
  printf("%zu %u\n", length, state);
  if (argc > 2 && !strcmp(argv[2], "differ"))
    printf("%d\n", (int)getpid());
  return argc > 2 && !strcmp(argv[2], "fail") ? 3 : 0;
}
