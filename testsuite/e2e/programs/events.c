/* Events whose paths are known: page faults, calls and system calls that two paths lead to, in known shares.
   The argument says which: f(aults), c(alls), s(ystem calls). */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned sink;
static char *fresh;
static char reused[1 << 16];
enum { PAGE = 4096, PAGES = 1 << 12 };

/* Some 8 taken branches for each unit: the compiler unrolls the loop. */
__attribute__((noinline)) static void work(unsigned units) {
  for (unsigned i = 0; i < units * 30; ++i)
    sink += i;
}

/* Fresh pages only where the caller passes them. */
__attribute__((noinline)) static void fill(char *to) {
  to[0] = 1;
  work(1);
}

__attribute__((noinline)) static void faults(unsigned round) {
  static unsigned page;
  if (round % 4 == 0) {
    if (page == 0) {
      if (fresh)
        munmap(fresh, (size_t)PAGE * PAGES);
      fresh = mmap(0, (size_t)PAGE * PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      madvise(fresh, (size_t)PAGE * PAGES, MADV_NOHUGEPAGE);
    }
    fresh[(size_t)page * PAGE] = 1; /* the only fault */
    page = (page + 1) % PAGES;
    work(10);
  } else {
    fill(reused);
  }
}

__attribute__((noinline)) unsigned target(unsigned x) {
  return x * 3 + sink;
}

__attribute__((noinline)) static unsigned often(unsigned x) {
  work(1);
  return target(x) + 1;
}

__attribute__((noinline)) static unsigned seldom(unsigned x) {
  work(1);
  return target(x) + 2;
}

/* Three in four calls are often's. */
__attribute__((noinline)) static void calls(unsigned round) {
  if (round % 4 == 0)
    sink += seldom(round);
  else
    sink += often(round);
}

__attribute__((noinline)) static void long_way(void) {
  work(300);
  sink += 1;
}

__attribute__((noinline)) static void short_way(void) {
  work(30);
  sink += 2;
}

/* One in five system calls is after the long way, which has ten times as much work. */
__attribute__((noinline)) static void system_calls(unsigned random) {
  if (random % 5 == 0)
    long_way();
  else
    short_way();
  getppid();
}

__attribute__((noinline)) void seen_by_no_burst(unsigned x) {
  sink += x;
}

/* Once, and never the other way. */
__attribute__((noinline)) static void begin(unsigned rounds) {
  if (rounds > 10) {
    sink = 1;
    seen_by_no_burst(rounds);
  } else {
    seen_by_no_burst(0);
    sink = 2;
  }
}

int main(int argc, char **argv) {
  char which = argc > 1 ? argv[1][0] : 'c';
  unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 100000;
  uint64_t random = 7;
  begin(rounds);
  for (unsigned round = 0; round < rounds; ++round) {
    random = random * 6364136223846793005u + 1;
    unsigned number = (unsigned)(random >> 33);
    switch (which) {
    case 'f': faults(number); break;
    case 's': system_calls(number); break;
    default: calls(number);
    }
  }
  return 0;
}
