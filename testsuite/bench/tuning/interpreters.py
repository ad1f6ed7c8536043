"""Prints a C program: an interpreter with a switch in a loop, and a byte code that it runs. Made from a seed.

interpreters.py SEED > program.c      the program's argument: how often it runs the byte code, in units of some 60 000
                                      operations
"""

import random
import sys

# Operations that most programs execute; A, B and C are numbers of the operation.
FREQUENT = [
    "sum += memory[code[1]];",
    "sum ^= memory[code[1]] << B;",
    "memory[code[1]] = sum;",
    "sum = sum * C + code[1];",
    "if (sum & (1 << B)) sum += A; else sum ^= A * 3;",
    "sum >>= B;",
    "sum += external(state, sum);",
    "for (int i = 0; i < (sum & 3); i++) memory[i] += sum;",
    "sum = memory[A]; memory[A] = memory[code[1]]; memory[code[1]] = sum;",
    "if (sum == memory[A]) state->check = code[1];",
    "sum = (sum << (B + 1)) | ((unsigned)sum >> (31 - B));",
    "if (sum % (A + 3) == 0) { memory[A] += code[1]; sum -= A; }",
]
RARE = [
    'printf("%d\\n", sum);',
    "abort();",
    "return -sum;",
    "state->check = sum; for (int i = 0; i < 64; i++) memory[i] ^= sum;",
]


def numbered(text, number):
    for name, value in (("A", number), ("B", number % 5 + 1), ("C", number | 1)):
        text = text.replace(name, str(value))
    return text


def main():
    chance = random.Random(int(sys.argv[1]))
    operations = chance.choice([10, 16, 24, 40, 64])
    length = chance.choice([20, 60, 150])
    shares = [1 / (1 + chance.randrange(8)) for _ in range(1, operations)]
    cases = [numbered(chance.choice(FREQUENT), chance.randrange(64)) for _ in range(1, operations)]
    cases += [chance.choice(RARE) for _ in range(chance.randrange(2, 10))]
    code = []
    for _ in range(length):
        code += [chance.choices(range(1, operations), shares)[0], chance.randrange(64)]
    print("#include <stdio.h>\n#include <stdlib.h>")
    print("struct state { int check; int memory[256]; };")
    print("static const unsigned char program[] = {" + ", ".join(map(str, code + [0])) + "};")
    print("__attribute__((noinline)) int external(struct state *state, int a) { state->memory[a & 63]++; return a >> 3; }")
    print("__attribute__((noinline)) int run(struct state *state, const unsigned char *code, long times) {")
    print("  int sum = 1, *memory = state->memory;\n  for (;;) {\n    switch (*code) {")
    print("    case 0: if (--times <= 0) return sum; code = program; break;")
    for number, text in enumerate(cases, 1):
        print(f"    case {number}: {text} code += 2; break;")
    print("    default: return -1;\n    }\n  }\n}")
    print("int main(int argc, char **argv) {\n  static struct state state;")
    print("  for (int i = 0; i < 256; i++) state.memory[i] = i * 7;")
    print(f'  printf("%d\\n", run(&state, program, atol(argv[argc - 1]) * {60000 // length}));\n  return 0;\n}}')


main()
