// An interpreter with a switch in a loop. Two operations contain loops, so the loop of the dispatch is not innermost.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int run(const unsigned char *code, unsigned char *memory, long steps) {
  int sum = 1;
  for (;;) {
    switch (*code++) {
    case 0: sum += memory[*code++]; break;
    case 1: sum ^= *code++; break;
    case 2: memory[*code++] = (unsigned char)sum; break;
    case 3:
      for (int i = 0; i < (sum & 3); ++i)
        memory[i] += sum;
      break;
    case 4: sum *= 3; break;
    case 5: sum >>= 1; break;
    case 6:
      for (int i = 0; i < 9 && memory[i] > sum; ++i)
        sum ^= i;
      break;
    case 7: sum = -sum; break;
    case 8:
      if (--steps <= 0)
        return sum;
      code -= *code;
      break;
    case 9: return -1;
    case 10: abort();
    default: return -2;
    }
  }
}

int main(int argc, char **argv) {
  static const unsigned char code[] = {0, 1, 1, 77, 2, 5, 3, 4, 5, 6, 7, 0, 5, 4, 2, 9, 5, 8, 18};
  static unsigned char memory[256];
  printf("%d\n", run(code, memory, argc > 1 ? atol(argv[1]) : 100000));
  return 0;
}
