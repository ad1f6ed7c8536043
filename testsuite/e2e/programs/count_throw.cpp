// Exceptions, by the first argument.
#include "count_marks.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

namespace {

struct Guard {
  int n;
  explicit Guard(int n) : n(n) { MARK(0); }
  ~Guard() {
    if (n & 1)
      MARK(1);
    else
      MARK(2);
  }
};

NOINLINE void thrower(int n) {
  MARK(3);
  if (n % 3 == 0) {
    MARK(4);
    throw std::runtime_error("three");
  }
  if (n % 5 == 0) {
    MARK(5);
    throw n;
  }
  MARK(6);
}

// Nothing to clean up.
NOINLINE void bare(int n) {
  MARK(7);
  for (int i = 0; i < n; ++i) {
    MARK(8);
    thrower(i + 1);
    AFTER(9);
  }
  MARK(10);
}

NOINLINE void guarded(int n) {
  Guard guard(n);
  MARK(11);
  std::string text(n + 20, 'x');
  bare(n);
  AFTER(12);
}

NOINLINE int rethrows(int n) {
  try {
    MARK(13);
    guarded(n);
    AFTER(14);
  } catch (const std::runtime_error &) {
    MARK(15);
    if (n & 1) {
      MARK(16);
      throw;
    }
  }
  AFTER(17);
  return 1;
}

NOINLINE int catches(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    try {
      MARK(18);
      sum += rethrows(i);
      AFTER(19);
    } catch (int value) {
      MARK(20);
      sum += 10;
    } catch (const std::exception &) {
      MARK(21);
      sum += 1000;
    }
    try {
      bare(i);
    } catch (...) {
      MARK(22);
      ++sum;
    }
  }
  return sum;
}

NOINLINE void quiet(int n) noexcept {
  MARK(23);
  bare(n);
  AFTER(24);
}

struct ThrowsInDestructor {
  ~ThrowsInDestructor() noexcept(false) {
    MARK(25);
    thrower(3);
  }
};
NOINLINE void destroys() {
  ThrowsInDestructor it;
  MARK(26);
}

template <class T> NOINLINE T power(T base, int n) {
  MARK(27);
  return n == 0 ? T(1) : base * power(base, n - 1);
}

void ended() {
  MARK(28);
  std::_Exit(9);
}
void ended_by_abort() {
  MARK(28);
  std::abort();
}

} // namespace

int main(int, char **argv) {
  const char *how = argv[1];
  std::printf("%d\n", catches(12));
  for (int i = 0; i < 3; ++i)
    try {
      destroys();
    } catch (...) {
      MARK(29);
    }
  std::printf("%g %d\n", power(1.5, 3), power(3, 4));
  std::fflush(stdout);
  if (!std::strcmp(how, "noexcept"))
    quiet(4);
  if (!std::strcmp(how, "uncaught"))
    guarded(4);
  if (!std::strcmp(how, "handler")) {
    std::set_terminate(ended);
    quiet(4);
  }
  if (!std::strcmp(how, "aborts")) {
    std::set_terminate(ended_by_abort);
    guarded(4);
  }
  if (!std::strcmp(how, "exit_in_catch"))
    try {
      guarded(4);
    } catch (...) {
      MARK(30);
      std::exit(3);
    }
  return 0;
}
