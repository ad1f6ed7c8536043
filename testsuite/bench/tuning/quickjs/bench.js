// Small programs in ECMAScript 2020. args: a seed, then names with a number of rounds each, separated by commas.
// The script's value is a line with the sum of each.
"use strict";
let state = (Number(args[0]) * 2654435761 >>> 0) || 1;
const random = bound => {
    state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
    return (state >>> 0) % bound;
};
const mix = (sum, value) => (sum * 31 + value) % 1000003;
const mixText = (sum, text) => { for (const c of text) sum = mix(sum, c.codePointAt(0)); return sum; };
const syllables = ["ka", "lo", "mer", "ti", "an", "dro", "sul", "pe", "vi", "o"];
const word = () => { let text = ""; for (let n = 1 + random(3); n; n--) text += syllables[random(10)]; return text; };

const programs = {
    // A processor of sixteen registers that runs random programs.
    machine() {
        const code = new Uint32Array(64), registers = new Int32Array(16), memory = new Int32Array(256);
        for (let i = 0; i < 64; i++) code[i] = random(0x7fffffff);
        for (let i = 0; i < 16; i++) registers[i] = random(1000);
        let at = 0;
        for (let steps = 0; steps < 6000; steps++) {
            const op = code[at], a = op >> 4 & 15, b = op >> 8 & 15, c = op >> 12 & 15, immediate = op >> 16 & 255;
            at = at + 1 & 63;
            switch (op & 15) {
            case 0: registers[a] = registers[b] + registers[c]; break;
            case 1: registers[a] = registers[b] - registers[c]; break;
            case 2: registers[a] = Math.imul(registers[b], registers[c]); break;
            case 3: registers[a] = registers[b] ^ immediate; break;
            case 4: registers[a] = memory[registers[b] + immediate & 255]; break;
            case 5: memory[registers[b] + immediate & 255] = registers[a]; break;
            case 6: if (registers[a] < registers[b]) at = immediate & 63; break;
            case 7: if (registers[a] & 1) at = at + c & 63; break;
            case 8: registers[a] = registers[b] >> (c & 7); break;
            case 9: registers[a] = registers[b] << 1 | registers[c] >>> 31; break;
            case 10: registers[a] += immediate - 100; break;
            case 11: registers[a] = registers[b] % (immediate + 1); break;
            case 12: registers[a] = Math.max(registers[b], registers[c]); break;
            case 13: registers[a] = immediate; break;
            case 14: registers[a] = registers[b] & registers[c]; break;
            default: registers[a] = ~registers[b];
            }
        }
        return registers.reduce((sum, value) => mix(sum, value >>> 16), 0);
    },
    // Shortest paths with maps, sets and a heap.
    graph() {
        const edges = new Map();
        for (let n = 0; n < 80; n++) edges.set(`n${n}`, []);
        for (let n = 0; n < 320; n++) edges.get(`n${random(80)}`).push({ to: `n${random(80)}`, cost: 1 + random(50) });
        const distance = new Map([["n0", 0]]), done = new Set(), heap = [{ at: "n0", cost: 0 }];
        const less = (i, j) => heap[i].cost < heap[j].cost, swap = (i, j) => { [heap[i], heap[j]] = [heap[j], heap[i]]; };
        while (heap.length) {
            const { at, cost } = heap[0], last = heap.pop();
            if (heap.length) {
                heap[0] = last;
                for (let i = 0, j; (j = 2 * i + 1) < heap.length; i = j) {
                    if (j + 1 < heap.length && less(j + 1, j)) j++;
                    if (!less(j, i)) break;
                    swap(i, j);
                }
            }
            if (done.has(at)) continue;
            done.add(at);
            for (const edge of edges.get(at)) {
                const total = cost + edge.cost;
                if (total < (distance.get(edge.to) ?? Infinity)) {
                    distance.set(edge.to, total);
                    let i = heap.push({ at: edge.to, cost: total }) - 1;
                    for (; i && less(i, i - 1 >> 1); i = i - 1 >> 1) swap(i, i - 1 >> 1);
                }
            }
        }
        return [...distance].reduce((sum, [name, cost]) => mix(sum, cost + name.length), done.size);
    },
    generators() {
        function* numbers(n) { for (let i = 0; i < n; i++) yield random(1000); }
        function* filter(source, test) { for (const x of source) if (test(x)) yield x; }
        function* pairs(source) { let before = null; for (const x of source) { if (before !== null) yield [before, x]; before = x; } }
        function* permutations(items, n = items.length) {
            if (n <= 1) yield items.slice();
            else for (let i = 0; i < n; i++) {
                yield* permutations(items, n - 1);
                const j = n % 2 ? 0 : i;
                [items[n - 1], items[j]] = [items[j], items[n - 1]];
            }
        }
        let sum = 0;
        for (const [a, b] of pairs(filter(numbers(400), x => x % 3))) sum = mix(sum, a ^ b);
        for (const items of permutations([1, 2, 3, 4, 5])) sum = mix(sum, items[0] * 8 + items[4]);
        return sum;
    },
    // Markdown to HTML with regular expressions.
    markdown() {
        const lines = [];
        for (let n = 0; n < 40; n++) {
            const words = Array.from({ length: 4 + random(9) }, () => {
                const w = word();
                return [w, w, w, w, `*${w}*`, `**${w}**`, "`" + w + "`", `[${w}](http://${word()}.org/)`, "a < b & c"][random(9)];
            }).join(" ");
            lines.push([words, words, `# ${words}`, `- ${words}`, "", `> ${words}`][random(6)]);
        }
        const escape = { "<": "&lt;", ">": "&gt;", "&": "&amp;" };
        const html = lines.map(line => {
            const text = line.replace(/[<&]/g, c => escape[c]).replace(/\*\*(.+?)\*\*/g, "<b>$1</b>").replace(/\*([^*]+)\*/g, "<i>$1</i>")
                .replace(/`([^`]*)`/g, "<code>$1</code>").replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, '<a href="$2">$1</a>');
            const head = /^(#+|-|>)\s+(.*)$/.exec(text);
            return !head ? text && `<p>${text}</p>` : head[1][0] === "#" ? `<h${head[1].length}>${head[2]}</h${head[1].length}>` : head[1] === "-" ? `<li>${head[2]}</li>` : `<q>${head[2]}</q>`;
        }).join("\n");
        return mixText(html.length, html.slice(-200));
    },
    bigints() {
        let a = 1n, b = BigInt(random(1000) + 1), modulus = (1n << 127n) - 1n, sum = 0;
        for (let n = 0; n < 60; n++) [a, b] = [b, a + b * 3n];
        let power = 1n, base = b % modulus;
        for (let e = modulus - 2n; e; e >>= 1n) { if (e & 1n) power = power * base % modulus; base = base * base % modulus; }
        for (const digit of power.toString()) sum = mix(sum, Number(digit));
        return sum;
    },
    // Edit distances.
    distance() {
        const words = Array.from({ length: 14 }, () => word() + word());
        let sum = 0;
        for (const a of words) for (const b of words) {
            if (a <= b) continue;
            let row = Array.from({ length: b.length + 1 }, (_, i) => i);
            for (let i = 1; i <= a.length; i++) {
                const next = [i];
                for (let j = 1; j <= b.length; j++)
                    next[j] = Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
                row = next;
            }
            sum = mix(sum, row[b.length]);
        }
        return sum;
    },
    // Rays among spheres, with classes.
    rays() {
        class Vector {
            constructor(x, y, z) { this.x = x; this.y = y; this.z = z; }
            plus(v) { return new Vector(this.x + v.x, this.y + v.y, this.z + v.z); }
            minus(v) { return new Vector(this.x - v.x, this.y - v.y, this.z - v.z); }
            times(k) { return new Vector(this.x * k, this.y * k, this.z * k); }
            dot(v) { return this.x * v.x + this.y * v.y + this.z * v.z; }
            get unit() { return this.times(1 / Math.sqrt(this.dot(this))); }
        }
        class Shape { constructor(shine) { this.shine = shine; } hit() { return Infinity; } }
        class Sphere extends Shape {
            constructor(center, radius, shine) { super(shine); this.center = center; this.radius = radius; }
            hit(from, way) {
                const to = this.center.minus(from), along = to.dot(way), d = this.radius * this.radius - to.dot(to) + along * along;
                return d < 0 || along - Math.sqrt(d) < 1e-6 ? Infinity : along - Math.sqrt(d);
            }
            normal(at) { return at.minus(this.center).unit; }
        }
        class Floor extends Shape {
            hit(from, way) { const t = -from.y / way.y; return t > 1e-6 ? t : Infinity; }
            normal() { return new Vector(0, 1, 0); }
        }
        const shapes = [new Floor(0.2)], light = new Vector(5, 9, -4).unit;
        for (let n = 0; n < 5; n++) shapes.push(new Sphere(new Vector(random(8) - 4, 1 + random(3), 4 + random(6)), 0.5 + random(10) / 8, random(10) / 12));
        const trace = (from, way, depth) => {
            let near = Infinity, found = null;
            for (const shape of shapes) { const t = shape.hit(from, way); if (t < near) { near = t; found = shape; } }
            if (!found) return Math.max(0, way.y) * 0.5;
            const at = from.plus(way.times(near)), normal = found.normal(at);
            const shadow = shapes.some(shape => shape.hit(at, light) < Infinity), own = shadow ? 0.1 : Math.max(0.1, normal.dot(light));
            return depth ? own * (1 - found.shine) + found.shine * trace(at, way.minus(normal.times(2 * way.dot(normal))), depth - 1) : own;
        };
        let sum = 0;
        for (let y = 0; y < 14; y++) for (let x = 0; x < 18; x++)
            sum = mix(sum, Math.floor(trace(new Vector(0, 2, -6), new Vector((x - 9) / 9, (7 - y) / 9, 1).unit, 2) * 255));
        return sum;
    },
    // Records rendered by tagged templates, sorted and grouped.
    templates() {
        const people = Array.from({ length: 60 }, (_, id) => ({ id, name: word(), age: random(90), tags: [word(), word()], ...(random(2) && { mail: word() + "@" + word() }) }));
        const safe = (parts, ...values) => parts.reduce((text, part, i) => text + part + (i < values.length ? String(values[i]).padStart(4, ".") : ""), "");
        const groups = {};
        for (const { name, age, mail = "none", tags: [first, ...rest], ...others } of people) (groups[Math.floor(age / 10)] ??= []).push(safe`${name}<${mail}> ${age} ${first}|${rest.join()} ${Object.keys(others).length}`);
        let sum = 0;
        for (const [decade, rows] of Object.entries(groups).sort(([a], [b]) => b - a)) {
            rows.sort((a, b) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0));
            sum = mixText(mix(sum, +decade), rows[0] + rows.at?.(-1));
        }
        return sum;
    },
    sieve() {
        const size = 3000 + random(1000), composite = new Uint8Array(size), factors = [];
        for (let p = 2; p * p < size; p++) if (!composite[p]) for (let m = p * p; m < size; m += p) composite[m] = 1;
        let number = 600851475143 + random(1000);
        for (let p = 2; p < size && number > 1; p++) if (!composite[p]) while (number % p === 0) { factors.push(p); number /= p; }
        return factors.reduce(mix, composite.reduce((sum, c) => sum + c, 0));
    },
    // A linked list, a proxy with traps, exceptions and symbols.
    queue() {
        class Queue {
            #head = null; #tail = null; size = 0;
            push(value) { const cell = { value, next: null }; this.#tail ? this.#tail.next = cell : this.#head = cell; this.#tail = cell; this.size++; }
            pop() {
                const cell = this.#head;
                if (!cell) throw new RangeError("empty");
                this.#head = cell.next;
                if (!this.#head) this.#tail = null;
                this.size--;
                return cell.value;
            }
            *[Symbol.iterator]() { for (let cell = this.#head; cell; cell = cell.next) yield cell.value; }
        }
        const queue = new Queue(), seen = {};
        const counted = new Proxy(seen, { get: (target, key) => key in target ? target[key] : 0, set: (target, key, value) => { target[key] = value % 997; return true; } });
        let failures = 0;
        for (let n = 0; n < 500; n++) {
            try {
                if (random(2)) queue.push(word());
                else counted[queue.pop()] += n;
            } catch (error) {
                if (!(error instanceof RangeError)) throw error;
                failures++;
            }
        }
        return Object.values(seen).reduce(mix, mix(failures, [...queue].length));
    },
    // LZ77 with hash chains on bytes, and back.
    compress() {
        const text = new Uint8Array(1200), out = [], heads = new Map();
        let n = 0;
        while (n < text.length) for (const c of word()) if (n < text.length) text[n++] = c.charCodeAt(0);
        for (let at = 0; at < text.length;) {
            const key = text[at] | text[at + 1] << 8 | text[at + 2] << 16, chain = heads.get(key) || [];
            let best = 2, from = -1;
            for (let k = chain.length - 1, tries = 8; k >= 0 && tries; k--, tries--) {
                let length = 0;
                while (length < 60 && at + length < text.length && text[chain[k] + length] === text[at + length]) length++;
                if (length > best) { best = length; from = chain[k]; }
            }
            chain.push(at);
            heads.set(key, chain);
            if (from < 0) out.push(text[at++]);
            else { out.push(256 + best, at - from); at += best; }
        }
        const back = [];
        for (let i = 0; i < out.length; i++)
            if (out[i] < 256) back.push(out[i]);
            else for (let length = out[i] - 256, gap = out[++i]; length; length--) back.push(back[back.length - gap]);
        if (back.some((byte, i) => byte !== text[i])) throw new Error("different");
        return out.reduce(mix, out.length);
    },
};

args[1].split(",").map(item => {
    const name = item.replace(/\d+$/, ""), rounds = Number(item.slice(name.length));
    let sum = 0;
    for (let round = 0; round < rounds; round++) sum = mix(sum, programs[name]());
    return `${item}=${sum}`;
}).join(" ");
