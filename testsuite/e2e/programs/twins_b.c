// The other file with a local function of the same name.
static __attribute__((noinline)) int step(int x) {
    switch (x & 7) {
    case 0: return x + 3;
    case 1: return x - 5;
    case 5: return x * 3;
    default: return x ^ 1;
    }
}

int run_b(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += step(sum + i);
    return sum;
}
