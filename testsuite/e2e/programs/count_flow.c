// Every shape of control flow, with marks.
#include "count_marks.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned seed = 12345;
static unsigned roll(unsigned below) {
  seed = seed * 1103515245 + 12345;
  return (seed >> 16) % below;
}

NOINLINE static int diamond(int x) {
  int r = 0;
  if (x & 1) {
    MARK(0);
    r += 3;
  } else {
    MARK(1);
    r -= 1;
  }
  if (x & 2)
    MARK(2);
  if (x > 7 && (x & 4 || x % 5 == 0))
    MARK(3);
  return r;
}

NOINLINE static int choose(unsigned x) {
  switch (x) {
  case 0:
  case 3:
  case 9:
    MARK(4);
    return 1;
  case 1:
    MARK(5);
    break;
  case 2:
    MARK(6); // falls through
  case 4:
    MARK(7);
    return 7;
  case 1000000:
    MARK(8);
    break;
  default:
    MARK(9);
  }
  return 2;
}

NOINLINE static int nested(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      if ((i ^ j) & 1) {
        MARK(10);
        continue;
      }
      for (int k = j; k < i; k += 2) {
        MARK(11);
        if (k == 7)
          break;
        ++sum;
      }
    }
    do {
      MARK(12);
      sum += roll(3);
    } while (roll(4));
  }
  return sum;
}

NOINLINE static int self_loop(volatile int *p, int n) {
  int sum = 0;
  do
    sum += *p;
  while (--n > 0);
  MARK(13);
  while (*p == 1 && roll(5))
    ++sum;
  return sum;
}

NOINLINE static int tree(int n) {
  MARK(14);
  if (n < 2) {
    MARK(15);
    return n;
  }
  return tree(n - 1) + tree(n - 2);
}

NOINLINE static int irreducible(int n, int into) {
  int sum = 0;
  if (into)
    goto middle;
top:
  MARK(16);
  sum += n;
  if (roll(3) == 0)
    goto out;
middle:
  MARK(17);
  --n;
  if (n > 0)
    goto top;
out:
  MARK(18);
  return sum;
}

// An interpreter whose every instruction has an indirect branch of its own.
NOINLINE static int interpret(const unsigned char *code) {
  static void *const table[] = {&&halt, &&push, &&add, &&dup, &&jump_if, &&dec};
  int stack[16], *sp = stack;
#define NEXT goto *table[*code++]
  NEXT;
push:
  MARK(20);
  *sp++ = *code++;
  NEXT;
add:
  MARK(21);
  --sp;
  sp[-1] += sp[0];
  NEXT;
dup:
  MARK(22);
  *sp = sp[-1];
  ++sp;
  NEXT;
dec:
  MARK(23);
  --sp[-1];
  NEXT;
jump_if:
  MARK(24);
  if (*--sp)
    code -= code[0];
  else
    ++code;
  NEXT;
halt:
  MARK(25);
  return sp > stack ? sp[-1] : 0;
}

// One indirect branch, in a loop.
NOINLINE static int dispatch(int n) {
  static void *const table[] = {&&a, &&b, &&c};
  int sum = 0;
again:
  if (n-- == 0)
    return sum;
  goto *table[roll(3)];
a:
  MARK(26);
  sum += 1;
  goto again;
b:
  MARK(27);
  sum += 2;
c:
  MARK(28);
  sum += 3;
  goto again;
}

typedef int (*function)(int);
NOINLINE static int twice(int x) { MARK(29); return 2 * x; }
NOINLINE static int negate(int x) { MARK(30); return -x; }
static inline int small(int x) {
  if (x > 3) {
    MARK(31);
    return 1;
  }
  MARK(32);
  return 0;
}
NOINLINE static int indirect(int n) {
  static const function table[] = {twice, negate, twice};
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += table[roll(3)](i);
    sum += small(i % 6);
    AFTER(33);
  }
  return sum;
}

NOINLINE static int sum_of(int n, ...) {
  va_list args;
  va_start(args, n);
  int sum = 0;
  while (n--) {
    int x = va_arg(args, int);
    if (x < 0)
      MARK(34);
    sum += x;
  }
  va_end(args);
  return sum;
}

NOINLINE static int odd(unsigned n);
NOINLINE static int even(unsigned n) {
  MARK(35);
  if (n == 0)
    return 1;
  __attribute__((musttail)) return odd(n - 1);
}
NOINLINE static int odd(unsigned n) {
  MARK(36);
  if (n == 0)
    return 0;
  __attribute__((musttail)) return even(n - 1);
}

NOINLINE static int assembly(int x) {
  int r = 0;
  for (int i = 0; i < x; ++i) {
#ifdef __aarch64__
    __asm__ goto("tbnz %w0, #0, %l1" : : "r"(i) : : taken);
#else
    __asm__ goto("test $1, %0\n\tjnz %l1" : : "r"(i) : "cc" : taken);
#endif
    MARK(37);
    continue;
  taken:
    MARK(38);
    ++r;
  }
  return r;
}

// More paths than an array is made for.
NOINLINE static int many(unsigned bits) {
  int r = 0;
#define BIT(i) if (bits >> i & 1) { r ^= i * 77; count_sink = r; }
  BIT(0) BIT(1) BIT(2) BIT(3) BIT(4) BIT(5) BIT(6) BIT(7)
  MARK(39);
  BIT(8) BIT(9) BIT(10) BIT(11) BIT(12) BIT(13)
  BIT(14) BIT(15) BIT(16) BIT(17)
  if (bits >> 18 & 1)
    MARK(40);
  return r;
}

static void unused(int x) {
  if (x)
    MARK(41);
}
void (*volatile keep)(int) = unused;

NOINLINE static int matrix(int n) {
  int a[8][8] = {{0}}, sum = 0;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      a[i][j] = i * n + j;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < 8; ++k)
        sum += a[i][k] * a[k][j];
  MARK(42);
  return sum;
}

int main(void) {
  long total = 0;
  for (int i = 0; i < 100; ++i) {
    total += diamond(roll(64));
    total += choose(roll(12));
    MARK(43);
  }
  choose(1000000);
  volatile int one = 1;
  total += nested(12) + self_loop(&one, 40) + self_loop(&one, 0) + tree(12);
  for (int i = 0; i < 20; ++i)
    total += irreducible(i, i & 1);
  // Counts down from 5, then adds 9.
  static const unsigned char code[] = {1, 5, 5, 3, 4, 3, 1, 9, 2, 0};
  total += interpret(code);
  total += dispatch(200) + indirect(60) + sum_of(4, 1, -2, 3, -4) + even(11) + odd(6) + assembly(31) + matrix(3);
  for (int i = 0; i < 3000; ++i)
    total += many(roll(1 << 15) * 2654435761u);
  printf("%ld\n", total);
  return 0;
}
