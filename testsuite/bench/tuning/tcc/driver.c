/*
 * tcc: generates C programs, compiles each to memory, runs one function of what came out, and sums sizes and results.
 *
 * usage: tcc KINDS SEED SIZE ROUNDS      KINDS, separated by commas: expressions, structs, macros, loops, switches
 */
#include "bench.h"
#include "libtcc.h"

struct text {
    char *bytes;
    size_t size, capacity;
    struct random random;
    unsigned functions;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text->size += (size_t)vsnprintf(text->bytes + text->size, text->capacity - text->size, format, arguments);
    va_end(arguments);
    if (text->size + 1 >= text->capacity)
        die("a program is too large");
}

static unsigned below(struct text *text, unsigned bound)
{
    return (unsigned)((next_random(&text->random) >> 20) % bound);
}

static void expression(struct text *text, unsigned depth)
{
    static const char *const operators[] = {"+", "-", "*", "&", "|", "^", "<", ">", "==", "!=", "&&", "||", ">>"};
    if (!depth || !below(text, 6)) {
        switch (below(text, 4)) {
        case 0:
            add(text, "%u", below(text, 100000));
            break;
        case 1:
            add(text, "0x%xU", below(text, 1 << 30));
            break;
        default:
            add(text, "%c", "abcd"[below(text, 4)]);
        }
        return;
    }
    unsigned kind = below(text, 12);
    if (kind == 0) {
        add(text, "(");
        expression(text, depth - 1);
        add(text, " ? ");
        expression(text, depth - 1);
        add(text, " : ");
        expression(text, depth - 1);
        add(text, ")");
    } else if (kind == 1 && text->functions) {
        add(text, "f%u(", below(text, text->functions));
        expression(text, depth - 1);
        add(text, ", ");
        expression(text, depth - 1);
        add(text, ")");
    } else if (kind == 2) {
        add(text, "%s", below(text, 2) ? "~" : "!");
        add(text, "(");
        expression(text, depth - 1);
        add(text, ")");
    } else {
        const char *operator = operators[below(text, sizeof operators / sizeof *operators)];
        add(text, "(");
        expression(text, depth - 1);
        add(text, " %s ", operator);
        if (!strcmp(operator, ">>"))
            add(text, "%u", below(text, 31));
        else
            expression(text, depth - 1);
        add(text, ")");
    }
}

static void function(struct text *text, const char *kind)
{
    unsigned number = text->functions;
    if (!strcmp(kind, "macros")) {
        add(text, "#define M%u(x, y) ((x) * %u + (y))\n#define N%u(x) M%u(x, (x) >> 3)\n#ifdef N%u\n", number, below(text, 90), number, number, number);
        add(text, "static unsigned f%u(unsigned a, unsigned b)\n{\n    unsigned c = N%u(a), d = M%u(b, c); /* expanded */\n", number, number, number);
        for (unsigned n = 1 + below(text, 6); n; n--) {
            add(text, "    %c = N%u(M%u(", "abcd"[below(text, 4)], number, number);
            expression(text, 1);
            add(text, ", %c)); // %u\n", "abcd"[below(text, 4)], n);
        }
        add(text, "    return a ^ b ^ c ^ d;\n}\n#else\n#error missing\n#endif\n\n");
        text->functions++;
        return;
    }
    if (!strcmp(kind, "structs"))
        add(text, "struct s%u { unsigned char tag; unsigned short half; int word; long wide; struct { unsigned x[%u]; } inner; };\n", number, 2 + below(text, 9));
    add(text, "static unsigned f%u(unsigned a, unsigned b)\n{\n    unsigned c = a + %u, d = b ^ %u;\n", number, below(text, 999), below(text, 999));
    if (!strcmp(kind, "structs")) {
        add(text, "    struct s%u one, *p = &one, list[3];\n    one.tag = a; one.half = b; p->word = (int)a; p->wide = (long)b << 7;\n    one.inner.x[1] = c; list[0] = *p; list[2] = list[0];\n", number);
        static const char *const places[] = {"list[2].half", "p->tag", "(unsigned)p->wide", "list[0].inner.x[1]", "(unsigned)(p + 1 - &one)"};
        static const char *const measured[] = {"one", "p->inner", "list", "int *"};
        for (unsigned n = 1 + below(text, 7); n; n--)
            add(text, "    %c += %s + (unsigned)sizeof(%s);\n", "abcd"[below(text, 4)], places[below(text, 5)], measured[below(text, 4)]);
    } else if (!strcmp(kind, "loops")) {
        for (unsigned n = 1 + below(text, 3); n; n--) {
            add(text, "    for (unsigned i = 0; i < %u; i++) {\n        unsigned a = i; static int table[] = {1, 2, 3, %u};\n        if (", 1 + below(text, 6), below(text, 99));
            expression(text, 2);
            add(text, ")\n            %s;\n        d += (unsigned)table[i & 3] + a;\n        while (c > %u) c /= 3;\n    }\n", below(text, 2) ? "continue" : "c++", 10 + below(text, 999));
        }
    } else if (!strcmp(kind, "switches")) {
        add(text, "    switch (a %% %u) {\n", 3 + below(text, 20));
        for (unsigned n = 0, label = 0; n < 8; n++) {
            add(text, "    case %u:\n        d = ", label += 1 + below(text, 3));
            expression(text, 2);
            add(text, ";\n%s", below(text, 3) ? "        break;\n" : "");
        }
        add(text, "    default:\n        goto out;\n    }\n    c++;\nout:\n");
    }
    for (unsigned n = 1 + below(text, 4); n; n--) {
        add(text, "    %c = ", "abcd"[below(text, 4)]);
        expression(text, 4);
        add(text, ";\n");
    }
    add(text, "    return a + b + c + d;\n}\n\n");
    text->functions++;
}

static void silent(void *opaque, const char *message)
{
    (void)opaque;
    if (strstr(message, "error"))
        die("%s", message);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: tcc KINDS SEED SIZE ROUNDS");
    size_t size = parse_number(argv[3]);
    struct text text = {allocate(size + 100000), 0, size + 100000, {parse_number(argv[2]) * 2 + 1}, 0};
    checksum_t sum = CHECKSUM_START;
    for (size_t rounds = parse_number(argv[4]); rounds; rounds--) {
        text.size = text.functions = 0;
        while (text.size < size) {
            char kinds[200];
            snprintf(kinds, sizeof kinds, "%s", argv[1]);
            for (char *kind = strtok(kinds, ","); kind; kind = strtok(NULL, ","))
                function(&text, kind);
        }
        /* Not called: random calls among functions would take exponential time. */
        add(&text, "unsigned result(unsigned a) { unsigned b = a * 3; return (a ^ b) + %u; }\n", text.functions);
        TCCState *compiler = tcc_new();
        tcc_set_error_func(compiler, NULL, silent);
        tcc_set_options(compiler, "-nostdlib -nostdinc");
        tcc_set_output_type(compiler, TCC_OUTPUT_MEMORY);
        if (tcc_compile_string(compiler, text.bytes) < 0)
            die("compilation failed");
        int needed = tcc_relocate(compiler, NULL);
        if (needed < 0 || tcc_relocate(compiler, TCC_RELOCATE_AUTO) < 0)
            die("linking failed");
        unsigned (*result)(unsigned) = (unsigned (*)(unsigned))tcc_get_symbol(compiler, "result");
        if (!result)
            die("no result");
        sum = checksum_number(checksum_number(sum, (uint64_t)needed), result((unsigned)rounds));
        tcc_delete(compiler);
    }
    print_checksum(sum);
    return 0;
}
