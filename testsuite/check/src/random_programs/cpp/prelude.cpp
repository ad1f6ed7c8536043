#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

// What the program computed so far. Everything that must not change is mixed in, in order.
static uint64_t hash = 1;
static volatile uint32_t unknown = 12345;

static inline void mix_bits(uint64_t bits) {
    hash = (hash ^ bits) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
}

// Not-a-numbers are alike: their bits depend on the order of operands, which a compiler chooses.
template <typename T> static inline void mix(T value) {
    if constexpr (std::is_floating_point_v<T>) {
        double wide = value;
        uint64_t bits;
        std::memcpy(&bits, &wide, sizeof bits);
        mix_bits(std::isnan(wide) ? 77 : bits);
    } else {
        mix_bits(static_cast<uint64_t>(value));
    }
}

// Conversions and operations without undefined results.
template <typename To, typename From> static inline To to(From value) {
    if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
        return value > -1e9 && value < 1e9 ? static_cast<To>(static_cast<int64_t>(value)) : To(7);
    } else {
        return static_cast<To>(value);
    }
}
template <typename T> static inline T add(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    else return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename T> static inline T sub(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a - b;
    else return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <typename T> static inline T mul(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a * b;
    else return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Destroyed in order, whatever way a scope is left.
struct Guard {
    uint64_t number;
    explicit Guard(uint64_t n) : number(n) {}
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;
    ~Guard() { mix(number); }
};

struct Error {
    uint64_t number;
    explicit Error(uint64_t n) : number(n) {}
    Error(const Error &other) : number(other.number + 1) {}
    virtual ~Error() {}
    virtual uint64_t what() const { return number; }
};
struct Special : Error {
    using Error::Error;
    uint64_t what() const override { return number * 3; }
};
struct Other {
    double number;
};
