// A recursive parser with a function and a loop for each level of precedence, and a loop that takes all the time.
#include <stdio.h>

static const char *at;
static int actions[4096], count;

static void add_action(int action) {
    if (count == 4096)
        count = 0;
    actions[count++] = action;
    if (action < 0)
        puts("never");
}
static int is(char operator) { return *at == operator; }

static void parse_expression(void);
static void accept_value(void) {
    if (is('(')) {
        at++;
        parse_expression();
        at++;
    } else {
        add_action(*at++);
    }
}

#define LEVEL(name, next, first, second)                                                                               \
    static void parse_##name(void) {                                                                                   \
        while (1) {                                                                                                    \
            if (is(first)) {                                                                                           \
                at++;                                                                                                  \
                accept_##next();                                                                                       \
                add_action(first);                                                                                     \
            } else if (is(second)) {                                                                                   \
                at++;                                                                                                  \
                accept_##next();                                                                                       \
                add_action(second);                                                                                    \
            } else {                                                                                                   \
                return;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void accept_##name(void) {                                                                                  \
        accept_##next();                                                                                               \
        parse_##name();                                                                                                \
    }

LEVEL(product, value, '*', '/')
LEVEL(sum, product, '+', '-')
LEVEL(shift, sum, 'l', 'r')
LEVEL(relation, shift, '<', '>')
LEVEL(equality, relation, '=', '!')
LEVEL(both, equality, '&', 'a')
LEVEL(either, both, '|', 'o')
LEVEL(one, either, '^', 'x')
LEVEL(all, one, ',', ';')

static void parse_expression(void) {
    accept_all();
    if (is('?')) {
        at++;
        parse_expression();
    }
}

int *parse(const char *text) {
    at = text;
    count = 0;
    parse_expression();
    return actions;
}

int main(void) {
    unsigned state = *parse("(1+2)*3<4&5|(6=7)");
    for (int i = 0; i < 30000000; i++)
        state = state * 1664525 + 1013904223;
    printf("%u\n", state >> 16);
    return 0;
}
