#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
__attribute__((noinline)) static int thrower(int n) {
    if (n == 0) throw std::runtime_error("zero");
    std::string keep(n, 'k');
    return thrower(n - 1) + (int)keep.size();
}
int throws() {
    int caught = 0;
    for (int i = 0; i < 3; ++i) try { thrower(i + 2); } catch (const std::exception &e) { caught += e.what()[0]; }
    return caught;
}
static jmp_buf there;
__attribute__((noinline)) static void jump(int n) { if (n == 0) longjmp(there, 7); jump(n - 1); }
int jumps() {
    volatile int sum = 0;
    for (volatile int i = 0; i < 20; ++i) { int r = setjmp(there); if (r == 0) jump(i); else sum = sum + r; }
    return sum;
}
int dispatches() {
    static const void *const labels[] = {&&add, &&sub, &&mul, &&end};
    unsigned char code[600];
    for (int i = 0; i < 599; ++i) code[i] = (i * 7 + i / 3) % 3;
    code[599] = 3;
    int pc = 0, a = 1;
    goto *labels[code[pc++]];
add: a += pc; goto *labels[code[pc++]];
sub: a ^= pc << 3; goto *labels[code[pc++]];
mul: a = a * 31 + (a >> 5); goto *labels[code[pc++]];
end: return a & 0xffff;
}
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int recurses() {
    std::map<std::string, int> m;
    for (int i = 0; i < 60; ++i) m[std::to_string(i * 37 % 61)] += i;
    int s = 0;
    for (auto &p : m) s += p.second;
    return fib(12) + s;
}
int floats() {
    std::vector<double> v;
    for (int i = 1; i < 60; ++i) v.push_back(std::sin(i * .1) + std::exp(-i * .2) + std::pow(i, .3) + std::log(i) + std::atan2(i, 3));
    long double x = 1;
    for (double d : v) x = x * 1.0000001L + sqrtl(fabsl((long double)d)) - fmodl(x, 3.0L) + (x > 2 ? 1 : 0);
    char buffer[64];
    snprintf(buffer, sizeof buffer, "%.18Lf", x);
    float f = 0;
    for (char c : buffer) f += sinf(c) * 0.5f;
    return (int)f & 0xff;
}
}
