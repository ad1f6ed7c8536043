// What several translation units have in common.
#ifndef COUNT_INLINE_H
#define COUNT_INLINE_H
#include "count_marks.h"
template <class T> struct Shape {
  T x;
  explicit Shape(T x) : x(x) {}
  virtual ~Shape() { MARK(0); }
  virtual T area(int n) {
    T sum = 0;
    for (int i = 0; i < n; ++i) {
      if (i & 1) {
        MARK(1);
        sum += x;
      } else {
        MARK(2);
      }
    }
    return sum;
  }
};
inline int shared(int n) {
  static int calls;
  if (n > 3) {
    MARK(3);
    return n + ++calls;
  }
  MARK(4);
  return n;
}
int other(int n);
#endif
