/* An interpreter with a computed goto behind each operation. */
#include <stdint.h>
#include <stdio.h>

#define EIGHT(X, N) X(N##0) X(N##1) X(N##2) X(N##3) X(N##4) X(N##5) X(N##6) X(N##7)
#define LABEL(N) &&op##N,
#define NEXT goto *labels[*pc++]

__attribute__((noinline)) static uint64_t run(const unsigned char *code, uint64_t turns, uint64_t *stack) {
  static void *const labels[] = {EIGHT(LABEL, 1) EIGHT(LABEL, 2) EIGHT(LABEL, 3) EIGHT(LABEL, 4) EIGHT(LABEL, 5) &&end};
  const unsigned char *pc = code;
  uint64_t a = turns, b = 1, *sp = stack;
  NEXT;
#define OPERATIONS(N)                                                                                                  \
  op##N##0 : a += b * N;                                                                                               \
  NEXT;                                                                                                                \
  op##N##1 : a ^= b >> N;                                                                                              \
  NEXT;                                                                                                                \
  op##N##2 : *sp++ = a;                                                                                                \
  b += N;                                                                                                              \
  NEXT;                                                                                                                \
  op##N##3 : if (sp > stack) a += *--sp;                                                                               \
  NEXT;                                                                                                                \
  op##N##4 : b = b * (2 * N + 1) + a;                                                                                  \
  NEXT;                                                                                                                \
  op##N##5 : if (a & 1 << N) {                                                                                         \
    b -= N;                                                                                                            \
    NEXT;                                                                                                              \
  }                                                                                                                    \
  a -= N;                                                                                                              \
  NEXT;                                                                                                                \
  op##N##6 : a = a << N | a >> (64 - N);                                                                               \
  NEXT;                                                                                                                \
  op##N##7 : pc += a >> 63;                                                                                            \
  b ^= a;                                                                                                              \
  NEXT;
  OPERATIONS(1)
  OPERATIONS(2)
  OPERATIONS(3)
  OPERATIONS(4)
  OPERATIONS(5)
end:
  if (--turns == 0)
    return a ^ b;
  pc = code;
  NEXT;
}

int main(void) {
  static unsigned char code[4002];
  static uint64_t stack[4000 + 1];
  uint32_t random = 12345;
  for (int i = 0; i < 4000; i++) {
    random = random * 1664525 + 1013904223;
    code[i] = (random >> 16) % 32;
    if (code[i] % 8 == 2)
      code[i] = 3; /* nothing is pushed: the stack is as it was at the end of a turn */
  }
  code[4000] = code[4001] = 40;
  printf("%llu\n", (unsigned long long)run(code, 30000, stack));
}
