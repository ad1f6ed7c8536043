// Two calls that may throw, of one function, one of which is rare: LLVM makes one invoke of both.
#include <cstdio>

static long deleted;

struct Counted {
  ~Counted() { deleted++; }
};

__attribute__((noinline)) static void remove(long *values, long value, int n) {
  if (n < 0)
    throw 1;
  for (int i = 0; i < n; i++)
    if (values[i] == value)
      values[i] = 0, deleted++;
}

__attribute__((noinline)) long scan(long *a, long *b, long kept, int n) {
  long sum = 0;
  Counted counted;
  for (int i = 0; i < n; i++) {
    long left = a[i], right = b[i];
    if (left == 0 || right == 0) {
      if (left && left != kept)
        remove(a, left, n);
      else if (right && right != kept)
        remove(a, right, n);
    } else {
      sum ^= left + right;
    }
  }
  return sum;
}

int main() {
  enum { N = 1000 };
  static long a[N], b[N];
  long sum = 0;
  for (int round = 0; round < 100; round++) {
    for (int i = 0; i < N; i++) {
      a[i] = i % 3 && i != round ? 7 : 0;
      b[i] = i == round ? 9 : i % 5 ? 7 : 0;
    }
    sum += scan(a, b, 7, N);
  }
  std::printf("%ld %ld\n", sum, deleted);
}
