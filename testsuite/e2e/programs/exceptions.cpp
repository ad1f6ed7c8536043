// Exceptions, destructors and templates.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

struct Noisy {
    std::string text;
    ~Noisy() {
        if (text.size() > 3)
            std::puts("long");
    }
};

static int helper(int x) {
    Noisy noisy{std::string(x % 5, 'a')};
    if (x % 7 == 3)
        throw std::runtime_error("three");
    return x * 2;
}

template <class T> T total(const std::vector<T> &values) {
    T sum{};
    for (auto x : values) {
        try {
            sum += helper(x);
        } catch (const std::exception &) {
            sum -= 1;
        }
    }
    return sum;
}

int main() {
    std::vector<int> values;
    for (int i = 0; i < 50; i++)
        values.push_back(i);
    std::printf("%d\n", total(values));
}
