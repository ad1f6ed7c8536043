// Memory operations whose lengths are mostly the same, and one whose lengths are not.
#include <stdio.h>
#include <string.h>

static char source[4096], target[4096];

__attribute__((noinline)) void copy(unsigned i, size_t length) { memcpy(target + i, source + i, length); }

__attribute__((noinline)) void clear(unsigned i, size_t length) { memset(target + i, 3, length); }

__attribute__((noinline)) int compare(unsigned i, size_t length) { return memcmp(target + i, source, length); }

// As the comparison of strings in C++: the result is compared with zero only where this is inlined.
static int difference(const char *a, const char *b, size_t length) { return memcmp(a, b, length); }

__attribute__((noinline)) int equal(unsigned i, size_t length) { return difference(target + i, source, length) == 0; }

__attribute__((noinline)) int less(unsigned i, size_t length) { return difference(target + i, source, length) < 0; }

__attribute__((noinline)) void various(unsigned i, size_t length) { memcpy(target + i, source + i, length); }

int main(void) {
    unsigned sum = 0, random = 1;
    for (unsigned i = 0; i < sizeof(source); i++)
        source[i] = (char)(i * 7);
    for (unsigned i = 0; i < 6000000; i++) {
        random = random * 1103515245 + 12345;
        unsigned at = random >> 21;
        int is_rare = random % 16 == 5;
        copy(at, is_rare ? at : 8);
        clear(at, is_rare ? 100 : 16);
        sum += compare(at, is_rare ? 3 : 4) < 0;
        sum += equal(at, is_rare ? 3 : 4) + less(at, is_rare ? 3 : 4);
        various(at, at & 127);
        sum += target[at];
    }
    printf("%u\n", sum);
    return 0;
}
