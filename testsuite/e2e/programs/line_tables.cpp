// A virtual call and a memory operation.
#include <cstdio>
#include <cstring>

struct Shape {
    virtual int area(int scale) = 0;
};

struct Square : Shape {
    int area(int scale) override { return scale * scale; }
};

struct Circle : Shape {
    int area(int scale) override { return 3 * scale * scale; }
};

__attribute__((noinline)) int area_of(Shape *shape, int scale) { return shape->area(scale) + 1; }

__attribute__((noinline)) bool comes_first(const char *a, const char *b, size_t length) {
    return memcmp(a, b, length) < 0;
}

int main(int argc, char **) {
    Shape *shapes[2] = {new Square, new Circle};
    char a[64] = "hello world", b[64] = "hello worlx";
    long sum = 0;
    for (int i = 0; i < 3000000; i++) {
        sum += area_of(shapes[i % 16 == 0], i % 7);
        sum += comes_first(a, b, 10 + argc);
    }
    printf("%ld\n", sum);
}
