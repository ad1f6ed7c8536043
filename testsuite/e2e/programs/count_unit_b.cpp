#include "count_inline.h"

struct Late {
  ~Late() { MARK(8); }
};
static Late late;

int other(int n) {
  Shape<int> shape(2);
  int sum = shape.area(n);
  for (int i = 0; i < n; ++i)
    sum += shared(i);
  return sum;
}
