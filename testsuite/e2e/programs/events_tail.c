// Functions that end in a jump to a function that is not annotated, which returns to their caller.
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

__attribute__((noinline)) static void work(unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++)
    sink += i * i;
}

__attribute__((noinline)) static char *make(unsigned size) {
  char *made = malloc(size);
  made[0] = 1;
  work(10);
  return made;
}

__attribute__((noinline)) static void often(void) {
  char *made = make(64);
  work(20);
  free(made);
}

__attribute__((noinline)) static void seldom(void) {
  char *made = make(300);
  work(20);
  free(made);
}

int main(void) {
  for (unsigned i = 0; i < 3000000; i++)
    if (i % 4)
      often();
    else
      seldom();
  printf("%u\n", sink);
}
