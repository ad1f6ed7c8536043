"""Compares the builds of the unseen programs.

measure.py repeats RECIPES PROGRAM BINARY SECONDS   how often to run BINARY for so many CPU-seconds
measure.py all RECIPES WORK PAIRS PROGRAM…          measures, and prints the tables; with FOOTPRINT=1 in the environment
                                                    also instruction caches and pages
"""

import collections
import hashlib
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# A sample takes at least so many CPU-seconds.
SAMPLE = 0.25
ORDERS = ["", ".order2"]
# Variants whose instructions are counted.
COUNTED = ["use1", "exact", "no-superblocks", "ir-pgo", "bolt", "csspgo"]
VARIANTS = [f"use{i}" for i in range(1, 10)] + [
    "exact",
    "tenth",
    "hundredth",
    "no-superblocks",
    "no-if-conversion",
    "no-select-to-branch",
    "ir-pgo",
    "bolt",
    "csspgo",
    "autofdo",
]
# Student's t for 95 % by degrees of freedom, up to 40; then that of the normal distribution.
STUDENT = [
    12.71,
    4.30,
    3.18,
    2.78,
    2.57,
    2.45,
    2.36,
    2.31,
    2.26,
    2.23,
    2.20,
    2.18,
    2.16,
    2.14,
    2.13,
    2.12,
    2.11,
    2.10,
    2.09,
    2.09,
    2.08,
    2.07,
    2.07,
    2.06,
    2.06,
    2.06,
    2.05,
    2.05,
    2.05,
    2.04,
    2.04,
    2.04,
    2.03,
    2.03,
    2.03,
    2.03,
    2.03,
    2.02,
    2.02,
    2.02,
]


def command(recipes, program, binary, data):
    return ["bash", "-c", '. "$0"; start "$@"', recipes, program, binary, data]


def cpu_seconds(argv):
    pid = os.fork()
    if pid == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        os.execvp(argv[0], argv)
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime


# Without the last option it counts instructions that were not executed. callgrind sets it by itself.
CACHEGRIND = ["valgrind", "--trace-children=yes", "--tool=cachegrind", "--vex-guest-chase=no"]


def instructions(argv):
    run = subprocess.run(
        CACHEGRIND + ["--cache-sim=no", "--cachegrind-out-file=/dev/null"] + argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    return int(re.findall(r"I +refs: +([\d,]+)", run.stderr)[-1].replace(",", ""))


def footprint(argv):
    """Misses of the first and last level of instruction caches in callgrind's model, and the number of pages of 4 KiB
    that 99 % of the program's own instructions are executed from."""
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            ["valgrind", "--trace-children=yes", "--tool=callgrind", "--cache-sim=yes", "--I1=32768,8,64"]
            + ["--dump-instr=yes", "--compress-pos=no", "--compress-strings=no", f"--callgrind-out-file={out}/%p"]
            + argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        runs = [misses_and_pages(os.path.join(out, name)) for name in os.listdir(out)]
        return max(runs, key=lambda run: run["instructions"]) | {"iTLB": page_misses(argv)}


def page_misses(argv):
    """Misses of a fully associative buffer of 64 translations of pages of 4 KiB, a thousand instructions: cachegrind's
    model of a cache with lines of that size."""
    run = subprocess.run(
        CACHEGRIND + ["--cache-sim=yes", "--I1=262144,64,4096", "--cachegrind-out-file=/dev/null"] + argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    last = lambda event: int(re.findall(rf"{event}: +([\d,]+)", run.stderr)[-1].replace(",", ""))
    return 1e3 * last("I1 +misses") / last("I +refs")


def misses_and_pages(profile):
    events, pages, is_own, is_call, total = [], collections.Counter(), False, False, []
    with open(profile, errors="replace") as lines:
        for line in lines:
            if line.startswith("0x"):
                if is_own and not is_call:
                    address, _, count, *_ = line.split()
                    pages[int(address, 16) >> 12] += int(count)
                is_call = False
            elif line.startswith("calls="):
                is_call = True
            elif line.startswith("ob="):
                # Valgrind does not know the object of the segments that BOLT adds.
                is_own = "/builds/" in line or "???" in line
            elif line.startswith("events:"):
                events = line.split()[1:]
            elif line.startswith("totals:"):
                total = list(map(int, line.split()[1:]))
    total = dict(zip(events, total))
    enough, hot = 0.99 * sum(pages.values()), 0
    for count in sorted(pages.values(), reverse=True):
        if enough <= 0:
            break
        enough, hot = enough - count, hot + 1
    return {
        "instructions": total.get("Ir", 0),
        "I1": total.get("I1mr", 0),
        "LL": total.get("ILmr", 0),
        "pages": hot,
    }


def size_of_text(binary):
    sizes = subprocess.run(["llvm-size", "-A", binary], capture_output=True, text=True).stdout
    return sum(int(line.split()[1]) for line in sizes.splitlines() if line.startswith(".text"))


def code(binary):
    """What tells programs of different machine code apart."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["llvm-objcopy", "-O", "binary", "--only-section=.text*", binary, out.name], check=True)
        return hashlib.sha256(open(out.name, "rb").read()).digest()


class Program:
    """The builds of a program."""

    def __init__(self, recipes, work, name):
        self.recipes, self.prefix, self.name = recipes, f"{work}/builds/{name}.", name
        self.variants = [v for v in VARIANTS if os.path.exists(self.path(v, ORDERS[1]))]
        # Variants of the same code are measured once; `again` shows what that leaves to chance.
        first = {}
        self.same = {v: first.setdefault(code(self.path(v, "")), v) for v in self.variants}

    def path(self, variant, order):
        return self.prefix + ("O2" if variant == "again" else variant) + order

    def argv(self, variant, order):
        return command(self.recipes, self.name, self.path(variant, order), "e")

    def outputs(self):
        """Whether every build prints what `O2` prints; None where that differs from run to run."""
        printed = lambda v, o="": subprocess.run(self.argv(v, o), stdin=subprocess.DEVNULL, capture_output=True).stdout
        expected = printed("O2")
        if printed("O2") != expected:
            print(f"{self.name}: what it prints differs from run to run", file=sys.stderr)
            return None
        wrong = [v + o for v in self.variants for o in ORDERS if printed(v, o) != expected]
        if wrong:
            sys.exit(f"{self.name}: another output than -O2's: {' '.join(wrong)}")
        return True

    def times(self, pairs):
        """CPU time of each variant over `O2`'s in the same order of functions, a list an order."""
        timed = ["O2", "again"] + [v for v in self.variants if self.same[v] == v]
        every = [(v, o) for v in timed for o in ORDERS]
        times = int(SAMPLE / (cpu_seconds(self.argv("O2", "")) + 0.001)) + 1
        ratios = {key: [] for key in every}
        for _ in range(pairs):
            random.shuffle(every)
            sample = {key: sum(cpu_seconds(self.argv(*key)) for _ in range(times)) for key in every}
            for variant, order in every:
                ratios[variant, order].append(sample[variant, order] / sample["O2", order])
        return {v: [ratios[self.same.get(v, v), o] for o in ORDERS] for v in ["again"] + self.variants}

    def instructions(self):
        """Instructions over `O2`'s."""
        counted = ["O2", "annotated"] + sorted({self.same[v] for v in self.variants if v in COUNTED})
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            counts = dict(zip(counted, pool.map(lambda v: instructions(self.argv(v, "")), counted)))
        of = {"annotated": counts["annotated"]} | {v: counts[f] for v, f in self.same.items() if f in counts}
        return {v: n / counts["O2"] for v, n in of.items()}

    def footprints(self):
        """What the variants take of instruction caches and pages."""
        counted = ["O2"] + sorted({self.same[v] for v in self.variants if v in COUNTED})
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = dict(zip(counted, pool.map(lambda v: footprint(self.argv(v, "")), counted)))
        return {"O2": found["O2"]} | {v: found[f] for v, f in self.same.items() if f in found}

    def sizes(self):
        """Size of the code over `O2`'s."""
        base = size_of_text(self.path("O2", ""))
        return {v: size_of_text(self.path(v, "")) / base for v in ["annotated"] + self.variants}


def geometric(values):
    """Geometric mean with its 95 % interval over programs."""
    logs = [math.log(v) for v in values]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), math.nan, math.nan
    student = STUDENT[len(logs) - 2] if len(logs) - 2 < len(STUDENT) else 1.96
    half = student * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def time_of(result, variant):
    """The mean over orders of the median ratio of times."""
    orders = [statistics.median(ratios) for ratios in result["times"].get(variant, []) if ratios]
    return math.exp(statistics.fmean(map(math.log, orders))) if orders else math.nan


def recordings(of, result):
    """The geometric mean over a program's recordings."""
    uses = [x for v in result["text"] if v.startswith("use") and not math.isnan(x := of(result, v))]
    return math.exp(statistics.fmean(map(math.log, uses))) if uses else math.nan


def tables(results):
    present = {v for r in results.values() for v in r["text"]}
    variants = [v for v in VARIANTS if v in present]
    for title, of, extra in [
        ("CPU time × O2, mean of two orders of functions", time_of, ["again"]),
        ("instructions × O2", lambda r, v: r["instructions"].get(v, math.nan), ["annotated"]),
        (".text × O2", lambda r, v: r["text"].get(v, math.nan), ["annotated"]),
    ]:
        columns = {v: [of(r, v) for r in results.values()] for v in extra + variants}
        columns["use, all"] = [recordings(of, r) for r in results.values()]
        print(f"\n{title}\n{'':22}" + "".join(f"{v[-14:]:>15}" for v in columns))
        for row, program in enumerate(results):
            print(f"{program:22}" + "".join(f"{c[row]:15.3f}" for c in columns.values()))
        known = {v: [x for x in c if not math.isnan(x)] or [math.nan] for v, c in columns.items()}
        for row, name in enumerate(["geometric mean", "95 % interval, from", "to"]):
            print(f"{name:22}" + "".join(f"{geometric(c)[row]:15.4f}" for c in known.values()))
        print(f"{'worst':22}" + "".join(f"{max(c):15.3f}" for c in known.values()))
        print(f"\nuse, all ÷ the column: geometric mean [95 % interval over programs], {title.split(' ×')[0]}")
        for v in variants:
            ratios = [a / b for a, b in zip(columns["use, all"], columns[v]) if not math.isnan(a / b)]
            if ratios and not v.startswith("use"):
                print(f"{v:22}" + "{:.4f} [{:.4f}, {:.4f}]".format(*geometric(ratios)) + f" of {len(ratios)}")
    with_footprints = {p: r["footprints"] for p, r in results.items() if "footprints" in r}
    for title, key in [
        ("I1 misses (32 KiB) a thousand instructions", "I1"),
        ("last-level misses of instructions a million instructions", "LL"),
        ("misses of 64 translations of pages, a thousand instructions", "iTLB"),
        ("pages of 4 KiB with 99 % of the executed instructions", "pages"),
    ]:
        if with_footprints:
            columns = ["O2"] + [v for v in variants if v in COUNTED]
            print(f"\n{title}\n{'':22}" + "".join(f"{v[-14:]:>15}" for v in columns))
        unit = {"I1": 1e3, "LL": 1e6}.get(key)
        for program, found in with_footprints.items():
            values = [found[v][key] * (unit / found[v]["instructions"] if unit else 1) for v in columns]
            print(f"{program:22}" + "".join(f"{v:15.3f}" for v in values))


def main():
    verb, recipes = sys.argv[1:3]
    if verb == "repeats":
        program, binary, seconds = sys.argv[3:6]
        once = cpu_seconds(command(recipes, program, binary, "t"))
        print(max(1, math.ceil(float(seconds) / (once + 0.001))))
        return
    work, pairs, programs = sys.argv[3], int(sys.argv[4]), sys.argv[5:]
    results = {}
    for key, of in [
        ("outputs", Program.outputs),
        ("text", Program.sizes),
        ("times", lambda program: program.times(pairs)),
        ("instructions", Program.instructions),
    ] + ([("footprints", Program.footprints)] if os.environ.get("FOOTPRINT") else []):
        for name in programs:
            stored = f"{work}/{name}.json"
            if name not in results:
                results[name] = json.load(open(stored)) if os.path.exists(stored) else {}
            if key not in results[name]:
                results[name][key] = of(Program(recipes, work, name))
                with open(stored, "w") as out:
                    json.dump(results[name], out)
                print(name, key, file=sys.stderr)
    if results:
        tables(results)


main()
