#include "count_inline.h"
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

struct Early {
  Early() {
    MARK(5);
    shared(9);
  }
  ~Early() {
    MARK(6);
    shared(1);
  }
};
static Early early;
static thread_local Early of_thread;

static void run(int n) {
  Early *mine = &of_thread;
  if (mine && n > 2)
    MARK(7);
  Shape<long> shape(n);
  shared((int)shape.area(n));
}

int main() {
  Shape<int> s(3);
  long sum = s.area(10) + other(11);
  for (int i = 0; i < 7; ++i)
    sum += shared(i);
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i)
    threads.emplace_back(run, i);
  for (auto &thread : threads)
    thread.join();
  std::map<std::string, int> words;
  for (int i = 0; i < 50; ++i)
    words[std::to_string(i % 7)] += i;
  std::vector<int> values;
  for (auto &[word, count] : words)
    values.push_back(count);
  std::sort(values.begin(), values.end(), [](int a, int b) {
    return a > b;
  });
  std::printf("%ld %d\n", sum, values[0]);
}
