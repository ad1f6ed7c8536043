// Hot code around code that hardly runs: what is placed apart must still do its work, and be unwound through.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

[[gnu::noinline]] unsigned leaf(unsigned x) { return (x * 7) ^ (x >> 3); }

// Between two hot functions, and never called.
[[gnu::noinline]] unsigned unused(unsigned x) {
    if (x > 5)
        std::puts("unused");
    return leaf(x) + 1;
}

struct Guard {
    unsigned &left;
    ~Guard() { left++; }
};

[[gnu::noinline]] unsigned hot(unsigned n, unsigned seed, unsigned &left) {
    Guard guard{left};
    unsigned sum = seed;
    for (unsigned i = 0; i < n; i++) {
        if (sum == 123456789u + n) {
            std::printf("found at %u\n", i);
            std::printf("with %u\n", seed);
            if (i > n)
                std::abort();
        }
        sum = sum * 5 + leaf(i);
    }
    if (seed == 59999)
        throw std::runtime_error("once");
    return sum;
}

int main(int argc, char **) {
    unsigned sum = 0, caught = 0, left = 0;
    for (unsigned i = argc; i < 60001; i++) {
        try {
            sum ^= hot(100, i, left);
        } catch (const std::exception &e) {
            caught++;
            std::puts(e.what());
        }
    }
    if (argc > 1)
        sum += unused(sum);
    std::printf("%u %u %u\n", sum, caught, left);
}
