// Coroutines.
#include "count_marks.h"
#include <coroutine>
#include <cstdio>
#include <exception>

struct Generator {
  struct promise_type {
    int value;
    Generator get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int v) {
      value = v;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { MARK(5); }
  };
  std::coroutine_handle<promise_type> handle;
};

static Generator count(int n) {
  for (int i = 0; i < n; ++i) {
    MARK(0);
    if (i & 1) {
      MARK(1);
      co_yield i;
    } else {
      MARK(2);
      co_yield -i;
    }
    if (i == 17)
      throw 3;
  }
  MARK(3);
}

int main() {
  int sum = 0;
  for (int n = 0; n < 20; ++n) {
    Generator g = count(n);
    for (int i = 0; i < n + 1 && !g.handle.done(); ++i) {
      g.handle.resume();
      MARK(4);
      sum = sum * 3 + g.handle.promise().value;
    }
    g.handle.destroy();
  }
  std::printf("%d\n", sum);
}
