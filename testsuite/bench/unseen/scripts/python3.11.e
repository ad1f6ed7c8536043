import dataclasses, decimal, fractions, functools, itertools, math, textwrap, unicodedata, ast

@dataclasses.dataclass(frozen=True)
class Vector:
    x: float
    y: float
    z: float

    def __add__(self, o):
        return Vector(self.x + o.x, self.y + o.y, self.z + o.z)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k, self.z * k)

    def length(self):
        return math.sqrt(self.x**2 + self.y**2 + self.z**2)

bodies = [[Vector(i, i * i % 7, -i), Vector(0, 0.1 * i, 0), 1 + i] for i in range(5)]
for _ in range(120):
    for a, b in itertools.permutations(bodies, 2):
        way = b[0] + a[0] * -1
        a[1] += way * (0.01 * b[2] / (way.length() ** 3 + 0.1))
    for body in bodies:
        body[0] += body[1] * 0.01
print(f"{sum(b[0].length() for b in bodies):.6f}")

@functools.lru_cache(None)
def ways(n, largest):
    return 1 if n == 0 else sum(ways(n - k, k) for k in range(1, min(n, largest) + 1))
print(ways(80, 80))
print(sum(fractions.Fraction(1, n * n) for n in range(1, 120)).numerator % 10**9)
decimal.getcontext().prec = 60
print(sum(decimal.Decimal(n).sqrt() / (n + 1) for n in range(600)))
text = " ".join(f"n\u00e4me{i % 50} {'x' * (i % 9)}\u0301" for i in range(2500))
print(len(unicodedata.normalize("NFC", text)), len(textwrap.fill(text, 60)))
source = "\n".join(f"def f{i}(a, b={i}):\n    return [a * x + b for x in range({i}) if x % 3]" for i in range(150))
space = {}
exec(compile(ast.parse(source), "x", "exec"), space)
print(sum(space[f"f{i}"](2)[-1] for i in range(5, 150)), sum(1 for _ in ast.walk(ast.parse(source))))

def queens(n, row=0, columns=0, left=0, right=0):
    if row == n:
        return 1
    free, found = ~(columns | left | right) & ((1 << n) - 1), 0
    while free:
        bit = free & -free
        free ^= bit
        found += queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return found
print(queens(8))
try:
    [].pop()
except IndexError as error:
    print(error)
print(7**4000 % (10**30 + 57), sum(map(int, str(3**9000))))
