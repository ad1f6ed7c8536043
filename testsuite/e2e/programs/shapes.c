// Control flow that is hard to copy: values that live across merges, several entries of loops, edges that share a target.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static unsigned seed = 2463534242u;
NOINLINE static unsigned roll(unsigned below) {
  seed ^= seed << 13;
  seed ^= seed >> 17;
  seed ^= seed << 5;
  return seed % below;
}

// Values of both ways are used beyond several merges, and each merge's own value beyond the next.
NOINLINE static unsigned merges(unsigned x) {
  unsigned a, b, c, d;
  if (x & 1)
    a = roll(100) + 1;
  else
    a = x * 3;
  unsigned first = a ^ x;
  if (x & 2)
    b = a + roll(7);
  else
    b = first - a;
  unsigned second = b * 5 + first;
  if (x & 4) {
    c = second + a;
    d = roll(3);
  } else {
    c = b;
    d = first;
  }
  if (x & 8)
    return a * 3 + first * 5 + b * 7 + second * 11 + c * 13 + d * 17;
  return (a ^ first ^ b) + (second ^ c ^ d);
}

// A state machine: a switch in a loop, with states that share their code and fall through.
NOINLINE static int machine(const char *text) {
  enum { START, WORD, NUMBER, QUOTE, ESCAPE } state = START;
  int words = 0, sum = 0, number = 0, quoted = 0;
  for (const char *p = text;; ++p) {
    char c = *p;
    switch (state) {
    case ESCAPE:
      state = QUOTE;
      quoted += c == 'n' ? 10 : 1;
      break;
    case QUOTE:
      if (c == '"' || !c)
        state = START;
      else if (c == '\\')
        state = ESCAPE;
      else
        ++quoted;
      break;
    case NUMBER:
      if (c >= '0' && c <= '9') {
        number = number * 10 + c - '0';
        break;
      }
      sum += number;
      number = 0;
      state = START; // falls through
    case START:
      if (c >= '0' && c <= '9') {
        state = NUMBER;
        number = c - '0';
        break;
      }
      if (c == '"') {
        state = QUOTE;
        break;
      } // falls through
    case WORD:
      if ((c | 32) >= 'a' && (c | 32) <= 'z') {
        words += state == START;
        state = WORD;
      } else {
        state = START;
      }
    }
    if (!c)
      return words * 10000 + sum * 10 + quoted;
  }
}

// Two loops with two entries each, one in the other, with values that go round.
NOINLINE static unsigned tangled(unsigned n, unsigned into) {
  unsigned a = 1, b = 2, rounds = 0;
  switch (into % 4) {
  case 0: goto outer;
  case 1: goto inner;
  case 2: goto middle;
  }
outer:
  a = a * 3 + b;
  if (n % 5 == 1)
    goto middle;
inner:
  b ^= a >> 1;
  if (++rounds > 60)
    return a ^ b;
  if (n & 1) {
    n = n * 3 + 1;
    goto inner;
  }
middle:
  n /= 2;
  a += rounds;
  if (n > 3 && rounds % 7)
    goto inner;
  if (n > 0)
    goto outer;
  return a + b + rounds;
}

// Several slots of one switch to one target, which merges a different value for other ways to it.
NOINLINE static int slots(unsigned x) {
  int r;
  switch (x % 16) {
  case 0: case 3: case 6: case 9: case 12: r = 1; goto shared;
  case 1: case 4: r = (int)x; goto shared;
  case 2: r = 7; break;
  case 5: return -1;
  default: r = 2;
  shared:
    r += (int)(x & 3);
  }
  return r * 3;
}

// Computed jumps, with values that every target merges.
NOINLINE static unsigned threaded(const unsigned char *code) {
  static void *const table[] = {&&stop, &&add, &&twice, &&swap, &&skip};
  unsigned a = 1, b = 1, steps = 0;
#define NEXT \
  do { \
    if (++steps > 1000) \
      goto stop; \
    goto *table[*code++]; \
  } while (0)
  NEXT;
add:
  a += b + *code++;
  NEXT;
twice:
  b = b * 2 + (a & 1);
  if (b % 3 == 0)
    goto swap;
  NEXT;
swap: {
  unsigned t = a;
  a = b;
  b = t;
  NEXT;
}
skip:
  if (a > b)
    ++code;
  NEXT;
stop:
  return a * 31 + b + steps;
}

// Assembly that jumps, with a value that it makes and targets that other code reaches too.
NOINLINE static int assembly(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    int half;
#ifdef __aarch64__
    __asm__ goto("lsr %w0, %w1, #1\n\ttbnz %w1, #0, %l[odd]" : "=&r"(half) : "r"(i) : : odd);
#else
    __asm__ goto("mov %1, %0\n\tshr $1, %0\n\tjc %l[odd]" : "=r"(half) : "r"(i) : "cc" : odd);
#endif
    sum += half;
    if (i % 5)
      continue;
  odd:
    sum += half * 2 + 1;
  }
  return sum;
}

static jmp_buf point;
NOINLINE static void leave(int n) {
  if (n % 3 == 0)
    longjmp(point, n + 1);
}
// Returns twice, in a loop, with code before and after that several ways share.
NOINLINE static int twice(int n) {
  volatile int sum = 0, tries = 0;
  for (volatile int i = 0; i < n; ++i) {
    int value = setjmp(point);
    if (value == 0) {
      ++tries;
      if (i & 1)
        leave(i);
      else if (i & 2)
        leave(i * 3);
      sum += 1;
    } else {
      sum += value;
    }
    if (sum & 1)
      sum += 2;
  }
  return sum * 100 + tries;
}

NOINLINE static int pick(const char *kinds, ...) {
  va_list args;
  va_start(args, kinds);
  int sum = 0;
  for (; *kinds; ++kinds)
    switch (*kinds) {
    case 'i': sum += va_arg(args, int); break;
    case 'l': sum ^= (int)va_arg(args, long); break;
    case 'd': sum += (int)va_arg(args, double); break;
    case 's': sum += (int)strlen(va_arg(args, const char *)); break;
    default: sum = -sum;
    }
  va_end(args);
  return sum;
}

NOINLINE static int down(int n, int sum);
NOINLINE static int up(int n, int sum) {
  if (n <= 0)
    return sum;
  if (n % 3 == 0)
    sum += n;
  else if (n % 3 == 1)
    sum ^= n;
  __attribute__((musttail)) return down(n - 1, sum);
}
NOINLINE static int down(int n, int sum) {
  if (n & 1)
    sum = sum * 2 + 1;
  __attribute__((musttail)) return up(n - 1, sum);
}

// Loops that leave from several places, with what they found.
NOINLINE static int search(const int *a, int n, int wanted) {
  int best = -1, seen = 0;
  for (int i = 0; i < n; ++i) {
    if (a[i] == wanted)
      return i;
    if (a[i] < 0)
      break;
    for (int j = i; j < n; j += 3) {
      if (a[j] == wanted + 1)
        goto near;
      if (a[j] > best && a[j] < wanted)
        best = a[j];
      else if (a[j] % 7 == 0)
        continue;
      ++seen;
    }
  }
  return best * 100 + seen;
near:
  return best + 1000 + seen;
}

int main(void) {
  unsigned total = 0;
  for (unsigned i = 0; i < 300; ++i)
    total = total * 31 + merges(i) + tangled(i, i / 3) + (unsigned)slots(i);
  printf("%u\n", total);
  printf("%d\n", machine("some words, 12 numbers 345 \"and \\n a quote\" x9 \"open"));
  static const unsigned char code[] = {1, 5, 2, 2, 4, 3, 2, 1, 9, 3, 4, 2, 1, 1, 2, 2, 0};
  printf("%u %d %d\n", threaded(code), assembly(40), twice(20));
  printf("%d %d\n", pick("ildsx-i", 3, 70000000001L, 2.5, "four", 9), up(50, 0));
  int a[64];
  for (int i = 0; i < 64; ++i)
    a[i] = (int)roll(90) - (i == 60);
  for (int i = 0; i < 20; ++i)
    printf("%d ", search(a, 64, i * 5));
  printf("\n");
  return 0;
}
