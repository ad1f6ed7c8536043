// Branches by chance around accesses to memory that is there on one way only.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALONE __attribute__((noinline)) static

typedef int vector __attribute__((vector_size(16)));
struct node {
  struct node *next;
  unsigned value;
  _Bool flag;
};

// Each is a branch and nothing else. Pointers are null, or to memory that can only be read, where they must not be used.
ALONE void adds(unsigned chance, unsigned *to, unsigned x) {
  if (chance & 1)
    *to += x;
}
ALONE unsigned follows(unsigned chance, struct node *n, unsigned x) {
  if (chance & 1)
    x = n->next->value * 3 + n->value;
  return x;
}
ALONE void either(unsigned chance, unsigned *a, unsigned *b, unsigned x) {
  if (chance & 1)
    *a -= x;
  else
    *b += x * 5;
}
ALONE unsigned differs(unsigned chance, unsigned *a, unsigned *b, unsigned x) {
  if (chance & 1) {
    a[0] = x;
    a[1] = x + 1;
  } else {
    x ^= *b;
  }
  return x;
}
ALONE unsigned flag(unsigned chance, struct node *n, unsigned x) {
  if (chance & 1)
    x += n->flag ? 7 : 9;
  return x;
}
ALONE void wide(unsigned chance, vector *to, vector x) {
  if (chance & 1)
    *to += x;
}
ALONE void real(unsigned chance, double *to, double x) {
  if (chance & 1)
    *to = *to * 0.5 + x;
}
ALONE void narrow(unsigned chance, char *to, char x) {
  if (chance & 1)
    to[0] ^= to[1] + x;
}
ALONE void within(unsigned chance, unsigned *a, unsigned *b, unsigned x) {
  if (chance & 1) {
    *a += x;
    if (chance & 2)
      *b ^= x;
  }
}

ALONE unsigned both(unsigned chance, struct node *n, unsigned x) {
  if ((chance & 1) && n->value > 5)
    x ^= n->value + 1;
  return x;
}
ALONE unsigned deep(unsigned chance, struct node *n, unsigned *a, unsigned x) {
  if ((chance & 1) && n->value > 5) {
    x += 3;
    if (n->next)
      *a = x;
    else
      x -= *a;
  }
  return x;
}

// Two tests, of which both rarely succeed, become one branch: what follows may not be executed without need.
ALONE unsigned rarely(unsigned x) { return x / 3 + 1; }
ALONE unsigned joins(unsigned chance, struct node *n, unsigned x) {
  unsigned before = x + 1;
  if ((chance & 1) && (before = x + 2, n->value > 5))
    x = rarely(x);
  return x ^ before;
}

// These stay branches: what they access is accessed where they say, and when.
ALONE void keeps_volatile(unsigned chance, volatile unsigned *to, unsigned x) {
  if (chance & 1)
    *to = *to * 3 + x;
}
ALONE void keeps_atomic(unsigned chance, _Atomic unsigned *to, unsigned x) {
  if (chance & 1)
    atomic_store_explicit(to, x, memory_order_relaxed);
}
ALONE void keeps_division(unsigned chance, unsigned *to, unsigned x) {
  if (chance & 1)
    *to = *to * 3 / x;
}

// So do these where processors move no such value by a condition: the select would be a branch again, behind the work of both ways.
ALONE double keeps_real(unsigned chance, const double *from, double x) {
  if (chance & 1)
    x += *from;
  return x;
}
ALONE void keeps_lanes(unsigned chance, const vector *from, vector *to) {
  vector x = *to;
  if (chance & 1)
    x = x * *from + 5;
  *to = x;
}
ALONE void real_either(unsigned chance, double *a, double *b, double x, double y) {
  if (chance & 1)
    *a = x;
  else
    *b = y;
}

// A pointer that is a register.
__attribute__((noinline, swiftcall)) static int keeps_error(unsigned chance, __attribute__((swift_context)) void *context,
                                                            __attribute__((swift_error_result)) void **error, void **to) {
  if (chance & 1) {
    *error = *to;
    return 0;
  }
  return 1;
}
__attribute__((swiftcall)) static void *failed(unsigned chance, void **to) {
  void *error = NULL;
  keeps_error(chance, NULL, &error, to);
  return error;
}

// Without a branch.
ALONE void *pick(unsigned chance, void *yes, void *no) {
  void *of[2] = {no, yes};
  void *volatile *picked = of;
  return picked[chance & 1];
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 4000000;
  unsigned long long chance = 88172645463325252;
  unsigned sum = 0;
  static const unsigned constant[2] = {11, 13};
  unsigned cells[4] = {1, 2, 3, 4}, watched = 0;
  _Atomic unsigned shared = 0;
  struct node last = {NULL, 5, 1}, first = {&last, 6, 0};
  vector lanes = {1, 2, 3, 4};
  double number = 1, halves[4] = {0.5, 1.5, 2.5, 3.5};
  char text[2] = {1, 2};
  for (unsigned i = 0; i < rounds; ++i) {
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    // A bit for each: after the first branch, another by the same bit would be foreseen.
    unsigned c = (unsigned)(chance >> 20);
    adds(c, pick(c, &cells[i & 3], (void *)constant), i);
    c >>= 2, sum += follows(c, pick(c, &first, i & 4 ? &last : NULL), i);
    c >>= 2, either(c, pick(c, &cells[0], NULL), pick(c, (void *)constant, &cells[i & 1]), i);
    c >>= 2, sum = differs(c, pick(c, &cells[2], NULL), pick(c, NULL, &cells[i & 3]), sum);
    last.flag = i & 1;
    c >>= 2, sum = flag(c, pick(c, &last, NULL), sum);
    c >>= 2, wide(c, pick(c, &lanes, NULL), (vector){1, 2, 3, (int)i});
    c >>= 2, real(c, pick(c, &number, NULL), i & 7);
    c >>= 2, narrow(c, pick(c, text, NULL), (char)i);
    c >>= 2, within(c, pick(c, &cells[i & 3], NULL), pick(c & c >> 1, &cells[i & 1], NULL), i);
    c >>= 3, sum = both(c, pick(c, i & 7 ? &first : &last, NULL), sum);
    c = (unsigned)(chance >> 43), sum = deep(c, pick(c, i & 7 ? &first : &last, NULL), pick(c, &cells[i & 3], NULL), sum);
    c >>= 2, sum += joins(c, pick(c, i & 7 ? &last : &first, NULL), sum);
    c >>= 2, keeps_volatile(c, pick(c, &watched, NULL), i);
    c >>= 2, keeps_atomic(c, pick(c, &shared, NULL), i);
    c = (unsigned)(chance >> 12), number = keeps_real(c, pick(c, &halves[i & 3], NULL), number);
    c >>= 2, keeps_lanes(c, pick(c, &(vector){1, 3, 5, (int)i}, NULL), &lanes);
    c >>= 2, real_either(c, pick(c, &halves[i & 1], NULL), pick(c, NULL, &halves[i & 3]), i, number);
    void *error = &sum;
    c >>= 2, sum += failed(c, pick(c, &error, NULL)) == &sum;
    c >>= 2, keeps_division(c, &watched, c & 1 ? i + 1 : 0);
  }
  printf("%u %u %u %u %u %u %u ", sum, cells[0], cells[1], cells[2], cells[3], watched, shared);
  printf("%d %d %d %d %.17g %.17g %d %d\n", lanes[0], lanes[1], lanes[2], lanes[3], number, halves[1] + halves[2], text[0], text[1]);
}
