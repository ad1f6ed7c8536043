"""Writes the inputs of the unseen programs: NAME.t for training, NAME.e for evaluation, of another kind or shape."""

import glob
import hashlib
import json
import lzma
import math
import os
import random
import re
import struct
import sys
import zipfile
import zlib

HEADERS = "".join(open(f, errors="ignore").read() for f in sorted(glob.glob("/usr/lib/llvm-22/include/llvm/IR/*.h")))
LIBRARY = open("/usr/lib/llvm-22/lib/libLLVM.so.1", "rb").read(70_000_000)[30_000_000:]
FOLDER = sys.argv[1]
ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def write(name, data):
    os.makedirs(os.path.dirname(f"{FOLDER}/{name}"), exist_ok=True)
    with open(f"{FOLDER}/{name}", "wb") as out:
        out.write(data if isinstance(data, bytes) else data.encode())


def markdown(seed, count):
    r = random.Random(seed)
    words = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt labore".split()
    out = []
    for i in range(count):
        kind, text = r.random(), " ".join(r.choice(words) for _ in range(r.randint(5, 40)))
        if kind < 0.1:
            out.append("#" * r.randint(1, 4) + " " + text[:40])
        elif kind < 0.25:
            out.append("\n".join("* " + " ".join(r.choice(words) for _ in range(8)) for _ in range(r.randint(2, 6))))
        elif kind < 0.3:
            out.append(f"```c\nint x = {i};\n```")
        elif kind < 0.4:
            out.append("> " + text)
        elif kind < 0.5:
            out.append(f"{text[:30]} **bold {text[30:50]}** and *em* [link](http://ex.com/{i}) `code` &amp; <b>x</b>")
        else:
            out.append(text)
    return "\n\n".join(out) + "\n"


def sound(seed, count):
    r = random.Random(seed)
    data, tones = bytearray(), []
    for i in range(count):
        if i % 11025 == 0:
            tones = [r.uniform(50, 6000) for _ in range(6)]
        value = sum(math.sin(i * tone / 44100 * 2 * math.pi) for tone in tones) * 3000 + r.gauss(0, 300)
        sides = [value, value * 0.7 + r.gauss(0, 200)]
        data += struct.pack("<hh", *(int(max(-32000, min(32000, side))) for side in sides))
    head = struct.pack("<IHHIIHH", 16, 1, 2, 44100, 176400, 4, 16)
    return (
        b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + head + b"data" + struct.pack("<I", len(data)) + data
    )


def requests(seed, count):
    r = random.Random(seed)
    line = (
        lambda: f"{r.choice(['GET', 'PUT', 'POST'])} /p/{r.randint(1, 3000)} {r.randint(100, 99999)} u{r.randint(1, 500)} {r.random():.3f}"
    )
    return "\n".join(line() for _ in range(count)) + "\n"


def log(seed, count):
    r = random.Random(seed)
    states = ["ok", "fail", "retry"]
    line = (
        lambda i: f"{i} host{r.randrange(20)} daemon[{r.randrange(5)}]: request {r.randrange(100)} took {r.randrange(900)} ms status {r.choice(states)}"
    )
    return "\n".join(line(i) for i in range(count)) + "\n"


def assembly(seed, count):
    r = random.Random(seed)
    registers = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10"]
    out = ["bits 64\n%macro sw 2\n xchg %1,%2\n add %1,1\n%endmacro\nsection .text"]
    for i in range(count):
        a, b = r.choice(registers), r.choice(registers)
        lines = [
            f"mov {a},{b}",
            f"add {a},[{b}+{r.randint(0, 500)}]",
            f"lea {a},[{b}*4+{r.randint(0, 90)}]",
            f"sw {a},{b}",
            f"L{i}: cmp {a},{r.randint(0, 1000)}",
            f"jne $+{r.randint(2, 100)}",
            f"vaddps ymm{r.randint(0, 15)},ymm1,ymm2",
            f"imul {a},{b},{r.randint(1, 99)}",
            f"; comment {i}",
            f"dq {r.randint(0, 1 << 40)}, {i}",
        ]
        out.append(r.choice(lines))
    return "\n".join(out) + "\n"


def bitmap(seed, size):
    r = random.Random(seed)
    rows = [bytearray(size) for _ in range(size)]
    for _ in range(size // 8):
        x, y, radius, is_round = r.randint(0, size), r.randint(0, size), r.randint(3, size // 12), r.random() < 0.5
        for at in range(max(0, y - radius), min(size, y + radius)):
            half = int(math.sqrt(radius * radius - (at - y) ** 2)) if is_round else radius
            for across in range(max(0, x - half), min(size, x + half)):
                rows[at][across] ^= 1
    return f"P1\n{size} {size}\n" + "".join("".join(map(str, row)) + "\n" for row in rows)


def clauses(seed, variables, ratio):
    r = random.Random(seed)
    count = int(variables * ratio)
    clause = lambda: " ".join(str(v * r.choice([1, -1])) for v in r.sample(range(1, variables + 1), 3)) + " 0\n"
    return f"p cnf {variables} {count}\n" + "".join(clause() for _ in range(count))


def related(seed, count, length, alphabet, rate):
    """Sequences that descend from one another by mutation."""
    r = random.Random(seed)
    pool = ["".join(r.choice(alphabet) for _ in range(length))]
    while len(pool) < count:
        child = list(r.choice(pool))
        for at in range(length):
            if r.random() < rate:
                child[at] = r.choice(alphabet)
        pool.append("".join(child))
    return pool


def fasta(sequences):
    return "".join(f">s{i}\n{sequence}\n" for i, sequence in enumerate(sequences))


def phylip(sequences):
    lines = "".join(f"{('s%d' % i).ljust(10)}{sequence}\n" for i, sequence in enumerate(sequences))
    return f"{len(sequences)} {len(sequences[0])}\n{lines}"


def zipped(name, data):
    with zipfile.ZipFile(f"{FOLDER}/{name}", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(8):
            archive.writestr(f"f{i}", data[i * len(data) // 8 : (i + 1) * len(data) // 8])


def weights(seed, count, largest):
    r = random.Random(seed)
    systems = [sorted(r.randint(1, largest) for _ in range(5)) for _ in range(count)]
    return "".join(f"{sum(system)} {' '.join(map(str, system))}\n" for system in systems)


def lzip(data):
    """A member in lzip's format."""
    body = lzma.compress(data, format=lzma.FORMAT_ALONE, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 23}])[13:]
    size = 6 + len(body) + 20
    return b"LZIP\x01\x17" + body + struct.pack("<IQQ", zlib.crc32(data), len(data), size)


def edges(seed, vertices, density, hidden):
    r = random.Random(seed)
    clique = set(r.sample(range(1, vertices + 1), hidden))
    pairs = [
        (a, b)
        for a in range(1, vertices + 1)
        for b in range(1, a)
        if r.random() < density or (a in clique and b in clique)
    ]
    return f"p edge {vertices} {len(pairs)}\n" + "".join(f"e {a} {b}\n" for a, b in pairs)


def almanac(seed, count, planets, days):
    r = random.Random(seed)
    query = lambda: [
        r.randint(1900, 2050),
        r.randint(1, 12),
        r.randint(1, 28),
        r.randint(0, 23),
        r.randint(0, 59),
        0,
        days,
        r.randint(3, 12),
        r.choice(planets),
    ]
    return "".join(f"{value}\n" for _ in range(count) for value in query())


def games(openings, depth):
    moves = lambda line: "".join(f"{move}\n" for move in line.split())
    return "".join(f"new\ndepth {depth}\nforce\n{moves(line)}go\n" for line in openings) + "quit\n"


def variants(variant, openings):
    """The same in a variant of chess, as Fairy-Max reads it."""
    moves = lambda line: "".join(f"{move}\n" for move in line.split())
    return "".join(f"new\nvariant {variant}\nlevel 0 600 0\nsd 6\nforce\n{moves(o)}go\n" for o in openings) + "quit\n"


def lexer(seed, words, style):
    r = random.Random(seed)
    word = lambda: "".join(r.choice("abcdefghijklmnopqrstuvwxyz_") for _ in range(r.randint(3, 12)))
    if style == "keywords":
        rules = [f'"{word()}" {{ return {300 + i}; }}' for i in range(words)]
        rules += [
            "[a-z_]+ { return 1; }",
            "[0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+)? { return 2; }",
            "[ \\t\\n]+ ;",
            ". { return yytext[0]; }",
        ]
    else:
        rules = [
            f"<S{i % 8}>({word()}|{word()[:3]}[0-9a-f]{{2,5}})/[ \\t]+{word()[:2]} {{ BEGIN(S{(i + 1) % 8}); }}"
            for i in range(words)
        ]
        rules += ["<*>.|\\n { BEGIN(S0); }"]
    states = "%s " + " ".join(f"S{i}" for i in range(8)) + "\n" if style != "keywords" else ""
    return "%option noyywrap\n" + states + "%%\n" + "\n".join(rules) + "\n%%\n"


def grammar(seed, levels, width, style):
    r = random.Random(seed)
    tokens = [f"T{i}" for i in range(levels * width + 20)]
    out = (
        ["%token " + " ".join(tokens)]
        + (["%glr-parser", "%expect-rr 0"] if style == "glr" else [])
        + ["%%", "start: e0 | start ';' e0 ;"]
    )
    for level in range(levels):
        below = f"e{level + 1}" if level + 1 < levels else "atom"
        if style == "glr":
            rules = [below] + [f"{tokens[level * width + i]} {below} {tokens[level * width + i]}" for i in range(width)]
        else:
            rules = [below] + [f"e{level} {tokens[level * width + i]} {below}" for i in range(width)]
        out.append(f"e{level}: " + "\n  | ".join(rules) + " ;")
    out.append(
        "atom: '(' start ')' | list | "
        + " | ".join(f"{r.choice(tokens)} '.' '{chr(97 + i)}'" for i in range(12))
        + " ;"
    )
    out.append("list: '[' ']' | '[' start ']' | list '[' start ',' start ']' ;\n%%\n")
    return "\n".join(out)


def sums(style, count):
    """Formulas of Presburger arithmetic in the weak second-order theory of one successor."""
    head = """pred xor(var0 x,y) = x&~y | ~x&y;
pred most(var0 x,y,z) = x&y | x&z | y&z;
pred plus(var2 p,q,r) = ex2 c: 0 notin c & all1 t: (t+1 in c <=> most(t in p, t in q, t in c))
  & (t in r <=> xor(xor(t in p, t in q), t in c));
"""
    names = [f"X{i}" for i in range(count)]
    out = [head + "var2 " + ", ".join(names) + ";"]
    if style == "chain":
        out += [
            f"(all1 t: t in {a} => t+1 notin {b} & t+3 notin {c}) | plus({a},{c},{b});"
            for a, b, c in zip(names, names[1:], names[2:])
        ]
        out += [f"{names[0]} = pconst(5) | {names[1]} = pconst(77);"]
    else:
        out += [f"all1 t: t in {a} => ex1 u: u > t & u in {b} & t+2 notin {a};" for a, b in zip(names, names[1:])]
        out += [f"ex2 Y: plus({names[0]},Y,{names[-1]}) & Y ~= empty;"]
    return "\n".join(out) + "\n"


def linear(seed, rows, columns, kind):
    """A program in CPLEX's LP format: transport of goods, or a knapsack of whole things with several limits."""
    r = random.Random(seed)
    if kind == "transport":
        terms = [f"+ {r.randint(1, 90)} x{i}_{j}" for i in range(rows) for j in range(columns)]
        out = ["Minimize", "cost: " + "\n ".join(terms), "Subject To"]
        out += [
            f"s{i}: " + " ".join(f"+ x{i}_{j}" for j in range(columns)) + f" <= {r.randint(60, 90)}"
            for i in range(rows)
        ]
        out += [
            f"d{j}: " + " ".join(f"+ x{i}_{j}" for i in range(rows)) + f" >= {r.randint(20, 45)}"
            for j in range(columns)
        ]
        return "\n".join(out) + "\nEnd\n"
    out = ["Maximize", "value: " + "\n ".join(f"+ {r.randint(10, 99)} y{j}" for j in range(columns)), "Subject To"]
    out += [
        f"c{i}: " + "\n ".join(f"+ {r.randint(5, 60)} y{j}" for j in range(columns)) + f" <= {columns * 12}"
        for i in range(rows)
    ]
    return "\n".join(out) + "\nBinary\n " + " ".join(f"y{j}" for j in range(columns)) + "\nEnd\n"


def edited(seed, data, edits):
    """A later version of data: pieces were deleted, inserted, copied and moved."""
    r = random.Random(seed)
    out, at = [], 0
    for start in sorted(r.randrange(len(data)) for _ in range(edits)):
        if start < at:
            continue
        out.append(data[at:start])
        at = start + r.choice([0, 0, r.randint(1, 400)])
        piece = r.randrange(len(data))
        out.append(data[piece : piece + r.choice([3, 20, 3000])])
    return b"".join(out) + data[at:]


def structures(seed, count, length):
    """Files of proteins' atoms: strands joined by turns, each protein with other gaps and shifts."""
    r = random.Random(seed)
    points, x, y, z, side = [], 0.0, 0.0, 0.0, 1
    while len(points) < length:
        for step in range(r.randint(6, 10)):
            x += side * 3.3
            points.append((x, y + step % 2 * 1.7, z))
        side, y, z = -side, y + 4.8, z + r.uniform(-1, 1)
        points.append((x - 1.9 * side, y - 2.4, z + 2))
    for number in range(count):
        out = []
        for i, point in enumerate(points):
            if r.random() < 0.05:
                continue
            x, y, z = (value + r.gauss(0, 0.4) for value in point)
            for atom, shift in [("N", -1.2), ("CA", 0), ("C", 1.2), ("O", 1.6)]:
                place = f"{x + shift:8.3f}{y + (1.2 if atom == 'O' else abs(shift) / 2):8.3f}{z:8.3f}"
                residue = r.choice(["ALA", "GLY", "VAL", "LEU"])
                out.append(f"ATOM  {len(out) + 1:5}  {atom:3} {residue} A{i + 1:4}    {place}  1.00  0.00")
        yield number, "\n".join(out) + "\nTER\nEND\n"


def manual(seed, chapters, paragraphs, style):
    """A document in Halibut's language."""
    r = random.Random(seed)
    words = "a branch of the tree that nobody measured before is taken once in about forty iterations".split()
    text = lambda n: " ".join(r.choice(words) for _ in range(n))
    out = ["\\title A manual\n\n\\cfg{paper-base-font-size}{10}\n"]
    for chapter in range(chapters):
        out.append(f"\\C{{c{chapter}}} {text(5)}\n")
        for part in range(paragraphs):
            if style == "reference":
                out.append(f"\\H{{s{chapter}-{part}}} {text(3)}\n")
                out.append(f"\\i{{{text(2)}}} is \\c{{{text(1)}}} in \\k{{c{chapter}}}.\n")
                out.append("".join(f"\\b {text(9)}\n\n" for _ in range(4)))
                out[-1] += "".join(f"\\c {text(6)}\n" for _ in range(5))
            else:
                out.append(f"{text(r.randint(60, 300))}, \\e{{{text(4)}}} and \\q{{{text(12)}}}.\n")
    return "\n".join(out)


def repository(name, seed, files, commits, edits):
    """A bare repository of git: each commit changes, adds, deletes or copies lines of some files."""
    r = random.Random(seed)

    def stored(kind, body):
        data = f"{kind} {len(body)}\0".encode() + body
        key = hashlib.sha1(data).hexdigest()
        write(f"{name}/objects/{key[:2]}/{key[2:]}", zlib.compress(data))
        return key

    def tree(under):
        entries = [("100644", path[len(under) :], key) for path, key in keys.items() if path.startswith(under)]
        below = sorted({entry[1].split("/")[0] for entry in entries if "/" in entry[1]})
        entries = [entry for entry in entries if "/" not in entry[1]]
        entries += [("40000", folder, tree(f"{under}{folder}/")) for folder in below]
        entries.sort(key=lambda entry: entry[1] + "/" * (entry[0] == "40000"))
        return stored("tree", b"".join(f"{m} {path}\0".encode() + bytes.fromhex(key) for m, path, key in entries))

    lines, keys, parent = {path: text.split("\n") for path, text in files.items()}, {}, ""
    for number in range(commits):
        for path in list(lines) if number == 0 else r.sample(list(lines), min(len(lines), 3)):
            text = lines[path]
            for _ in range(r.randint(1, edits) if number else 0):
                at, count, kind = r.randrange(len(text)), r.randint(1, 6), r.random()
                word = r.choice(r.choice(text).split() or ["return"])
                if kind < 0.4:
                    text[at : at + count] = [f"{line} {word}" for line in text[at : at + count]]
                elif kind < 0.7:
                    text[at:at] = [f"  {word} line {i} of commit {number};" for i in range(count)]
                elif kind < 0.85 and len(text) > 100:
                    del text[at : at + count]
                else:
                    to = r.randrange(len(text))
                    text[to:to] = text[at : at + 4 * count]
            keys[path] = stored("blob", "\n".join(text).encode())
        who = f"A{number % 7} <a{number % 7}@example.org> {1_600_000_000 + number * 5000} +0000"
        parent = f"parent {parent}\n" if parent else ""
        text = f"tree {tree('')}\n{parent}author {who}\ncommitter {who}\n\nCommit {number}\n"
        parent = stored("commit", text.encode())
    write(f"{name}/refs/heads/main", parent + "\n")
    write(f"{name}/HEAD", "ref: refs/heads/main\n")
    write(f"{name}/config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")


def source(seed, count, style):
    """A program in C, or of classes in C++."""
    r = random.Random(seed)

    def value(depth=0):
        if depth > 2 or r.random() < 0.3:
            return r.choice(["a", "b", "n", "data[a % 16]", str(r.randint(0, 99)), "LIMIT", "sizeof(int)"])
        form = r.choice(["{} + {}", "({} - {})", "{} * {}", "({} & {})", "max({}, {})", "({} > {} ? a : b)"])
        return form.format(value(depth + 1), value(depth + 1))

    def statements(depth, indent):
        out = []
        for _ in range(r.randint(2, 5)):
            kind = r.randint(0, 9)
            if depth < 3 and kind < 6:
                head = [
                    f"if ({value()} < {value()})",
                    f"for (int i{depth} = 0; i{depth} < {value()}; i{depth}++)",
                    f"while (n > {value()} && a != {value()})",
                    f"switch ({value()})",
                ][min(kind, 3)]
                body = statements(depth + 1, indent + 2)
                if head.startswith("switch"):
                    more = f"{' ' * indent}  break;\n{' ' * indent}case 1:\n{statements(depth + 1, indent + 2)}"
                    body = f"{' ' * indent}case 0:\n{body}{more}"
                out.append(f"{' ' * indent}{head} {{\n{body}{' ' * indent}}}")
                if kind == 0:
                    out.append(f"{' ' * indent}else {{ n -= {value()}; }}")
            elif kind < 8:
                out.append(f"{' ' * indent}{r.choice(['a', 'b', 'n', 'data[b & 15]'])} = {value()};")
            else:
                out.append(f"{' ' * indent}{r.choice(['n++;', 'a += f0(b, n);', '/* nothing */ b--;', 'n = -n;'])}")
        return "\n".join(out) + "\n"

    out = ["#define LIMIT 40", "static int max(int a, int b) { return a > b ? a : b; }", "int f0(int a, int n);"]
    for i in range(count):
        if style == "c":
            out.append(f"struct s{i} {{ int a; char *name; struct s{i} *next; }};")
            out.append(f"int f{i}(int a, int n) {{\n  int b = {r.randint(1, 9)}, data[16] = {{ 0 }};")
            out.append(f"  struct s{i} *list = malloc(sizeof *list);\n  list->a = n; list->next = 0;")
            out.append(statements(0, 2) + "  for (struct s%d *p = list; p; p = p->next) a += p->a;" % i)
            out.append("  free(list);\n  return a + b;\n}\n")
        else:
            out.append(f"template <class T> class C{i} {{\npublic:\n  C{i}(T first) : first(first), n({i}) {{}}")
            out.append(f"  int get(int a) const {{\n    int b = n, data[16] = {{}};")
            out.append(f"{statements(1, 4)}    return a + b;\n  }}\n  virtual ~C{i}() {{ delete[] all; }}")
            out.append("private:\n  T first; mutable int n; T *all = new T[8];\n};")
            out.append(f"int use{i}(std::vector<int> &v) {{\n  C{i}<int> c(v.size());")
            out.append(f"  for (auto it = v.begin(); it != v.end(); ++it)\n    if (*it > {i}) v.push_back(c.get(*it));")
            out.append(f"  return v.empty() ? v.front() : v[{i}];\n}}\n")
    return ("#include <vector>\n" if style == "c++" else "#include <stdlib.h>\n") + "\n".join(out)


def pedigrees(name, seed, families, children, alleles):
    """Families of three generations, as fastlink reads them; the first locus is a disease."""
    r = random.Random(seed)
    head = [f"{len(alleles) + 1} 0 0 5", "0 0.0 0.0 0", " ".join(str(i + 1) for i in range(len(alleles) + 1))]
    head += ["1 2", "0.99 0.01", "1", "0.01 0.8 0.9"]
    for count in alleles:
        head += [f"3 {count}", " ".join([f"{1 / count:.6f}"] * count)]
    head += ["0 0", "0.1", "0", "1", "1", " ".join(str(i + 2) for i in range(len(alleles)))]
    write(f"{name}/datafile.dat", "\n".join(head) + "\n")
    out = []
    for family in range(1, families + 1):
        people = [[0, 0, 1], [0, 0, 2]]
        for _ in range(children):
            people.append([1, 2, r.randint(1, 2)])
        for child in range(2, 2 + children // 2):
            people.append([0, 0, 3 - people[child][2]])
            couple = [child + 1, len(people)] if people[child][2] == 1 else [len(people), child + 1]
            people += [couple + [r.randint(1, 2)] for _ in range(2)]
        genes = []
        for number, (father, mother, sex) in enumerate(people, 1):
            pick = lambda parent, locus: r.choice(genes[parent - 1][locus])
            new = lambda locus, count: r.randint(1, count)
            genes.append([[pick(p, i) if p else new(i, c) for p in (father, mother)] for i, c in enumerate(alleles)])
            after = lambda side, of: next((i for i, p in enumerate(people, 1) if p[side] == of and i > number), 0)
            first = next((i for i, p in enumerate(people, 1) if number in p[:2]), 0)
            links = [first, after(0, father) if father else 0, after(1, mother) if mother else 0]
            known = number > 4 and r.random() < 0.8
            marks = " ".join(f"{a} {b}" if known else "0 0" for a, b in genes[-1])
            proband = int(number == 1)
            links = " ".join(map(str, links))
            out.append(f"{family} {number} {father} {mother} {links} {sex} {proband} {r.choice([1, 1, 2])} {marks}")
    write(f"{name}/pedfile.dat", "\n".join(out) + "\n")


def conversions(seed, count, kind):
    """Pairs of lines for units."""
    r = random.Random(seed)
    families = ["meter foot mile inch furlong parsec", "kg pound ounce stone grain ton", "hour week year s fortnight"]
    out = []
    for _ in range(count):
        units, n = r.choice(families).split(), r.randint(1, 999)
        a, b = r.choice(units), r.choice(units)
        if kind == "plain":
            out += [f"{n} {r.choice(['', 'kilo', 'micro'])}{a}", b]
        else:
            form = r.choice(["sqrt({n} {a}^2)", "{n} {a}^3 / ({n} {b} + 2 {b})^2", "cuberoot({n}) ({a} + {b})"])
            out += [form.format(n=n, a=a, b=b), r.choice([b, f"({a} + 3 {b})"])]
            out += [f"tempC({n % 90}.5)", "tempF", f"{n} newton {a} / hour", f"watt {a} / meter"]
    return "\n".join(out) + "\n"


def records(seed, count):
    r = random.Random(seed)
    out = []
    for i in range(count):
        out.append({"id": i, "name": f"user {r.randrange(90)}", "score": r.random() * 100})
        out[-1]["tags"] = r.sample("abcdefgh", 3)
        out[-1]["at"] = {"city": f"c{r.randrange(30)}", "zip": f"{r.randrange(99999):05}", "ok": r.random() < 0.5}
    return json.dumps(out)


def nested(seed, depth):
    r = random.Random(seed)
    if depth == 0:
        return r.choice([None, True, r.randrange(1000), r.random(), f'text "{r.randrange(100)}"\u00e9'])
    if r.random() < 0.5:
        return [nested(r.random(), depth - 1) for _ in range(r.randint(2, 5))]
    return {f"k{r.randrange(40)}": nested(r.random(), depth - 1) for _ in range(r.randint(2, 6))}


def schema_and_records(seed, count):
    """A schema of XML and a document that it describes."""
    r = random.Random(seed)
    day = lambda: f"<day>20{r.randrange(10, 99)}-0{r.randrange(1, 9)}-1{r.randrange(9)}</day>"
    item = (
        lambda i: f'<item id="i{i}" kind="{r.choice(["book", "disc"])}"><title>Title {r.randrange(999)} &amp; more'
        f"</title><price>{r.randrange(9999) / 100:.2f}</price><code>{r.choice('ABC')}-{r.randrange(1000):03}</code>"
        f"{day()}{day()}{day()}</item>"
    )
    element = lambda name, kind, more="": f'<xs:element name="{name}" type="{kind}"{more}/>'
    schema = (
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:simpleType name="code"><xs:restriction '
        'base="xs:string"><xs:pattern value="[A-C]-[0-9]{3}"/></xs:restriction></xs:simpleType>'
        '<xs:element name="items"><xs:complexType><xs:sequence><xs:element name="item" maxOccurs="unbounded">'
        "<xs:complexType><xs:sequence>"
        + element("title", "xs:string")
        + element("price", "xs:decimal")
        + element("code", "code")
        + element("day", "xs:date", ' maxOccurs="9"')
        + '</xs:sequence><xs:attribute name="id" type="xs:ID"/><xs:attribute name="kind" type="xs:string"/>'
        "</xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>"
    )
    return schema, "<?xml version='1.0'?>\n<items>" + "\n".join(item(i) for i in range(count)) + "</items>\n"


def web(seed, count):
    """A page of sloppy HTML."""
    r = random.Random(seed)
    words = "the page has a table of links and <b>bold</b> text <i>nobody closed &copy; in 1999 <br> or so".split(" ")
    text = lambda n: " ".join(r.choice(words) for _ in range(n))
    out = ["<html><head><title>A page</title><script>if (a < b && c) document.write('<p>')</script><body>"]
    for i in range(count):
        kind = r.randrange(4)
        if kind == 0:
            out.append(f"<table border=1>{''.join(f'<tr><td>{text(3)}<td align=left>{i}' for _ in range(5))}</table>")
        elif kind == 1:
            out.append(f"<ul>{''.join(f'<li><a href=/x?a={i}&amp;b=2 class=c>{text(4)}</a>' for _ in range(5))}</ul>")
        else:
            out.append(f"<p id=p{i}>{text(r.randint(10, 60))}<!-- {i} --><div><h{i % 3 + 1}>{text(3)}</div>")
    return "\n".join(out)


def typeset(seed, count, style):
    """A paper for groff's macros ms, or a reference for its macros man."""
    r = random.Random(seed)
    words = "a considerable number of experiments on hyphenation and justification was made by typographers".split()
    text = lambda n: " ".join(r.choice(words) for _ in range(n))
    out = [".TL", "A paper", ".AU", "Nobody"] if style == "ms" else [".TH NAME 1 2020"]
    for i in range(count):
        if style == "ms":
            out += [".NH", text(4)] if i % 10 == 0 else []
            out += [".PP", text(r.randint(50, 200)), ".I " + text(1)]
            out += [text(30) + " \\fBbold\\fP \\(em \\s+2big\\s0", text(20)]
        else:
            out += [f".SH {text(2)}"] if i % 10 == 0 else []
            out += [".TP", f".BI \\-\\-{text(1)} \" \" {text(1)}", text(r.randint(5, 30)), f".IR {text(1)} (1),"]
            out += [".RS", ".nf", text(5), text(7), ".fi", ".RE", f".B {text(2)}"]
    return "\n".join(out) + "\n"

def photo(seed, width, height):
    """Grey pixels of seven bits: hills of light, with edges and grain."""
    r = random.Random(seed)
    hills = [(r.uniform(0, width), r.uniform(0, height), r.uniform(20, 90), r.uniform(-45, 45)) for _ in range(12)]
    out = bytearray()
    for y in range(height):
        near = [(x0, power * math.exp(-(((y - y0) / size) ** 2)), size) for x0, y0, size, power in hills]
        for x in range(width):
            light = sum(power * math.exp(-(((x - x0) / size) ** 2)) for x0, power, size in near if abs(power) > 1)
            light += r.gauss(64, 2) + (15 if (x // 37 + y // 53) % 5 == 0 else 0)
            out.append(int(max(0, min(127, light))))
    return bytes(out)


def page(seed, width, height):
    """A scanned page: each letter is one of 40 shapes, with specks and ragged edges."""
    r = random.Random(seed)
    rows = [bytearray(width) for _ in range(height)]
    shapes = []
    for _ in range(40):
        shape = [[0] * 20 for _ in range(28)]
        for _ in range(4):
            x, y, upright = r.randrange(17), r.randrange(25), r.random() < 0.5
            for i in range(r.randint(8, 26)):
                for j in range(4):
                    if (y + (i if upright else j)) < 28 and (x + (j if upright else i)) < 20:
                        shape[y + (i if upright else j)][x + (j if upright else i)] = 1
        shapes.append(shape)
    for top in range(40, height - 70, 45):
        for left in range(40, width - 60, 24):
            if r.random() < 0.15:
                continue
            for y, line in enumerate(r.choice(shapes)):
                for x, dot in enumerate(line):
                    rows[top + y][left + x] = dot ^ (r.random() < 0.015)
    packed = bytearray()
    for row in rows:
        packed += int("".join(map(str, row)).ljust((width + 7) // 8 * 8, "0"), 2).to_bytes((width + 7) // 8, "big")
    return f"P4\n{width} {height}\n".encode() + packed


def gif(frames, width, height, palette):
    """An animation whose pixels, seven bits each, are written without compression."""
    out = bytearray(b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF6, 0, 0) + bytes(palette))
    out += b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    for frame in frames:
        out += b"!\xf9\x04\x04" + struct.pack("<HBB", 5, 0, 0) + b"," + struct.pack("<HHHHB", 0, 0, width, height, 0)
        codes = bytearray()
        for at in range(0, len(frame), 120):
            codes += b"\x80" + frame[at : at + 120]
        codes += b"\x81"
        out += b"\x07" + b"".join(
            bytes([len(codes[i : i + 255])]) + codes[i : i + 255] for i in range(0, len(codes), 255)
        )
        out += b"\0"
    return bytes(out + b";")


def film(seed, count, width, height):
    """Frames of figures that move on a pattern."""
    r = random.Random(seed)
    balls = [
        [r.uniform(0, width), r.uniform(0, height), r.uniform(-4, 4), r.uniform(-4, 4), r.randint(5, 25)]
        for _ in range(9)
    ]
    ground = [bytes((x * x // 90 + y * 3) // 16 % 64 for x in range(width)) for y in range(height)]
    for _ in range(count):
        rows = [bytearray(line) for line in ground]
        for i, ball in enumerate(balls):
            ball[0], ball[1] = (ball[0] + ball[2]) % width, (ball[1] + ball[3]) % height
            for y in range(max(0, int(ball[1]) - ball[4]), min(height, int(ball[1]) + ball[4])):
                half = int(math.sqrt(ball[4] ** 2 - (y - int(ball[1])) ** 2))
                for x in range(max(0, int(ball[0]) - half), min(width, int(ball[0]) + half)):
                    rows[y][x] = 64 + i * 7 + (x + y) % 7
        yield b"".join(rows)


def circuit(seed, latches, gates, outputs):
    """A sequential circuit in BLIF; a third of its gates are made twice, in another form."""
    r = random.Random(seed)
    inputs, states = [f"i{i}" for i in range(24)], [f"s{i}" for i in range(latches)]
    names, body = inputs + states, []
    forms = ["11 1", "1- 1\n-1 1", "10 1\n01 1", "0- 1\n-0 1", "00 1"]
    again = {
        "11 1": "0- 0\n-0 0",
        "1- 1\n-1 1": "00 0",
        "10 1\n01 1": "11 0\n00 0",
        "0- 1\n-0 1": "11 0",
        "00 1": "1- 0\n-1 0",
    }
    for i in range(gates):
        a, b, form = r.choice(names[-90:]), r.choice(names), r.choice(forms)
        body.append(f".names {a} {b} g{i}\n{form}")
        names.append(f"g{i}")
        if i % 3 == 0:
            body.append(f".names {b} {a} h{i}\n{again[form]}")
            names.append(f"h{i}")
    last = names[-(latches + outputs) * 2 :]
    head = f".model circuit\n.inputs {' '.join(inputs)}\n.outputs {' '.join(f'o{i}' for i in range(outputs))}\n"
    tail = [f".latch {last[i]} s{i} 0" for i in range(latches)]
    tail += [f".names {last[latches + i]} o{i}\n1 1" for i in range(outputs)]
    return head + "\n".join(body + tail) + "\n.end\n"


def colouring(seed, vertices, degree, colours):
    """Colourings of a graph as a ground program of answer sets, in clasp's format."""
    r = random.Random(seed)
    atom = lambda vertex, colour: vertex * colours + colour + 1
    out = ["asp 1 0 0"]
    for v in range(vertices):
        atoms = [atom(v, c) for c in range(colours)]
        out.append(f"1 1 {colours} {' '.join(map(str, atoms))} 0 0")
        out.append("1 0 0 0 " + f"{colours} " + " ".join(str(-a) for a in atoms))
        out += [f"1 0 0 0 2 {a} {b}" for a in atoms for b in atoms if a < b]
        for other in r.sample(range(vertices), degree // 2):
            if other != v:
                out += [f"1 0 0 0 2 {atom(v, c)} {atom(other, c)}" for c in range(colours)]
        out += [f"4 {len(f'c({v},{c})')} c({v},{c}) 1 {atom(v, c)}" for c in range(colours)]
    return "\n".join(out) + "\n0\n"


def covering(seed, things, sets):
    """The cheapest sets that cover all things, in OPB."""
    r = random.Random(seed)
    members = [[] for _ in range(things)]
    for s in range(sets):
        for thing in r.sample(range(things), r.randint(3, 7)):
            members[thing].append(s + 1)
    out = [f"* #variable= {sets} #constraint= {things}"]
    out.append("min: " + " ".join(f"+{r.randint(2, 20)} x{s + 1}" for s in range(sets)) + " ;")
    for line in members:
        if line:
            out.append(" ".join(f"+{r.randint(1, 2)} x{s}" for s in line) + f" >= {1 if len(line) < 3 else 2} ;")
    return "\n".join(out) + "\n"


def reads(seed, genome, count, length, rate):
    """Pieces of a genome, of either strand, with changed, lost and added letters."""
    r = random.Random(seed)
    out = []
    for _ in range(count):
        at, size = r.randrange(len(genome) - length), r.randint(length // 2, length)
        piece = []
        for letter in genome[at : at + size]:
            chance = r.random()
            if chance < rate / 3:
                continue
            piece.append(r.choice("ACGT") if chance < rate * 2 / 3 else letter)
            if chance > 1 - rate / 3:
                piece.append(r.choice("ACGT"))
        piece = "".join(piece)
        out.append(piece if r.random() < 0.5 else piece[::-1].translate(str.maketrans("ACGT", "TGCA")))
    return out


def colours(seed, width, height, tiles=1):
    """A picture of three colours with eight bits each, repeated downwards."""
    planes = [photo(seed + i, width, height) for i in range(3)]
    pixels = bytes(2 * value for triple in zip(*planes) for value in triple)
    return f"P6\n{width} {height * tiles}\n255\n".encode() + pixels * tiles


def raw_video(frames, width, height):
    """Frames with twice as many values of light as of colour."""
    half = bytes(96 + (x // 20) % 64 for x in range(width // 2)) * (height // 2)
    return b"".join(bytes(2 * value for value in frame) + half + half for frame in frames)


def keywords(seed, count, style):
    """A list for gperf: identifiers of a programming language with numbers, or codes of letters."""
    r = random.Random(seed)
    if style == "names":
        words = sorted(set(re.findall(r"[A-Za-z_]{4,24}", HEADERS)))
        lines = [f"{word}, {i}" for i, word in enumerate(r.sample(words, count))]
        return "struct entry { const char *name; int number; };\n%%\n" + "\n".join(lines) + "\n%%\n"
    codes = set()
    while len(codes) < count:
        codes.add("".join(r.choice("abcdefgh") for _ in range(r.randint(5, 8))))
    return "\n".join(sorted(codes)) + "\n"


def handbook(seed, count):
    """Markdown with tables, footnotes, definitions and fences."""
    r = random.Random(seed)
    words = "each value is kept until its owner asks for the next one or `drops` it *at once* so".split()
    text = lambda n: " ".join(r.choice(words) for _ in range(n))
    out = []
    for i in range(count):
        kind = r.randrange(5)
        if kind == 0:
            rows = "\n".join(f"{text(2)} | {r.randrange(999)} | {text(3)}" for _ in range(6))
            out.append(f"name | number | note\n:---|---:|:---:\n{rows}")
        elif kind == 1:
            out.append(f"{text(8)}[^n{i}] {text(5)}\n\n[^n{i}]: {text(12)}")
        elif kind == 2:
            out.append(f"~~~\n{text(9)}\n<tag> & {i}\n~~~")
        elif kind == 3:
            out.append("\n".join(f"{n + 1}. {text(6)}\n    + {text(5)}\n    + [a {i}][r{i}]" for n in range(4)))
            out.append(f"[r{i}]: <http://example.com/{i}> 'title {i}'")
        else:
            out.append(f"Part {i}\n-------\n\n> {text(20)}\n> > {text(9)}\n\n{text(40)}")
    return "\n\n".join(out) + "\n"


def points(seed, count, dimensions, shape):
    r = random.Random(seed)
    out = []
    for _ in range(count):
        place = [r.gauss(0, 1) for _ in range(dimensions)]
        if shape == "sphere":
            length = math.sqrt(sum(value * value for value in place)) / r.uniform(0.9, 1)
            place = [value / length for value in place]
        out.append(" ".join(f"{value:.6f}" for value in place))
    return f"{dimensions}\n{count}\n" + "\n".join(out) + "\n"


def modules(seed, count, language):
    """Source text of a scripting language."""
    r = random.Random(seed)
    word = lambda: "".join(r.choice("aeioumnrst") for _ in range(r.randint(4, 9)))
    out = []
    for i in range(count):
        name = word() + str(i)
        if language == "python":
            out.append(
                f'class {name.title()}(Base{i % 9}):\n    """A class:\n\n    def not_this(): {word()}\n    """\n    {word()} = {i}\n'
            )
            for _ in range(r.randint(2, 6)):
                out.append(
                    f"    def {word()}(self, {word()}, *rest):\n        if self.{word()} > {i}:  # def nothing()\n            return '{word()}'\n        return lambda x: x + {i}\n"
                )
        elif language == "perl":
            out.append(
                f"package {name}::{word()};\n\n=head1 {word()}\n\nsub nothing {{ }}\n\n=cut\n\nuse constant {name.upper()} => {i};"
            )
            for _ in range(r.randint(2, 6)):
                out.append(
                    f'sub {word()} {{\n    my ($self, $n) = @_; # sub {word()}\n    return $n =~ /{word()}/ ? {i} : "{word()}";\n}}'
                )
        else:
            out.append(
                f"var {name} = {{\n  {word()}: function(a, b) {{ return a + b; /* function x() {{}} */ }},\n  {word()}: {i}\n}};"
            )
            for _ in range(r.randint(2, 6)):
                out.append(
                    f"function {word()}(a, b) {{\n  if (a > {i}) {{ return '{word()}'; }}\n  this.{word()} = function () {{ return b; }};\n}}"
                )
    return "\n".join(out) + "\n"


def pcm(seed, count, rate, channels, kind):
    """Samples of 16 bits: syllables of a voice, or chords with beats."""
    r = random.Random(seed)
    data, state = bytearray(), 0.0
    for i in range(count):
        if i % (rate // 6) == 0:
            pitch, tones, loud = r.uniform(90, 220), [r.uniform(80, 5000) for _ in range(7)], r.choice([0.02, 1, 0.6])
        time = i / rate
        if kind == "voice":
            pulse = (time * pitch) % 1
            state = state * 0.85 + (1 - 2 * pulse) * loud * 3000 + r.gauss(0, 150)
            value = state * (0.6 + 0.4 * math.sin(time * tones[0]))
        else:
            value = (
                sum(math.sin(time * tone * 2 * math.pi) for tone in tones)
                * 2500
                * math.exp(-(i % (rate // 6)) / rate * 5)
            )
            value += r.gauss(0, 60)
        for side in range(channels):
            data += struct.pack("<h", int(max(-32000, min(32000, value * (1 - side * 0.3)))))
    return bytes(data)


def floats(seed, count):
    """Sound of 32 bits with a point."""
    data = struct.pack(
        f"<{count}f", *(value / 32768.0 for (value,) in struct.iter_unpack("<h", pcm(seed, count, 44100, 1, "music")))
    )
    head = struct.pack("<IHHIIHH", 16, 3, 1, 44100, 176400, 4, 32)
    return (
        b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + head + b"data" + struct.pack("<I", len(data)) + data
    )


def puzzle(pigeons, parities, seed):
    """More pigeons than holes, and long sums modulo two that are the same: clauses for a solver."""
    r = random.Random(seed)
    holes = pigeons - 1
    at = lambda pigeon, hole: pigeon * holes + hole + 1
    out = [[at(p, h) for h in range(holes)] for p in range(pigeons)]
    out += [[-at(p, h), -at(q, h)] for h in range(holes) for p in range(pigeons) for q in range(p)]
    last = pigeons * holes
    bits = list(range(last + 1, last + 1 + parities))
    last += parities
    for turn in range(2):
        r.shuffle(bits)
        total = bits[0]
        for bit in bits[1:]:
            last += 1
            out += [[-last, total, bit], [-last, -total, -bit], [last, -total, bit], [last, total, -bit]]
            total = last
        out.append([total if turn else -total])
    return f"p cnf {last} {len(out)}\n" + "".join(" ".join(map(str, clause)) + " 0\n" for clause in out)


def yacc(seed, statements, style):
    """A grammar for yacc: statements of keywords and expressions, or lists of records that are ambiguous."""
    r = random.Random(seed)
    out = ["%token NAME NUMBER TEXT " + " ".join(f"K{i}" for i in range(statements))]
    if style == "language":
        out += [f"%left O{i} P{i}" for i in range(12)] + ["%%", "program: | program statement ';' ;"]
        parts = lambda: " ".join(r.choice(["NAME", "expr", "'('", "K0"]) for _ in range(4))
        forms = [f"K{i} {parts()}" for i in range(statements)]
        out += ["statement: " + "\n  | ".join(form + " block { $$ = $1; }" for form in forms) + " ;"]
        out += ["block: '{' program '}' | '{' error '}' | ':' expr ;"]
        out += ["expr: " + "\n  | ".join(f"expr {o}{i} expr {{ $$ = f($1, $3); }}" for o in "OP" for i in range(12))]
        out += ["  | '-' expr %prec P11 | NAME | NUMBER | TEXT | '(' expr ')' | NAME '(' list ')' ;"]
        return "\n".join(out + ["list: expr | list ',' expr ;\n%%\n"])
    out += ["%union { int n; char *s; }\n%type <n> item\n%%", "items: item | items item | items ',' items ;"]
    for i in range(statements):
        a, b, c = (r.randrange(statements) for _ in range(3))
        first = f"K{a} {{ $<s>$ = 0; }} r{b} K{c}"
        out.append(f"r{i}: {first} | K{i} r{b} | K{i} K{a} item NUMBER | TEXT K{i} ;")
    return "\n".join(out + ["item: " + " | ".join(f"r{i} {{ $$ = {i}; }}" for i in range(statements)) + " ;\n%%\n"])


def dictionary(name, seed, count, style):
    """A dictionary of hunspell, with words to look up: stems with affixes, or words made of several words."""
    r = random.Random(seed)
    letters = "aeioubcdfglmnprst" if style == "affixes" else "aeiouäöübdfghklmnrst"
    syllable = lambda: r.choice(letters[6:]) + r.choice(letters[:6]) + r.choice(["", "", "n", "r", "s"])
    stems = sorted({"".join(syllable() for _ in range(r.randint(1, 4))) for _ in range(count)})
    if style == "affixes":
        rules = [(kind, chr(65 + i)) for i, kind in enumerate("PPPPSSSSSSSSSSSSSSSS")]
        affix = ["SET ISO8859-1", "TRY esianrtolcdug"]
        for kind, flag in rules:
            affix.append(f"{kind}FX {flag} Y 4")
            affix += [f"{kind}FX {flag} {r.choice('0e') if kind == 'S' else 0} {syllable()} ." for _ in range(4)]
        flags = lambda: "/" + "".join(r.sample([flag for _, flag in rules], 5))
    else:
        affix = ["SET UTF-8", "COMPOUNDMIN 2", "COMPOUNDFLAG Z", "COMPOUNDPERMITFLAG Y", "CHECKCOMPOUNDCASE"]
        affix += ["SFX E Y 2", "SFX E 0 en .", "SFX E 0 s/YZ [^s]"]
        flags = lambda: "/" + r.choice(["Z", "Z", "EZ", "E"]) + "\tst:x po:noun"
    write(f"{name}.aff", "\n".join(affix) + "\n")
    write(f"{name}.dic", f"{len(stems)}\n" + "".join(f"{stem}{flags()}\n" for stem in stems))
    if style == "affixes":
        word = lambda: r.choice(["", "", syllable()]) + r.choice(stems) + r.choice(["", syllable(), "s", "s!", ","])
    else:
        word = lambda: r.choice(stems) + r.choice(stems) + r.choice(["", "en", "s", r.choice(stems)])
    return word


def targets(seed, count, style):
    """What ninja builds: objects and libraries with flags of their own, or stages that wait for one another."""
    r = random.Random(seed)
    out = ["ninja_required_version = 1.3", "flags = -O2 -Wall", "rule cc", "  command = cc $flags $more -c $in -o $out"]
    out += ["  description = CC $out", "  depfile = $out.d", "rule ar", "  command = rm -f $out && ar crs $out $in", ""]
    if style == "objects":
        for i in range(count):
            out += [f"build obj/d{i % 90}/f{i}.o: cc ${{root}}src/d{i % 90}/f{i}.c | gen/h{i % 50}.h || dirs"]
            out += [f"  more = -I$ include/d{i % 90} -DNAME=f{i} $\n      -DN={r.randrange(99)}"] if i % 2 else []
        for i in range(0, count, 40):
            objects = " $\n  ".join(f"obj/d{j % 90}/f{j}.o" for j in range(i, min(count, i + 40)))
            out += [f"build lib/l{i}.a: ar {objects}"]
        out += ["build dirs: phony", "build all: phony " + " ".join(f"lib/l{i}.a" for i in range(0, count, 40))]
        out += [f"build gen/h{i}.h: cc gen/h{i}.in\nbuild gen/h{i}.in: phony" for i in range(50)]
        out += [f"build src/d{i % 90}/f{i}.c: phony" for i in range(count)]
        return "\n".join(out + ["default all"]) + "\n"
    for i in range(count):
        before = sorted({r.randrange(max(0, i - 60), i) for _ in range(5)}) if i else []
        ends = [f"s{j}.{'ab'[j % 2]}" for j in before]
        half = len(ends) // 2
        ends = f"{' '.join(ends[:half]) or 'start'} | {' '.join(ends[half:])}"
        out += [f"build s{i}.a s{i}.b | s{i}.log: {'cc' if i % 3 else 'ar'} {ends}"]
        out += [f"  flags = -s{i % 7}"] if i % 5 == 0 else []
    return "\n".join(out) + "\n"


def pdf(seed, pages, style):
    """A document of text that is not packed, or of many small objects: annotations, outlines and names."""
    r = random.Random(seed)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for i in range(pages):
        lines = []
        for j in range(40 if style == "text" else 3):
            place = f"{r.randint(30, 90)} {700 - j * 12}"
            lines.append(f"BT /F1 {r.randint(8, 14)} Tf {place} Td (Line {j} \\(of {i}\\)) Tj ET")
        lines += [f"{r.random():.3f} {r.random():.4f} 0 rg {r.randint(0, 500)} {j} 40 20 re f" for j in range(20)]
        data = "\n".join(lines)
        objects.append(f"<< /Length {len(data)} >>\nstream\n{data}\nendstream")
        page, marks = len(objects) + 1, []
        if style != "text":
            marks = [page + 1 + j for j in range(30)]
        kids.append(page)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {page - 1} 0 R /Resources "
            "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> "
            f"/Annots [{' '.join(f'{m} 0 R' for m in marks)}] >>"
        )
        for j in range(len(marks)):
            objects.append(
                f"<< /Type /Annot /Subtype /Link /Rect [{j} {i} {j + 40} 90.5] /Border [0 0 .5] /F 4 /Dest "
                f"[{r.choice(kids)} 0 R /XYZ null {r.randint(0, 800)} 0] /NM (n{i}\\055{j}) /M <feff{j:04x}> >>"
            )
    objects[1] = f"<< /Type /Pages /Count {pages} /Kids [{' '.join(f'{k} 0 R' for k in kids)}] >>"
    out, places = bytearray(b"%PDF-1.4\n"), []
    for i, body in enumerate(objects):
        places.append(len(out))
        out += f"{i + 1} 0 obj\n{body}\nendobj\n".encode()
    end = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{end}\n%%EOF\n".encode())


def interface(seed, count, style):
    """What swig wraps: functions and structs of C, or classes and templates of C++."""
    r = random.Random(seed)
    kind = lambda: r.choice(["int", "double", "const char *", "unsigned long", "struct s0 *", "E0"])
    out = ["%module m", "enum E0 { X0, Y0 = 4, Z0 };"]
    for i in range(count):
        if style == "c":
            out.append(f"#define LIMIT_{i} ({i} * 2 + 1)")
            out.append(f"struct s{i} {{ {'; '.join(f'{kind()} m{j}' for j in range(r.randint(1, 5)))}; }};")
            out.append(f"{kind()} f{i}({', '.join(f'{kind()} a{j}' for j in range(r.randint(1, 4)))});")
            out.append(f"typedef int (*handler{i})(struct s{i} *, int);\nextern {kind()} v{i};")
        else:
            kinds = ["int", "double", "const std::string &", "bool", f"C{r.randint(0, i)} *", "N::T<int>"]
            kind = lambda: r.choice(kinds)
            base = f" : public C{r.randrange(i)}" if i and i % 3 else ""
            out.append(f"class C{i}{base} {{\npublic:\n  C{i}();\n  C{i}({kind()} a, {kind()} b = 0);")
            out += [f"  virtual {kind()} m{j % 3}({kind()} x) const;" for j in range(r.randint(2, 5))]
            out.append(f"  C{i} operator+(const C{i} &o) const;\n  enum Kind {{ first, second = {i} }};\n  ~C{i}();\n}};")
            if i % 4 == 0:
                out.append(f"template <class K> class T{i} {{ public: K get(int at); void put(const K &k, int n = 1); }};")
                out.append(f"%template(T{i}int) T{i}<int>;\n%template(T{i}c) T{i}<C{i} *>;")
    head = '%include "std_string.i"\nnamespace N { template <class X> struct T { X x; }; }\n' if style == "c++" else ""
    return out[0] + "\n" + head + "\n".join(out[1:]) + "\n"


def tables(seed, count, style):
    """A schema for flatc, or values that have its form."""
    r = random.Random(seed)
    if style == "schema":
        out = ["namespace deep.space;", "enum Kind : byte { Small = 0, Large, Other = 9 }"]
        out.append("struct Place { x:float; y:float; z:double; }")
        kinds = ["int", "string", "[ubyte]", "Place", "Kind = Large", "double = 1.5", "[string]"]
        for i in range(count):
            fields = [f"  f{j}:{r.choice(kinds)};" for j in range(r.randint(3, 9))]
            fields += [f"  t{j}:T{r.randrange(i)};\n  more{j}:[T{r.randrange(i)}];" for j in range(2) if i]
            out.append(f"/// Table {i}\ntable T{i} {{\n" + "\n".join(fields) + "\n}")
            if i % 8 == 7:
                out.append(f"union U{i} {{ T{i}, T{i - 1}, T{i - 5} }}\ntable H{i} {{ any:U{i}; id:ulong (key); }}")
        return "\n".join(out) + f"\nroot_type T{count - 1};\n"
    out = []
    for i in range(count):
        out.append({"id": i, "name": f"n{r.randrange(999)} \u00e9 \"x\"", "kind": r.choice(["Small", "Large"])})
        out[-1]["place"] = {"x": r.random(), "y": -i, "z": 1e9 * r.random()}
        out[-1]["bytes"] = [r.randrange(256) for _ in range(9)]
        out[-1]["tags"] = r.sample(["a", "bb", "ccc", "dd\n"], 2)
        out[-1] |= {"any_type": "Note", "any": {"text": "t" * (i % 30)}}
    return json.dumps({"items": out}, indent=1)


def wat(seed, count, style):
    """A module of WebAssembly as text: expressions that are folded, or lists of instructions with data."""
    r = random.Random(seed)

    def folded(depth):
        if depth == 0 or r.random() < 0.1:
            number = f"(i32.const {r.randrange(-999, 9999)})"
            return r.choice([number, "(local.get $a)", "(local.get 1)", "(global.get $g)"])
        if r.random() < 0.15:
            return f"(if (result i32) {folded(0)} (then {folded(depth - 1)}) (else {folded(depth - 1)}))"
        if r.random() < 0.1:
            return f"(call $f{r.randrange(count)} {folded(depth - 1)} {folded(0)})"
        return f"(i32.{r.choice(['add', 'sub', 'mul', 'and', 'shl', 'lt_s'])} {folded(depth - 1)}\n    {folded(depth - 1)})"

    out = ["(module", "(memory 4)", "(global $g (mut i32) (i32.const 7))"]
    if style == "folded":
        for i in range(count):
            head = f'(func $f{i} (export "f{i}") (param $a i32) (param i32) (result i32) ;; number {i}'
            out.append(f"{head}\n  {folded(6)})")
        return "\n".join(out) + ")\n"
    out += ["(type $t (func (param f64 i64) (result f64)))", f"(table {count} funcref)"]
    for i in range(count):
        body = ["block $out", "loop $again", "local.get 1", "i64.const 0x1_f", "i64.xor", "local.tee 1", "i64.eqz"]
        body += ["br_if $out", "br $again", "end", "end", "local.get 0"]
        for _ in range(r.randint(5, 40)):
            body += [f"f64.const {r.random() * 1e6:.6e}", r.choice(["f64.add", "f64.mul", "f64.max"]), "i32.const 8"]
            body += [f"f64.load offset={8 * r.randrange(99)} align=8", "f64.sub"]
            body += [f"f64.const 0x{r.randrange(4096):x}.8p+{r.randrange(9)}", "f64.add"]
        out.append("(func (type $t)\n" + "\n".join(f"  {line}" for line in body) + ")")
        text = "".join(r.choice(["a", "\\00", "\\n", "\\ff", "text ", "(;"]) for _ in range(40))
        out.append(f'(data (i32.const {i * 8}) "{text}")\n(elem (i32.const {i}) {i})\n(; block (; comment ;) {i} ;)')
    return "\n".join(out) + ")\n"


def macros(seed, count):
    """Text for the preprocessor of C: macros that take macros, conditions and joined names."""
    r = random.Random(seed)
    out = ["#define JOIN_(a, b) a##b", "#define JOIN(a, b) JOIN_(a, b)", "#define TEXT(a) #a"]
    out.append("#define EACH(f, a, ...) f(a) f(__VA_ARGS__)")
    for i in range(count):
        a, b = r.randrange(max(1, i)), r.randrange(max(1, i))
        kind = r.randrange(5) if i else 0
        if kind == 0:
            out.append(f"#define M{i} {i} + JOIN(x, {i}) /* a comment */")
        elif kind == 1:
            out.append(f"#define M{i} (JOIN(M, {max(0, a - 5)}) * \\\n  {b})")
        elif kind == 2:
            out.append(f"#if defined(M{a}) && (M_{b} + {i} > 1 << 3 || !defined M{b})")
            out.append(f'#define M{i} TEXT(M{b} "{i}")\n#else\n#define M{i} M0\n#endif')
        elif kind == 3:
            out.append(f"#define F{i}(x, y) JOIN(x, y) = x + y * {i}, TEXT(x)")
            out.append(f"#define M{i} F{i}(v{a}, {b}) EACH(TEXT, q{i}, r)")
        else:
            out.append(f"#undef M{i}\n#define M{i} -1L\n#ifdef N{a}\n#error no\n#endif // nothing")
        out += [f"int JOIN(v, {i})[] = {{ M{r.randrange(i + 1)}, M{r.randrange(i + 1)} }};" for _ in range(20)]
    return "\n".join(out) + "\n"


def trnas(seed, count, gap):
    """A genome with genes of transfer RNA, whose stems pair."""
    r = random.Random(seed)
    bases = lambda n: "".join(r.choice("ACGT") for _ in range(n))
    paired = lambda stem: stem[::-1].translate(str.maketrans("ACGT", "TGCA"))
    out = []
    for _ in range(count):
        ends, d, anticodon, t = (bases(n) for n in (7, 4, 5, 5))
        arms = [d, "AGCTGGTAGA", paired(d), "A", anticodon, "CT", bases(3), "AA", paired(anticodon), "AGGTC"]
        out += [bases(gap), ends, "TA", *arms, t, "TTCGAAT", paired(t), paired(ends), "ACCA"]
    return ["".join(out)]


def features(seed, count, style):
    """Intervals of chromosomes as BED, or sorted with a value."""
    r = random.Random(seed)
    out = []
    for i in range(count):
        start = r.randrange(9_000_000)
        end = start + (r.randint(10, 3000) if r.random() < 0.9 else r.randint(10_000, 200_000))
        out.append((f"chr{r.randint(1, 12)}", start, end, f"f{i}", r.randrange(1000), r.choice("+-")))
    if style == "sorted":
        out.sort()
    return "".join("\t".join(map(str, feature)) + "\n" for feature in out)


def calls(seed, count, fan):
    """A program in C whose functions call one another."""
    r = random.Random(seed)
    out = ["typedef struct node { struct node *next; int n; } node;"]
    for i in range(count):
        names = [f"f{r.randrange(max(0, i - 30), i)}" for _ in range(fan)] if i else []
        body = "\n".join(f"  if (p->n > {r.randrange(99)}) p = {name}(p, x + {i}); /* {name} */" for name in names)
        out.append(f"{'static ' if i % 3 else ''}node *f{i}(node *p, int x)\n{{\n{body}\n  return p->next;\n}}")
    return "\n".join(out) + "\n"


def lines_of_lp(text):
    """A program of CPLEX's LP format in that of lp_solve."""
    text, binary = (text.split("Binary\n") + [""])[:2]
    text = re.sub(r"(Min|Max)imize\n\w+:", lambda m: m[1].lower() + ":", text.replace("Subject To\n", ""))
    text = re.sub(r"\n(?! )", ";\n", text.replace("End\n", "").rstrip("\n") + "\n")
    names = binary.replace("End", "").split()
    return text + ("".join(f"{y} <= 1;\n" for y in names) + f"int {','.join(names)};\n" if names else "")


def mdoc(seed, count):
    """A reference in the macros of BSD, with lists and tables."""
    r = random.Random(seed)
    words = "the function returns a pointer to an object that is valid until it is called again".split()
    text = lambda n: " ".join(r.choice(words) for _ in range(n))
    out = [".Dd January 1, 2020", ".Dt NAME 3", ".Os", ".Sh NAME", ".Nm name", ".Nd a library", ".Sh DESCRIPTION"]
    for i in range(count):
        kind = r.randrange(5)
        if kind == 0:
            out += [f".Ss Part {i}", f".Fn name{i} \"int a\" \"char *b\"", ".Bl -tag -width Ds -compact"]
            for flag in "abcd":
                out += [f".It Fl {flag} Ar {text(1)}", text(12), f".Xr n{flag} 3 ,"]
            out += [".El"]
        elif kind == 1:
            rows = [f"{text(2)}\t{r.randrange(9999)}\t{r.random():.3f}" for _ in range(6)]
            out += [".TS", "allbox tab(\t);", "l r n.", *rows, ".TE"]
        elif kind == 2:
            out += [".Bd -literal -offset indent", f"{text(4)}\n\t{text(6)};\n", ".Ed"]
        elif kind == 3:
            out += [".Bl -column one two", f".It {text(2)} Ta Em {text(2)}", f".It Sy {text(1)} Ta {text(3)}", ".El"]
        else:
            out += [".Pp", text(r.randint(20, 90)), f".Em {text(3)}", f".Dq Li {text(1)} \\(em \\fB{text(2)}\\fP"]
    return "\n".join(out) + "\n"


write(
    "bc.t",
    """scale=600
4*a(1)
e(1)
define f(n){if(n<2)return n;return f(n-1)+f(n-2)}
f(21)
for(i=0;i<400;i++){x=x*7+i%13;x=x%(10^40)}
x
s(1)
2^3000
""",
)
write(
    "bc.e",
    """scale=300
l(2)
j(2,1)
sqrt(7)
define g(a,b){while(b>0){t=a%b;a=b;b=t};return a}
scale=0
for(i=1;i<3000;i++)y+=g(i*7919,360360)
y
3^1500/7^200
""",
)
write("cmark.t", markdown(1, 40000))
write("cmark.e", markdown(2, 6000))
write("lame.t", sound(1, 44100 * 20))
write("lame.e", sound(2, 44100 * 4))
write("mawk.t", requests(1, 400000))
write("mawk.e", requests(2, 60000))
write(
    "mawk.t.script",
    '{c[$1]+=$3;u[$4]++;if($2~/[0-9]*7$/)s+=$5;gsub(/p/,"q",$2);l+=length($0)}'
    "END{for(k in u)if(u[k]>m)m=u[k];for(k in c)print k,c[k];print s,l,m}",
)
write(
    "mawk.e.script",
    '{split($2,a,"/");n[a[3]%97]+=$3*2;x=x<$3?$3:x;if(index($4,"42"))h++;t=t substr($1,1,1);'
    'if(length(t)>100)t=""}END{for(i=0;i<97;i++)printf "%d %d\\n",i,n[i];print x,h,t}',
)
write("minisat2.t", clauses(1, 210, 4.26))
write("minisat2.e", clauses(4, 180, 4.26))
write("nasm.t", assembly(1, 120000))
write("nasm.e", assembly(2, 20000))
write("potrace.t", bitmap(1, 2500))
write("potrace.e", bitmap(2, 1200))
write("zopfli.t", HEADERS[:400_000])
write("zopfli.e", LIBRARY[:150_000])
write("clzip.t", HEADERS[:2_500_000])
write("clzip.e", LIBRARY[:1_800_000])
write("dialign-t.t", fasta(related(7, 12, 220, ACIDS, 0.3)))
write("dialign-t.e", fasta(related(8, 6, 260, ACIDS, 0.5)))
write("fastdnaml.t", phylip(related(5, 16, 400, "ACGT", 0.06)))
write("fastdnaml.e", phylip(related(6, 12, 1200, "ACGT", 0.1)))
write("fasttree.t", fasta(related(1, 220, 500, "ACGT", 0.05)))
write("fasttree.e", fasta(related(2, 45, 500, "ACGT", 0.12)))
write("palp.t", weights(1, 1500, 14))
write("palp.e", weights(2, 500, 40))
write("ssed.t", (HEADERS * 3)[:6_000_000])
write("ssed.e", log(9, 60000))
write(
    "ssed.t.script",
    "s/class \\([A-Za-z]*\\)/struct \\1/g\n/^ *\\/\\//d\ns/[ \\t]*$//\n/virtual/{s/virtual //;p}\ny/abc/ABC/\n",
)
write("ssed.e.script", "/status ok/!s/request \\([0-9]*\\) took \\([0-9]*\\) ms/\\2:\\1/\ns/host1[0-9]/H/g\nN\nP\nD\n")
zipped("unzip.t", (HEADERS * 14).encode())
zipped("unzip.e", LIBRARY[:34_000_000])
write("astronomical-almanac.t", almanac(1, 700, [0, 1, 2, 3], 1))
write("astronomical-almanac.e", almanac(2, 120, [4, 5, 6, 7, 8], 30))
write("bison.t", grammar(1, 60, 4, "lalr"))
write("bison.e", grammar(2, 30, 3, "glr"))
write("7zip.t", HEADERS[:3_000_000])
write("7zip.e", LIBRARY[:1_500_000])
write("clustalw.t", fasta(related(21, 14, 220, ACIDS, 0.3)))
write("clustalw.e", fasta(related(22, 9, 900, "ACGT", 0.25)))
write("flac.t", sound(3, 44100 * 60))
write("flac.e", sound(4, 44100 * 30))
write("glpk.t", linear(1, 170, 230, "transport"))
write("glpk.e", linear(2, 30, 70, "knapsack"))
write("cliquer.t", edges(1, 200, 0.72, 12))
write("cliquer.e", edges(2, 260, 0.62, 12))
write("dialign.t", fasta(related(11, 14, 260, ACIDS, 0.3)))
write("dialign.e", fasta(related(12, 6, 420, ACIDS, 0.55)))
write("flex.t", lexer(1, 1200, "keywords"))
write("flex.e", lexer(2, 500, "states"))
write("gaffitter.t", "".join(f"{random.Random(i).randint(10, 900)} f{i}\n" for i in range(400)))
write("gaffitter.e", "".join(f"{random.Random(-i).choice([100, 250, 333])} g{i}\n" for i in range(150)))
write("gawk.t", log(3, 90000))
write("gawk.e", requests(3, 30000))
write("grep.t", (HEADERS * 4)[:12_000_000])
write("grep.e", log(5, 120000))
write("halibut.t", manual(1, 20, 25, "reference"))
write("halibut.e", manual(2, 12, 12, "prose"))
write("lunzip.t", lzip(HEADERS[:6_000_000].encode()))
write("lunzip.e", lzip(LIBRARY[:6_000_000]))
write("mona.t", sums("order", 9))
write("mona.e", sums("chain", 7))
write("original-awk.t", log(4, 40000))
write("original-awk.e", requests(4, 30000))
for number, atoms in structures(1, 4, 100):
    write(f"mustang.e.{number}", atoms)
write("phalanx.t", games(["e2e4 e7e5 g1f3 b8c6 f1b5", "d2d4 d7d5 c2c4 e7e6", "c2c4 g8f6 b1c3 e7e5"], 12))
write("phalanx.e", games(["e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6", "d2d4 g8f6 c2c4 g7g6 b1c3 f8g7 e2e4"], 11))
write("wordplay.e", "".join(sorted({f"{word}\n" for word in re.findall("[a-z]{2,}", HEADERS)})))
write("xdelta3.t.old", HEADERS[:5_000_000])
write("xdelta3.t", edited(1, HEADERS[:5_000_000].encode(), 900))
write("xdelta3.e.old", LIBRARY[:5_000_000])
write("xdelta3.e", edited(2, LIBRARY[:5_000_000], 9000))
repository("git.t", 1, {f"d{i % 5}/f{i}.h": HEADERS[i * 30_000 : (i + 1) * 30_000] for i in range(30)}, 300, 8)
repository("git.e", 2, {"hosts.log": log(6, 4000), "readme.md": markdown(3, 200)}, 200, 8)
write("vim.t.text", HEADERS[:400_000])
write("vim.e.text", "")
write("busybox.t.text", log(7, 30000))
write("busybox.e.text", requests(7, 20000))
write("cppcheck.t.cpp", source(1, 12, "c++"))
write("cppcheck.e.c", source(2, 10, "c"))
write("fairymax.t", variants("normal", ["e2e4 e7e5 g1f3", "d2d4 d7d5 c2c4 e7e6", "c2c4 g8f6 b1c3"]))
write("fairymax.e", variants("capablanca", ["e2e4", "d2d4 d7d5"]))
pedigrees("fastlink.t", 1, 40, 6, [12, 16, 14])
pedigrees("fastlink.e", 2, 8, 16, [24, 22])
write(
    "groff/devps/DESC",
    "res 72000\nhor 1\nvert 1\nsizescale 1000\nunitwidth 1000\nsizes 1000-10000000 0\nstyles R I B BI\nfamily T\n"
    "fonts 9 0 0 0 0 0 SS S ZD ZDR\ntcommand\npostpro grops\n",
)
write("groff.t", typeset(1, 900, "ms"))
write("groff.e", typeset(2, 2200, "man"))
write("indent.t", source(3, 500, "c"))
write("indent.e", source(4, 1100, "c++"))
write("jq.t.json", records(1, 12000))
write("jq.e.json", json.dumps([nested(i, 5) for i in range(30)]))
for name, document in zip(["libxml2.t.xsd", "libxml2.t"], schema_and_records(1, 50000)):
    write(name, document)
write("libxml2.e", web(1, 12000))
write("muscle.t", fasta(related(31, 14, 120, ACIDS, 0.3)))
write("muscle.e", fasta(related(32, 24, 150, "ACGT", 0.2)))
write("units.t", conversions(1, 20000, "plain"))
write("units.e", conversions(2, 3000, "formulas"))
write("berkeley-abc.e.blif", circuit(1, 60, 1500, 12))
write("clasp.t", colouring(4, 100, 10, 4))
write("clasp.e", covering(2, 60, 80))
write("djvulibre.t", page(1, 2550, 3300))
write("djvulibre.e", bitmap(3, 4000))
write("exuberant-ctags.t.h", (HEADERS * 2)[:8_000_000])
for language, suffix in [("python", "py"), ("perl", "pl"), ("javascript", "js")]:
    write(f"exuberant-ctags.e/a.{suffix}", modules(len(language), 3000, language))
write("ffmpeg.wav", sound(5, 44100 * 3))
write(
    "gifsicle.t",
    gif(film(1, 110, 240, 180), 240, 180, [r * k // 127 for r in range(128) for k in (127, 60 + r % 60, 127 - r)]),
)
write("gifsicle.e", gif([photo(3, 500, 400)], 500, 400, [r * 2 for r in range(128) for _ in "rgb"]))
GENOME = related(51, 1, 400_000, "ACGT", 0)[0]
write("minimap2.genome", fasta([GENOME]))
write("minimap2.t", fasta(reads(1, GENOME, 120, 6000, 0.12)))
write("minimap2.e", fasta(reads(2, GENOME, 6000, 150, 0.02)))
write("opus.t", pcm(1, 16000 * 20, 16000, 1, "voice"))
write("opus.e", pcm(2, 48000 * 24, 48000, 2, "music"))
write("qhull.t", points(1, 1200, 5, "sphere"))
write("qhull.e", points(2, 12000, 3, "cloud"))
write("wavpack.t", sound(6, 44100 * 20))
write("wavpack.e", floats(7, 44100 * 10))
write("discount.e", handbook(1, 14000))
write("gperf.t", keywords(1, 900, "names"))
write("gperf.e", keywords(2, 700, "codes"))
write("graphicsmagick.t", colours(61, 700, 500))
write("graphicsmagick.e", colours(71, 420, 300, 2))
write("gzip.t", HEADERS[:6_000_000])
write("gzip.e", LIBRARY[20_000_000:25_000_000])
write("libjpeg-turbo.t", colours(64, 900, 500, 9))
write("libjpeg-turbo.e", colours(74, 500, 400, 8))
write("lz4.t", HEADERS * 5)
write("lz4.e", LIBRARY[25_000_000:33_000_000])
write("picosat.t", clauses(11, 210, 4.26))
write("picosat.e", clauses(12, 260, 4.9))
write("prodigal.t", fasta(related(91, 1, 500_000, "ACGT", 0)))
write("prodigal.e", fasta(related(92, 3, 30_000, "ACGGCT", 0.3)))
write("x264.t", raw_video(film(2, 40, 352, 288), 352, 288))
write("x264.e", raw_video([photo(95 + i // 4, 320, 240) for i in range(8)], 320, 240))
write("brotli.t", HEADERS[:5_000_000])
write("brotli.e", LIBRARY[26_000_000:39_000_000])
write("byacc.t", yacc(1, 2500, "language"))
write("byacc.e", yacc(2, 300, "ambiguous"))
write("cadical.t", clauses(21, 220, 4.26))
write("cadical.e", puzzle(9, 44, 22))
write("libzstd.t", HEADERS * 2)
write("libzstd.e", LIBRARY[10_000_000:36_000_000])
write("libwebp.e", colours(81, 500, 600, 4))
for name, style in [("hunspell.t", "affixes"), ("hunspell.e", "compounds")]:
    word = dictionary(name, len(style), 12000, style)
    count = 40000 if style == "affixes" else 3000
    write(f"{name}.text", "\n".join(" ".join(word() for _ in range(9)) for _ in range(count)))
write("ninja-build.t", targets(1, 20000, "objects"))
write("ninja-build.e", targets(2, 30000, "stages"))
write("prank.t", fasta(related(121, 8, 150, ACIDS, 0.15)))
write("prank.e", fasta(related(122, 6, 210, "ACG", 0.05)))
write("probcons.t", fasta(related(131, 14, 160, ACIDS, 0.3)))
write("probcons.e", fasta(related(132, 6, 400, ACIDS, 0.5)))
write("qpdf.t", pdf(1, 900, "text"))
write("qpdf.e", pdf(2, 300, "objects"))
write("swig.t", interface(1, 300, "c"))
write("swig.e", interface(2, 120, "c++"))
ALLOCATION = "void *malloc(unsigned long); void free(void *);"
write("tcc.t.c", source(5, 1500, "c").replace("#include <stdlib.h>", ALLOCATION))
write("tcc.e.c", macros(6, 3000))
write("tidy-html5.t", web(2, 4000))
write("flatbuffers.t.fbs", tables(1, 900, "schema"))
write(
    "flatbuffers.e.fbs",
    """table Note { text:string; }
table Sign { n:int; }
union Any { Note, Sign }
enum Kind : byte { Small, Large }
struct Place { x:float; y:int; z:double; }
table Item { id:int (key); name:string (required); place:Place; kind:Kind; bytes:[ubyte]; tags:[string]; any:Any; }
table All { items:[Item]; }
root_type All;
""",
)
write("flatbuffers.e.json", tables(2, 20000, "values"))
write("wabt.t", wat(1, 4000, "folded"))
write("wabt.e", wat(2, 3000, "flat"))
write("aragorn.t", fasta(trnas(1, 300, 5000)))
write("aragorn.e", fasta(related(141, 1, 20_000, "AATTCG", 0)))
write("bedtools.t", features(1, 120000, "any"))
write("bedtools.t.other", features(2, 6000, "any"))
write("bedtools.e", features(3, 200000, "sorted"))
write("bedtools.e.other", features(4, 16000, "sorted"))
write("cflow.t", source(7, 700, "c"))
write("cflow.e", calls(8, 5000, 2))
write("coreutils.t", log(11, 150000))
write("coreutils.e", "\n".join(re.findall(r"\S+", HEADERS)))
write("cscope.t.c", source(9, 1100, "c"))
write("cscope.t", "0f7\n1f20\n3f0\n0data\n2f9\n9list\n")
write("cscope.e.h", HEADERS * 3)
write("cscope.e", "6get[A-Z][a-z]+(Inst|Type)\n4isa<\n6^ *virtual .*const.*;$\n1Instruction\n")
write("diffutils.t.old", HEADERS[:5_000_000])
write("diffutils.t", edited(3, HEADERS[:5_000_000].encode(), 900))
write("diffutils.e.old", log(12, 12000))
write("diffutils.e", edited(4, log(12, 12000).encode(), 1500))
for number in range(120):
    text = HEADERS[number * 3001 : number * 3001 + 9000]
    write(f"file.t/{number}", [text, source(number, 2, "c"), log(number, 90)][number % 3])
for number in range(500):
    part = LIBRARY[number * 27001 : number * 27001 + 9000]
    write(f"file.e/{number}", [part, zlib.compress(part), web(number, 60), pdf(number, 3, "text")][number % 4])
PAGE = page(4, 5100, 6600)
write("jbigkit.t", PAGE)
write("jbigkit.e", b"P5\n700 3000\n255\n" + bytes(2 * value for value in photo(13, 700, 500)) * 6)
write("libxslt.t", schema_and_records(3, 4000)[1])
write(
    "libxslt.t.xsl",
    """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="html"/><xsl:key name="code" match="item" use="code"/>
<xsl:template match="/"><html><body><xsl:apply-templates select="items/item"><xsl:sort select="title"/>
<xsl:sort select="price" data-type="number" order="descending"/></xsl:apply-templates></body></html></xsl:template>
<xsl:template match="item[@kind='book']"><p class="{@kind}"><b><xsl:value-of select="title"/></b>
<xsl:value-of select="count(key('code', code))"/></p></xsl:template>
<xsl:template match="item"><table><xsl:for-each select="day"><tr><td><xsl:number/></td>
<td><xsl:value-of select="concat(substring-before(., '-'), '/', format-number(../price * 2, '#,##0.00'))"/></td></tr>
</xsl:for-each></table></xsl:template></xsl:stylesheet>
""",
)
write(
    "libxslt.e",
    "<all>" + "".join(f"<n v='{i * 7919 % 1000}'>{'ab c' * (i % 7)}</n>" for i in range(1100)) + "</all>",
)
write(
    "libxslt.e.xsl",
    """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>
<xsl:template name="hanoi"><xsl:param name="n"/><xsl:param name="a"/><xsl:param name="b"/><xsl:param name="c"/>
<xsl:if test="$n &gt; 0"><xsl:call-template name="hanoi"><xsl:with-param name="n" select="$n - 1"/>
<xsl:with-param name="a" select="$a"/><xsl:with-param name="b" select="$c"/><xsl:with-param name="c" select="$b"/>
</xsl:call-template><xsl:value-of select="concat($a, $c, ' ')"/><xsl:call-template name="hanoi">
<xsl:with-param name="n" select="$n - 1"/><xsl:with-param name="a" select="$b"/><xsl:with-param name="b" select="$a"/>
<xsl:with-param name="c" select="$c"/></xsl:call-template></xsl:if></xsl:template>
<xsl:template name="letters"><xsl:param name="s"/><xsl:choose><xsl:when test="contains($s, 'b')">
<xsl:call-template name="letters"><xsl:with-param name="s" select="substring-after($s, 'b')"/></xsl:call-template>
</xsl:when><xsl:otherwise><xsl:value-of select="translate(normalize-space($s), 'abc', 'xyz')"/></xsl:otherwise>
</xsl:choose></xsl:template>
<xsl:template match="/all"><xsl:call-template name="hanoi"><xsl:with-param name="n" select="13"/>
<xsl:with-param name="a">x</xsl:with-param><xsl:with-param name="b">y</xsl:with-param>
<xsl:with-param name="c">z</xsl:with-param></xsl:call-template><xsl:for-each select="n">
<xsl:variable name="v" select="@v"/><xsl:value-of select="count(preceding-sibling::n[@v mod 7 = $v mod 7])"/>
<xsl:call-template name="letters"><xsl:with-param name="s" select="."/></xsl:call-template></xsl:for-each>
</xsl:template></xsl:stylesheet>
""",
)
write("lp-solve.t", lines_of_lp(linear(3, 150, 200, "transport")))
write("lp-solve.e", lines_of_lp(linear(4, 30, 75, "knapsack")))
write("mdocml.t", typeset(3, 5000, "man"))
write("mdocml.e", mdoc(1, 6000))
write(
    "mruby.t",
    """class Node
  attr_accessor :left, :right, :key
  def initialize(key) = @key = key
  def insert(key)
    if key < @key
      @left ? @left.insert(key) : @left = Node.new(key)
    else
      @right ? @right.insert(key) : @right = Node.new(key)
    end
  end
  def each(&block)
    @left.each(&block) if @left
    block.call(@key)
    @right.each(&block) if @right
  end
end
seed = 1
root = Node.new(500)
40000.times { root.insert(seed = (seed * 4093 + 12345) % 65536) }
sum = 0
root.each { |key| sum = (sum * 3 + key) % 99991 }
counts = Hash.new(0)
root.each { |key| counts[key % 300] += 1 }
p sum, counts.sort_by { |k, v| [-v, k] }.first(9)
""",
)
write(
    "mruby.e",
    """words = %w[alpha beta gamma delta epsilon zeta eta theta]
text = (0...6000).map { |i| words[i * i % 8] + (i % 13).to_s }.join(" ")
table = {}
text.split(" ").each_with_index { |word, i| (table[word] ||= []) << i }
puts table.map { |word, at| "#{word.upcase}:#{at.size}:#{at.last.to_s(16)}" }.join(",")[0, 300]
def mandel(x, y)
  a = b = 0.0
  n = 0
  while n < 60 && a * a + b * b < 4
    a, b = a * a - b * b + x, 2 * a * b + y
    n += 1
  end
  n
end
24.times { |j| puts (0...60).map { |i| " .:-=+*#%@"[mandel(i / 20.0 - 2.2, j / 10.0 - 1.2) % 10] }.join }
matrix = (0...40).map { |i| (0...40).map { |j| (i * j) % 7 - 3 } }
3.times { matrix = matrix.map { |row| matrix.transpose.map { |c| row.zip(c).map { |a, b| a * b }.inject(:+) % 97 } } }
p matrix[5].first(12), text.index("eta12 alpha0"), text.tr("aeiou", "12345").reverse[0, 60]
""",
)
write(
    "newlisp.t",
    """(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(println (fib 29))
(define (sieve n)
  (let ((flags (array (+ n 1) '(true))) (found '()))
    (for (i 2 n)
      (when (flags i)
        (push i found -1)
        (if (<= (* i i) n) (for (j (* i i) n i) (setf (flags j) nil)))))
    found))
(println (length (sieve 60000)))
(define (queens n row placed)
  (if (= row n) 1
    (let ((total 0))
      (dotimes (column n)
        (unless (exists (fn (p) (or (= (p 1) column) (= (abs (- (p 1) column)) (- row (p 0))))) placed)
          (inc total (queens n (+ row 1) (cons (list row column) placed)))))
      total)))
(println (queens 8 0 '()))
(exit)
""",
)
write(
    "newlisp.e",
    """(setq text (join (map (fn (i) (format "%s-%d, item%x" (nth (% i 4) '("red" "green" "blue" "grey")) i (* i i)))
  (sequence 1 24000)) "; "))
(new Tree 'Words)
(dolist (word (find-all "[a-z]+" text)) (Words word (+ 1 (or (Words word) 0))))
(println (slice (sort (map (fn (e) (list (e 1) (e 0))) (Words)) >) 0 9))
(println (length (replace "item([0-9]+)" text (string "<" $1 ">") 0)))
(setq parts (map (fn (s) (map trim (parse s ","))) (parse text ";")))
(println (slice (sort parts (fn (a b) (< (last a) (last b)))) 0 5))
(setq m (array 30 30 (map (fn (i) (% (* i 37) 11)) (sequence 1 900))))
(dotimes (i 20) (setq m (mat + (multiply m (transpose m)) m)) (setq m (mat / m (apply max (flat (array-list m))))))
(println (format "%.6f" (m 3 4)))
(println (length (unique (map (fn (p) (slice (p 0) 0 5)) parts))) (crc32 text))
(println (apply + (map (fn (e) (length (string e))) (explode (upper-case text) 3))))
(exit)
""",
)
write("tiff.e", PAGE.replace(b"6600", b"26400", 1) + PAGE.split(b"\n", 2)[2] * 3)
write(
    "tinyscheme.t",
    """(define (tak x y z) (if (not (< y x)) z (tak (tak (- x 1) y z) (tak (- y 1) z x) (tak (- z 1) x y))))
(display (tak 16 8 3)) (newline)
(define (ok? row distance placed)
  (or (null? placed)
      (and (not (= (car placed) (+ row distance))) (not (= (car placed) (- row distance)))
           (not (= (car placed) row)) (ok? row (+ distance 1) (cdr placed)))))
(define (queens n left placed)
  (if (= left 0) 1
      (let loop ((row n) (total 0))
        (if (= row 0) total
            (loop (- row 1) (if (ok? row 1 placed) (+ total (queens n (- left 1) (cons row placed))) total))))))
(display (queens 7 7 '())) (newline)
""",
)
write(
    "tinyscheme.e",
    """(define (derive e)
  (cond ((number? e) 0) ((symbol? e) (if (eq? e 'x) 1 0))
        ((eq? (car e) '+) (cons '+ (map derive (cdr e))))
        ((eq? (car e) '*) `(+ (* ,(derive (cadr e)) ,(caddr e)) (* ,(cadr e) ,(derive (caddr e)))))
        (else `(* ,(caddr e) (^ ,(cadr e) ,(- (caddr e) 1)) ,(derive (cadr e))))))
(define (size e) (if (pair? e) (+ (size (car e)) (size (cdr e))) 1))
(define (times n f e) (if (= n 0) e (times (- n 1) f (f e))))
(display (size (times 5 derive '(* (+ x (^ x 5)) (* (+ 3 x) (^ (+ x y) 3)))))) (newline)
(define table '())
(define (put! key value)
  (let ((old (assq key table)))
    (if old (set-cdr! old (+ value (cdr old))) (set! table (cons (cons key value) table)))))
(do ((i 0 (+ i 1))) ((= i 1500))
  (put! (string->symbol (string-append "k" (number->string (modulo (* i 7919) 97)))) i))
(display table) (newline)
(define (numbers n) (if (= n 0) '() (cons (modulo (* n n 31) 1009) (numbers (- n 1)))))
(define (keep ok? l) (cond ((null? l) l) ((ok? (car l)) (cons (car l) (keep ok? (cdr l)))) (else (keep ok? (cdr l)))))
(define (sort l)
  (if (null? l) l
      (let ((first (car l)))
        (append (sort (keep (lambda (x) (< x first)) (cdr l))) (list first)
                (sort (keep (lambda (x) (not (< x first))) (cdr l)))))))
(display (sort (numbers 400))) (newline)
""",
)
for script in glob.glob(os.path.join(os.path.dirname(__file__), "scripts", "*")):
    name = os.path.basename(script) + (".script" if "awk" in script else "")
    write(name, open(script).read())
