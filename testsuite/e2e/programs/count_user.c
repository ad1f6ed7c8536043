// Uses libraries: linked with one, and where arguments name others, opens, closes and opens these again.
#include "count_marks.h"
#include <dlfcn.h>
#include <stdio.h>

int linked(int);

int main(int argc, char **argv) {
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    MARK(20);
    sum += linked(i);
  }
  for (int round = 0; round < 5; ++round)
    for (int i = 1; i < argc; ++i) {
      void *library = dlopen(argv[i], RTLD_NOW);
      if (!library) {
        puts(dlerror());
        return 1;
      }
      int (*opened)(int) = (int (*)(int))dlsym(library, "opened");
      sum += opened(7);
      AFTER(21);
      dlclose(library);
    }
  printf("%d\n", sum);
  return 0;
}
