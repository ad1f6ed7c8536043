// Three hot calls share a landing pad, and only the first one throws, from within another function.
#include <cstdio>

struct End {
    int at;
};

__attribute__((noinline)) void pop(int i) {
    if (i % 8 == 3)
        throw End{i};
}

__attribute__((noinline)) int sense(int i) {
    pop(i);
    return i % 3;
}

__attribute__((noinline)) unsigned scan(unsigned i) {
    unsigned sum = 1;
    for (unsigned j = 0; j < 40 + i % 7; j++) {
        if ((sum >> 3 & 7) == 5)
            sum ^= i;
        sum = sum * 1103515245 + 12345;
    }
    if (sum == 0)
        throw End{0};
    return sum;
}

__attribute__((noinline)) unsigned name(unsigned i) {
    unsigned sum = 0;
    for (unsigned j = 0; j < 30; j++) {
        if (i >> (j & 15) & 1)
            sum += j * i;
    }
    if (sum == 1)
        throw End{1};
    return sum;
}

extern "C" __attribute__((noinline)) unsigned run(int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        bool is_sensed = false;
        try {
            int kind = sense(i);
            is_sensed = true;
            if (kind == 0)
                sum += scan((unsigned)i);
            else
                sum += name((unsigned)i);
        } catch (const End &end) {
            if (is_sensed)
                std::puts("lost");
            sum += (unsigned)end.at;
        }
    }
    return sum;
}

int main() {
    std::printf("%u\n", run(400000));
    return 0;
}
