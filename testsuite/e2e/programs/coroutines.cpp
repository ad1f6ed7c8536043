// Generators: LLVM makes functions of their parts, and calls of intrinsics.
#include <coroutine>
#include <cstdio>
#include <cstdlib>

struct generator {
  struct promise_type {
    unsigned value = 0;
    generator get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(unsigned next) {
      value = next;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
  std::coroutine_handle<promise_type> handle;
  ~generator() { handle.destroy(); }
};

static generator squares(unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (i % 3)
      co_yield i *i % 97;
}

int main(int argc, char **argv) {
  unsigned sum = 0;
  for (auto all = squares(argc > 1 ? atoi(argv[1]) : 20000000); all.handle.resume(), !all.handle.done();)
    sum += all.handle.promise().value;
  printf("%u\n", sum);
}
