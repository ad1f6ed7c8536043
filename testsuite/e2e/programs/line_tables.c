// Calls a function of a header.
#include "line_tables.h"
#include <stdio.h>

int main(void) {
    long sum = 0;
    for (int i = 0; i < 3000000; i++)
        sum += within(i * 7 % 100, 20, 90);
    printf("%ld\n", sum);
    return 0;
}
