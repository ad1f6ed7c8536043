// A library. -DNAME=x -DFIRST=n give its function's name and its marks.
#include "count_marks.h"

static int inner(int x) {
  if (x % 3) {
#if FIRST
    MARK(8);
#else
    MARK(0);
#endif
    return x + 1;
  }
#if FIRST
  MARK(9);
#else
  MARK(1);
#endif
  return x;
}

int NAME(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i)
    sum += inner(i);
  return sum;
}
