import collections, heapq, json, re, struct

class Node:
    def __init__(self, key, left=None, right=None):
        self.key, self.left, self.right = key, left, right

    def insert(self, key):
        side = "left" if key < self.key else "right"
        child = getattr(self, side)
        if child is None:
            setattr(self, side, Node(key))
        else:
            child.insert(key)

    def __iter__(self):
        if self.left:
            yield from self.left
        yield self.key
        if self.right:
            yield from self.right

seed = 7
def draw(n):
    global seed
    seed = seed * 16807 % 2147483647
    return seed % n

tree = Node(500)
for _ in range(4000):
    tree.insert(draw(1000))
print(sum(i * key for i, key in enumerate(tree)))
lines = [f"host{draw(20)} request {draw(100)} took {draw(900)} ms" for _ in range(12000)]
times = collections.defaultdict(list)
for line in lines:
    found = re.match(r"host(\d+) request (\d+) took (\d+)", line)
    times[found[1]].append(int(found[3]))
print(sorted((sum(t) // len(t), h) for h, t in times.items())[:3])
heap = []
for i in range(20000):
    heapq.heappush(heap, (draw(1000), i))
print(sum(heapq.heappop(heap)[0] * (i % 7) for i in range(20000)))
records = [{"id": i, "name": f"n{draw(90)}", "tags": [draw(9), draw(9)]} for i in range(6000)]
again = json.loads(json.dumps(records))
print(collections.Counter(r["name"] for r in again).most_common(3))
packed = b"".join(struct.pack("<IHd", r["id"], r["tags"][0], r["id"] / 3) for r in again)
print(sum(a + b for a, b, _ in struct.iter_unpack("<IHd", packed)))
grid = [[draw(10) for _ in range(90)] for _ in range(90)]
best = {(0, 0): 0}
for y in range(90):
    for x in range(90):
        if x or y:
            best[x, y] = grid[y][x] + min(best.get((x - 1, y), 9999), best.get((x, y - 1), 9999))
print(best[89, 89])
