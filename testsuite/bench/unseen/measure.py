"""Compares the builds of the unseen programs.

    measure.py repeats RECIPES PROGRAM BINARY SECONDS   how often to run BINARY for so many CPU-seconds
    measure.py all RECIPES WORK PAIRS PROGRAM…          measures, and prints the tables
"""

import glob
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# A sample takes at least so many CPU-seconds.
SAMPLE = 0.25
ORDERS = ["", ".order2"]
# Student's t for 95 % by degrees of freedom, up to 40; then that of the normal distribution.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10,
           2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04, 2.04, 2.04, 2.03, 2.03, 2.03, 2.03,
           2.03, 2.02, 2.02, 2.02]


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


def instructions(argv):
    run = subprocess.run(["valgrind", "--trace-children=yes", "--tool=cachegrind", "--cache-sim=no",
                          "--cachegrind-out-file=/dev/null"] + argv,
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    return int(re.findall(r"I +refs: +([\d,]+)", run.stderr)[-1].replace(",", ""))


def size_of_text(binary):
    sizes = subprocess.run(["llvm-size", "-A", binary], capture_output=True, text=True).stdout
    return sum(int(line.split()[1]) for line in sizes.splitlines() if line.startswith(".text"))


def of_program(recipes, work, pairs, program, variants):
    """CPU time of each variant over `O2`'s in the same order, a list an order; instructions and size over `O2`'s."""
    path = lambda variant, order: f"{work}/builds/{program}.{'O2' if variant == 'again' else variant}{order}"
    every = [(v, o) for v in ["O2", "again"] + variants for o in ORDERS]
    argv = {(v, o): command(recipes, program, path(v, o), "e") for v, o in every}
    times = int(SAMPLE / (cpu_seconds(argv["O2", ""]) + 0.001)) + 1
    ratios = {key: [] for key in every}
    for _ in range(pairs):
        random.shuffle(every)
        sample = {key: sum(cpu_seconds(argv[key]) for _ in range(times)) for key in every}
        for variant, order in every:
            ratios[variant, order].append(sample[variant, order] / sample["O2", order])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = ["O2", "annotated"] + variants
        counts = dict(zip(counted, pool.map(lambda v: instructions(command(recipes, program, path(v, ""), "e")), counted)))
    return {
        "times": {v: [ratios[v, o] for o in ORDERS] for v in ["again"] + variants},
        "instructions": {v: n / counts["O2"] for v, n in counts.items() if v != "O2"},
        "text": {v: size_of_text(path(v, "")) / size_of_text(path("O2", "")) for v in ["annotated"] + variants},
        "bytes": size_of_text(path("O2", "")),
    }


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
    orders = [statistics.median(ratios) for ratios in result["times"][variant] if ratios]
    return math.exp(statistics.fmean(map(math.log, orders))) if orders else math.nan


def tables(results):
    variants = list(next(iter(results.values()))["times"])
    uses = [v for v in variants if v.startswith("use")]
    for title, value in [
        ("CPU time × O2, mean of two orders of functions", time_of),
        ("instructions × O2", lambda r, v: r["instructions"].get(v, math.nan)),
        (".text × O2", lambda r, v: r["text"].get(v, math.nan)),
    ]:
        columns = variants if "CPU" in title else ["annotated"] + variants[1:]
        print(f"\n{title}\n{'':22}" + "".join(f"{v:>10}" for v in columns))
        for program, result in results.items():
            print(f"{program:22}" + "".join(f"{value(result, v):10.3f}" for v in columns))
        summary = {v: geometric([value(r, v) for r in results.values()]) for v in columns}
        print(f"{'geometric mean':22}" + "".join(f"{summary[v][0]:10.4f}" for v in columns))
        print(f"{'95 % interval, from':22}" + "".join(f"{summary[v][1]:10.4f}" for v in columns))
        print(f"{'to':22}" + "".join(f"{summary[v][2]:10.4f}" for v in columns))
        print(f"{'worst':22}" + "".join(f"{max(value(r, v) for r in results.values()):10.3f}" for v in columns))
        pooled = geometric([math.exp(statistics.fmean(math.log(value(r, v)) for v in uses)) for r in results.values()])
        print("all recordings of a program as one: {:.4f} [{:.4f}, {:.4f}]".format(*pooled))


def main():
    verb, recipes = sys.argv[1:3]
    if verb == "repeats":
        program, binary, seconds = sys.argv[3:6]
        once = cpu_seconds(command(recipes, program, binary, "t"))
        print(max(1, math.ceil(float(seconds) / (once + 0.001))))
        return
    work, pairs, programs = sys.argv[3], int(sys.argv[4]), sys.argv[5:]
    results = {}
    for program in programs:
        stored = f"{work}/{program}.json"
        if os.path.exists(stored):
            results[program] = json.load(open(stored))
            continue
        recordings = len(glob.glob(f"{work}/builds/{glob.escape(program)}.use[0-9]"))
        variants = [f"use{i + 1}" for i in range(recordings)] + ["ir-pgo", "csspgo", "autofdo"]
        results[program] = of_program(recipes, work, pairs, program, variants)
        with open(stored, "w") as out:
            json.dump(results[program], out)
        print(program, {v: round(time_of(results[program], v), 3) for v in results[program]["times"]}, file=sys.stderr)
    if results:
        tables(results)


main()
