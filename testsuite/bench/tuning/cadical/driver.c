/*
 * CaDiCaL: solves formulas made from specifications, and sums answers and models.
 *
 * usage: cadical KIND:N:SEED…      random (3-SAT of N variables at 4.26 clauses each), color (3-colouring of a graph of N
 *                                  vertices), factor (a multiplier whose product is N), queens (N of them, shuffled),
 *                                  pigeons (N+1 in N holes), parity (random equations of N bits)
 */
#include "bench.h"
#include "ccadical.h"

static CCaDiCaL *solver;
static int variables;
static struct random source;

static unsigned below(unsigned bound)
{
    return (unsigned)((next_random(&source) >> 20) % bound);
}

static void clause(int count, const int *literals)
{
    for (int i = 0; i < count; i++)
        ccadical_add(solver, literals[i]);
    ccadical_add(solver, 0);
}

#define CLAUSE(...) clause(sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__})

static void random_3sat(int n)
{
    variables = n;
    for (int i = 0; i < n * 426 / 100; i++) {
        int chosen[3];
        for (int k = 0; k < 3; k++) {
            chosen[k] = 1 + (int)below((unsigned)n);
            for (int before = 0; before < k; before++)
                if (chosen[before] == chosen[k])
                    k--, before = k;
        }
        for (int k = 0; k < 3; k++)
            if (below(2))
                chosen[k] = -chosen[k];
        clause(3, chosen);
    }
}

/* Average degree 4.69: at the threshold. */
static void color(int n)
{
    variables = 3 * n;
    for (int v = 0; v < n; v++)
        CLAUSE(3 * v + 1, 3 * v + 2, 3 * v + 3);
    for (int e = 0; e < n * 469 / 200; e++) {
        int a = (int)below((unsigned)n), b = (int)below((unsigned)n);
        for (int c = 1; a != b && c <= 3; c++)
            CLAUSE(-(3 * a + c), -(3 * b + c));
    }
}

static int gate_and(int a, int b)
{
    int g = ++variables;
    CLAUSE(-g, a), CLAUSE(-g, b), CLAUSE(g, -a, -b);
    return g;
}

static int gate_xor(int a, int b)
{
    int g = ++variables;
    CLAUSE(-g, a, b), CLAUSE(-g, -a, -b), CLAUSE(g, -a, b), CLAUSE(g, a, -b);
    return g;
}

static int gate_or(int a, int b)
{
    return -gate_and(-a, -b);
}

/* An array multiplier of two numbers of half as many bits as the product, none of them 1. */
static void factor(unsigned long long product)
{
    int bits = 64 - __builtin_clzll(product), half = (bits + 1) / 2 + 1;
    int x[32], y[32], row[64];
    variables = 0;
    for (int i = 0; i < half; i++)
        x[i] = ++variables, y[i] = ++variables;
    clause(half - 1, x + 1);
    clause(half - 1, y + 1);
    for (int i = 0; i < half; i++)
        row[i] = gate_and(x[i], y[0]);
    int high = 0; /* the literal above the row, 0 where it is false */
    for (int j = 1; j < half; j++) {
        int carry = 0;
        for (int i = 0; i < half; i++) {
            int above = i + 1 < half ? row[j + i] : high, term = gate_and(x[i], y[j]), sum = term, out = 0;
            if (above) {
                sum = gate_xor(term, above);
                out = gate_and(term, above);
            }
            if (carry) {
                int both = gate_and(sum, carry);
                sum = gate_xor(sum, carry);
                out = out ? gate_or(out, both) : both;
            }
            row[j + i] = sum;
            carry = out;
        }
        high = carry;
    }
    row[2 * half - 1] = high;
    for (int i = 0; i < 2 * half; i++)
        if (row[i])
            CLAUSE(product >> i & 1 ? row[i] : -row[i]);
}

static void at_most_one(int count, const int *literals)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            CLAUSE(-literals[i], -literals[j]);
}

static void queens(int n)
{
    int *name = allocate(sizeof(int) * (size_t)(n * n)), line[256];
    variables = n * n;
    for (int i = 0; i < n * n; i++) {
        int other = (int)below((unsigned)i + 1);
        name[i] = name[other], name[other] = i + 1;
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++)
            line[k] = name[i * n + k];
        clause(n, line), at_most_one(n, line);
        for (int k = 0; k < n; k++)
            line[k] = name[k * n + i];
        clause(n, line), at_most_one(n, line);
    }
    for (int d = -n; d <= 2 * n; d++) {
        int falling = 0, rising = 0, other[256];
        for (int r = 0; r < n; r++) {
            if (r + d >= 0 && r + d < n)
                line[falling++] = name[r * n + r + d];
            if (d - r >= 0 && d - r < n)
                other[rising++] = name[r * n + d - r];
        }
        at_most_one(falling, line), at_most_one(rising, other);
    }
    free(name);
}

static void pigeons(int n)
{
    int line[256];
    variables = n * (n + 1);
    for (int p = 0; p <= n; p++) {
        for (int h = 0; h < n; h++)
            line[h] = p * n + h + 1;
        clause(n, line);
    }
    for (int h = 0; h < n; h++) {
        for (int p = 0; p <= n; p++)
            line[p] = p * n + h + 1;
        at_most_one(n + 1, line);
    }
}

static void parity(int n)
{
    variables = n;
    for (int e = 0; e < n; e++) {
        int sum = 1 + (int)below((unsigned)n);
        for (int k = 0; k < 4; k++)
            sum = gate_xor(sum, 1 + (int)below((unsigned)n));
        CLAUSE(below(2) ? sum : -sum);
    }
}

int main(int argc, char **argv)
{
    checksum_t sum = CHECKSUM_START;
    for (int i = 1; i < argc; i++) {
        char kind[16];
        unsigned long long n, seed;
        if (sscanf(argv[i], "%15[^:]:%llu:%llu", kind, &n, &seed) != 3)
            die("'%s' is not KIND:N:SEED", argv[i]);
        source.state = seed * 0x9e3779b97f4a7c15u | 1;
        solver = ccadical_init();
        if (!strcmp(kind, "random"))
            random_3sat((int)n);
        else if (!strcmp(kind, "color"))
            color((int)n);
        else if (!strcmp(kind, "factor"))
            factor(n);
        else if (!strcmp(kind, "queens"))
            queens((int)n);
        else if (!strcmp(kind, "pigeons"))
            pigeons((int)n);
        else if (!strcmp(kind, "parity"))
            parity((int)n);
        else
            die("no kind is called '%s'", kind);
        int answer = ccadical_solve(solver);
        printf("%s %d\n", argv[i], answer);
        sum = checksum_number(sum, (uint64_t)answer);
        for (int v = 1; answer == 10 && v <= variables; v++)
            sum = checksum_number(sum, ccadical_val(solver, v) > 0);
        ccadical_release(solver);
    }
    print_checksum(sum);
    return 0;
}
