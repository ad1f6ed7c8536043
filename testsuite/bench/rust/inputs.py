"""Writes the inputs of the programs in Rust: inputs.py FOLDER."""

import json
import os
import random
import sys

folder = sys.argv[1]


def write(name, text):
    with open(os.path.join(folder, name), "w") as out:
        out.write(text)


def words(r, count):
    return " ".join("".join(r.choice("aeiounrstlwhdmk") for _ in range(r.randrange(2, 9))) for _ in range(count))


def records(seed, count):
    r = random.Random(seed)
    record = lambda i: {"id": i, "name": f"n{r.randrange(900)}", "v": r.random(), "tags": words(r, 4).split()}
    return json.dumps([record(i) for i in range(count)])


def nested(seed, depth):
    r = random.Random(seed)

    def value(depth):
        if depth == 0:
            return r.choice([r.randrange(10**6), words(r, 2), None, True, r.random()])
        return {words(r, 1): value(depth - 1) for _ in range(4)} if r.random() < 0.5 else [value(depth - 1)] * 3

    return json.dumps([value(depth) for _ in range(40)])


def prose(seed, paragraphs):
    r = random.Random(seed)
    out = []
    for i in range(paragraphs):
        out.append(f"{'#' * r.randrange(1, 4)} {words(r, 4)}\n" if i % 9 == 0 else "")
        out.append(f"{words(r, 30)} *{words(r, 2)}* `{words(r, 1)}` [{words(r, 2)}](http://{words(r, 1)}.org) {words(r, 20)}\n")
    return "\n".join(out)


def lists(seed, blocks):
    r = random.Random(seed)
    out = []
    for _ in range(blocks):
        out += [f"{'  ' * r.randrange(3)}- [{r.choice(' x')}] {words(r, 6)} ~~{words(r, 1)}~~" for _ in range(6)]
        out += ["", "| a | b |", "|---|:-:|"] + [f"| {words(r, 2)} | **{words(r, 1)}** |" for _ in range(5)] + [""]
        out += [f"> {words(r, 9)}[^1]", "", "```c", f"int {words(r, 1)};", "```", ""]
    return "\n".join(out + ["[^1]: note"])


def lines(seed, count):
    r = random.Random(seed)
    return "\n".join(words(r, r.randrange(3, 15)) for _ in range(count))


def table(seed, rows, kinds):
    r = random.Random(seed)
    cell = {
        "i": lambda: str(r.randrange(500)),
        "f": lambda: f"{r.gauss(0, 9):.4f}",
        "w": lambda: words(r, 1),
        "q": lambda: f'"{words(r, 2)}, ""{words(r, 1)}"""',
    }
    head = ",".join(f"c{i}" for i in range(len(kinds)))
    return "\n".join([head] + [",".join(cell[kind]() for kind in kinds) for _ in range(rows)])


write("jaq.t", records(1, 30000))
write("jaq.e", nested(2, 6))
write("pulldown-cmark.t", prose(1, 20000))
write("pulldown-cmark.e", lists(2, 6000))
write("ripgrep.t", lines(1, 300000))
write("ripgrep.e", lines(2, 60000))
write("xsv.t", table(1, 80000, "iwqi"))
write("xsv.e", table(2, 60000, "fifwf"))
