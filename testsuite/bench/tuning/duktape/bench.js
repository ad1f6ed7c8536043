// Small programs in ECMAScript 5. args: a seed, then names with a number of rounds each, separated by commas.
// The script's value is a line with the sum of each.
var state = (+args[0] * 2654435761 >>> 0) || 1;
function random(bound) {
    state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
    return (state >>> 0) % bound;
}
function mix(sum, value) { return (sum * 31 + value) % 1000003; }
function mixText(sum, text) {
    for (var i = 0; i < text.length; i++) sum = mix(sum, text.charCodeAt(i));
    return sum;
}
function word() {
    var syllables = ["ka", "lo", "mer", "ti", "an", "dro", "sul", "pe", "vi", "o"], text = "";
    for (var n = 1 + random(3); n; n--) text += syllables[random(10)];
    return text;
}

var programs = {};

// Tokenises, parses to a tree and evaluates arithmetic.
programs.expressions = function () {
    function make(depth) {
        if (!depth || !random(5)) return random(2) ? "x" : String(random(100));
        return "(" + make(depth - 1) + " " + "+-*/"[random(4)] + " " + make(depth - 1) + ")";
    }
    function tokens(text) {
        var found = [], i = 0;
        while (i < text.length) {
            var c = text.charAt(i);
            if (c === " ") { i++; continue; }
            if (c >= "0" && c <= "9") {
                var start = i;
                while (i < text.length && text.charAt(i) >= "0" && text.charAt(i) <= "9") i++;
                found.push({ kind: "number", value: +text.substring(start, i) });
            } else if (c >= "a" && c <= "z") { found.push({ kind: "name", value: c }); i++; }
            else { found.push({ kind: c }); i++; }
        }
        found.push({ kind: "end" });
        return found;
    }
    function parse(list) {
        var at = 0;
        function atom() {
            var token = list[at++];
            if (token.kind !== "(") return token;
            var inner = sum();
            if (list[at++].kind !== ")") throw new Error("no )");
            return inner;
        }
        function product() {
            var left = atom();
            while (list[at].kind === "*" || list[at].kind === "/") left = { kind: list[at++].kind, left: left, right: atom() };
            return left;
        }
        function sum() {
            var left = product();
            while (list[at].kind === "+" || list[at].kind === "-") left = { kind: list[at++].kind, left: left, right: product() };
            return left;
        }
        return sum();
    }
    function evaluate(node, x) {
        switch (node.kind) {
        case "number": return node.value;
        case "name": return x;
        case "+": return evaluate(node.left, x) + evaluate(node.right, x);
        case "-": return evaluate(node.left, x) - evaluate(node.right, x);
        case "*": return evaluate(node.left, x) * evaluate(node.right, x) % 65537;
        default:
            var by = evaluate(node.right, x);
            return by ? Math.floor(evaluate(node.left, x) / by) : 0;
        }
    }
    var sum = 0;
    for (var n = 0; n < 10; n++) {
        var tree = parse(tokens(make(7)));
        for (var x = 0; x < 8; x++) sum = mix(sum, Math.abs(evaluate(tree, x)) % 1000);
    }
    return sum;
};

// A little Lisp with closures.
programs.lisp = function () {
    function read(text) {
        var list = text.replace(/[()]/g, " $& ").trim().split(/\s+/), at = 0;
        function form() {
            var token = list[at++];
            if (token !== "(") return /^\d/.test(token) ? +token : token;
            var items = [];
            while (list[at] !== ")") items.push(form());
            at++;
            return items;
        }
        return form();
    }
    function Scope(names, values, outer) {
        this.own = {};
        this.outer = outer;
        for (var i = 0; i < names.length; i++) this.own[names[i]] = values[i];
    }
    Scope.prototype.find = function (name) {
        for (var scope = this; scope; scope = scope.outer)
            if (Object.prototype.hasOwnProperty.call(scope.own, name)) return scope.own[name];
        throw new Error("unbound " + name);
    };
    function run(form, scope) {
        if (typeof form === "number") return form;
        if (typeof form === "string") return scope.find(form);
        switch (form[0]) {
        case "if": return run(run(form[1], scope) ? form[2] : form[3], scope);
        case "lambda": return function () { return run(form[2], new Scope(form[1], arguments, scope)); };
        case "define": return scope.own[form[1]] = run(form[2], scope);
        case "begin":
            var last;
            for (var i = 1; i < form.length; i++) last = run(form[i], scope);
            return last;
        }
        var parts = form.map(function (part) { return run(part, scope); });
        return parts[0].apply(null, parts.slice(1));
    }
    var top = new Scope([], [], null);
    top.own["+"] = function (a, b) { return a + b; };
    top.own["-"] = function (a, b) { return a - b; };
    top.own["*"] = function (a, b) { return a * b % 10007; };
    top.own["<"] = function (a, b) { return a < b; };
    return run(read("(begin (define fib (lambda (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))) " +
        "(define fold (lambda (f n a) (if (< n 1) a (fold f (- n 1) (f a n))))) " +
        "(+ (fib 11) (fold (lambda (a b) (+ (* a 3) b)) 60 " + random(50) + ")))"), top);
};

// A scheduler of tasks that send each other packets.
programs.tasks = function () {
    function Task(name, priority) { this.name = name; this.priority = priority; this.queue = []; this.handled = 0; this.waiting = 0; }
    Task.prototype.ready = function () { return this.queue.length > 0 && !this.waiting; };
    Task.prototype.step = function (system) { this.handled++; this.handle(this.queue.shift(), system); };
    Task.prototype.handle = function () {};
    function Worker(name, priority) { Task.call(this, name, priority); this.seen = 0; }
    Worker.prototype = Object.create(Task.prototype);
    Worker.prototype.handle = function (packet, system) {
        this.seen = mix(this.seen, packet.value);
        if (packet.hops-- > 0) system.send((packet.value + this.priority) % system.tasks.length, packet);
    };
    function Device(name, priority) { Task.call(this, name, priority); }
    Device.prototype = Object.create(Task.prototype);
    Device.prototype.handle = function (packet, system) {
        this.waiting = 1 + packet.value % 3;
        packet.value = (packet.value * 7 + 3) % 101;
        if (packet.hops-- > 0) system.send(packet.value % system.tasks.length, packet);
    };
    var system = {
        tasks: [], clock: 0,
        send: function (to, packet) { this.tasks[to].queue.push(packet); },
        next: function () {
            var best = null;
            for (var i = 0; i < this.tasks.length; i++) {
                var task = this.tasks[i];
                if (task.waiting) task.waiting--;
                else if (task.ready() && (!best || task.priority > best.priority)) best = task;
            }
            return best;
        }
    };
    for (var i = 0; i < 9; i++) system.tasks.push(i % 3 ? new Worker("w" + i, i) : new Device("d" + i, 20 - i));
    for (var p = 0; p < 20; p++) system.send(random(9), { value: random(100), hops: 20 + random(20) });
    for (var idle = 0; idle < 4; system.clock++) {
        var task = system.next();
        if (task) { idle = 0; task.step(system); } else idle++;
    }
    return system.tasks.reduce(function (sum, task) { return mix(mix(sum, task.handled), task.seen || 0); }, system.clock);
};

programs.json = function () {
    function make(depth) {
        if (!depth) return [null, true, random(1000), random(1000) / 8, word(), "\"\\\n" + word()][random(6)];
        var i;
        if (random(2)) {
            var list = [];
            for (i = random(6); i >= 0; i--) list.push(make(depth - 1));
            return list;
        }
        var object = {};
        for (i = random(6); i >= 0; i--) object[word()] = make(depth - 1);
        return object;
    }
    var value = make(5), text = "";
    for (var n = 0; n < 4; n++) { text = JSON.stringify(value, null, n); value = JSON.parse(text); }
    return mix(text.length, text.charCodeAt(text.length >> 1));
};

programs.life = function () {
    var width = 40, height = 30, cells = [], sum = 0;
    for (var i = 0; i < width * height; i++) cells.push(random(3) ? 0 : 1);
    for (var step = 0; step < 4; step++) {
        var next = [];
        for (var y = 0; y < height; y++) {
            var above = (y + height - 1) % height * width, row = y * width, below = (y + 1) % height * width;
            for (var x = 0; x < width; x++) {
                var left = x ? x - 1 : width - 1, right = x + 1 < width ? x + 1 : 0;
                var n = cells[above + left] + cells[above + x] + cells[above + right] + cells[row + left] + cells[row + right] +
                    cells[below + left] + cells[below + x] + cells[below + right];
                next.push(n === 3 || (n === 2 && cells[row + x]) ? 1 : 0);
            }
        }
        cells = next;
    }
    for (i = 0; i < cells.length; i++) if (cells[i]) sum = mix(sum, i);
    return sum;
};

programs.sudoku = function () {
    var grid = [], rows = [], columns = [], boxes = [], visited = 0, i;
    for (i = 0; i < 9; i++) { rows.push(0); columns.push(0); boxes.push(0); }
    for (i = 0; i < 81; i++) grid.push(0);
    function place(cell, digit) {
        var bit = 1 << digit, r = cell / 9 | 0, c = cell % 9, b = (r / 3 | 0) * 3 + (c / 3 | 0);
        if ((rows[r] | columns[c] | boxes[b]) & bit) return false;
        rows[r] |= bit; columns[c] |= bit; boxes[b] |= bit; grid[cell] = digit;
        return true;
    }
    function remove(cell) {
        var bit = ~(1 << grid[cell]), r = cell / 9 | 0, c = cell % 9, b = (r / 3 | 0) * 3 + (c / 3 | 0);
        rows[r] &= bit; columns[c] &= bit; boxes[b] &= bit; grid[cell] = 0;
    }
    function solve() {
        var best = -1, options = 10, chosen = 0;
        for (var cell = 0; cell < 81; cell++) {
            if (grid[cell]) continue;
            var r = cell / 9 | 0, c = cell % 9, used = rows[r] | columns[c] | boxes[(r / 3 | 0) * 3 + (c / 3 | 0)], free = 0;
            for (var d = 1; d <= 9; d++) if (!(used & 1 << d)) free++;
            if (free < options) { options = free; best = cell; chosen = used; }
        }
        if (best < 0) return true;
        if (++visited > 120) return false;
        for (d = 1; d <= 9; d++)
            if (!(chosen & 1 << d)) {
                place(best, d);
                if (solve()) return true;
                remove(best);
            }
        return false;
    }
    for (var clues = 0; clues < 22; clues++) {
        var cell = random(81);
        if (!grid[cell]) place(cell, 1 + random(9));
    }
    solve();
    return grid.reduce(mix, visited);
};

programs.words = function () {
    var text = [], count = {}, n;
    for (n = 0; n < 400; n++) text.push(word());
    text.join(" ").split(" ").forEach(function (word) { count[word] = (count[word] || 0) + 1; });
    var names = Object.keys(count).sort(function (a, b) { return count[b] - count[a] || (a < b ? -1 : 1); });
    return mixText(names.length, names.slice(0, 20).join(",").toUpperCase());
};

programs.huffman = function () {
    var text = "", weights = {}, heap = [], codes = {}, i;
    for (i = 0; i < 200; i++) text += word() + (random(6) ? " " : ". ");
    for (i = 0; i < text.length; i++) weights[text.charAt(i)] = (weights[text.charAt(i)] || 0) + 1;
    function push(node) {
        var at = heap.push(node) - 1;
        while (at) {
            var up = at - 1 >> 1;
            if (heap[up].weight <= heap[at].weight) break;
            var kept = heap[up]; heap[up] = heap[at]; heap[at] = kept;
            at = up;
        }
    }
    function pop() {
        var top = heap[0], last = heap.pop(), at = 0;
        if (!heap.length) return top;
        heap[0] = last;
        for (;;) {
            var down = 2 * at + 1;
            if (down >= heap.length) break;
            if (down + 1 < heap.length && heap[down + 1].weight < heap[down].weight) down++;
            if (heap[at].weight <= heap[down].weight) break;
            var kept = heap[at]; heap[at] = heap[down]; heap[down] = kept;
            at = down;
        }
        return top;
    }
    for (var letter in weights) push({ letter: letter, weight: weights[letter] });
    while (heap.length > 1) { var a = pop(), b = pop(); push({ weight: a.weight + b.weight, left: a, right: b }); }
    (function walk(node, code) {
        if (node.letter) codes[node.letter] = code;
        else { walk(node.left, code + "0"); walk(node.right, code + "1"); }
    })(heap[0], "");
    var bits = [], sum = 0;
    for (i = 0; i < text.length; i++) bits.push(codes[text.charAt(i)]);
    bits = bits.join("");
    for (var at = 0; at < bits.length;) {
        for (var node = heap[0]; !node.letter; at++) node = bits.charAt(at) === "0" ? node.left : node.right;
        sum = mix(sum, node.letter.charCodeAt(0));
    }
    return sum;
};

programs.bits = function () {
    var table = [], n, k, crc = -1, sum = 0;
    for (n = 0; n < 256; n++) {
        var c = n;
        for (k = 0; k < 8; k++) c = c & 1 ? c >>> 1 ^ 0xedb88320 : c >>> 1;
        table.push(c);
    }
    for (n = 0; n < 3000; n++) crc = table[(crc ^ random(256)) & 255] ^ crc >>> 8;
    for (n = crc >>> 0; n; n = Math.floor(n / 2)) sum += n & 1;
    return (crc >>> 0) % 1000003 + sum;
};

programs.regexps = function () {
    var text = "", sum = 0;
    for (var n = 0; n < 60; n++)
        text += word() + (random(4) ? " " : "@" + word() + ".org ") + random(3000) + "-" + (10 + random(90)) + "\n";
    var patterns = [/[a-z]+@[a-z]+\.(?:com|org)/g, /(\d{2,4})-(\d\d)/g, /\b([a-z]{2})\w*\1\b/g, /^(?:ka|lo|ti)+ .*$/gm, /(?!ka)[aeiou][^aeiou\s]+o/g];
    patterns.forEach(function (pattern) {
        var match;
        while ((match = pattern.exec(text))) sum = mix(sum, match.index + match[0].length);
    });
    return mixText(sum, text.replace(/(\w+)@(\w+)/g, "$2 at $1").substr(0, 200));
};

programs.closures = function () {
    function compose(f, g) { return function (x) { return f(g(x)); }; }
    var steps = [];
    for (var n = 0; n < 30; n++) (function (k) { steps.push(k % 2 ? function (x) { return (x * k + 1) % 9973; } : function (x) { return x ^ k; }); })(random(100) + 1);
    var all = steps.reduce(compose), sum = 0;
    for (n = 0; n < 40; n++) sum = mix(sum, all(n));
    return [1, 2, 3, 4, 5, 6, 7, 8].map(all).filter(function (x) { return x & 1; }).reduce(mix, sum);
};

// A treap: inserts, looks up, deletes.
programs.tree = function () {
    function rotateRight(node) { var up = node.left; node.left = up.right; up.right = node; return up; }
    function rotateLeft(node) { var up = node.right; node.right = up.left; up.left = node; return up; }
    function insert(node, key) {
        if (!node) return { key: key, rank: random(1 << 20), left: null, right: null };
        if (key < node.key) { node.left = insert(node.left, key); if (node.left.rank > node.rank) node = rotateRight(node); }
        else if (key > node.key) { node.right = insert(node.right, key); if (node.right.rank > node.rank) node = rotateLeft(node); }
        return node;
    }
    function remove(node, key) {
        if (!node) return null;
        if (key < node.key) node.left = remove(node.left, key);
        else if (key > node.key) node.right = remove(node.right, key);
        else if (!node.left) return node.right;
        else if (!node.right) return node.left;
        else if (node.left.rank > node.right.rank) { node = rotateRight(node); node.right = remove(node.right, key); }
        else { node = rotateLeft(node); node.left = remove(node.left, key); }
        return node;
    }
    var root = null, sum = 0;
    for (var n = 0; n < 200; n++) root = insert(root, random(1000));
    for (n = 0; n < 150; n++) root = remove(root, random(1000));
    (function walk(node, depth) { if (node) { walk(node.left, depth + 1); sum = mix(sum, node.key + depth); walk(node.right, depth + 1); } })(root, 0);
    return sum;
};

programs.matrix = function () {
    var n = 12, a = [], b = [], c = [], i, j, k, sum = 0;
    for (i = 0; i < n; i++) { a.push([]); b.push([]); c.push([]); for (j = 0; j < n; j++) { a[i].push(random(100) / 4); b[i].push(random(100) / 8); } }
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) { var s = 0; for (k = 0; k < n; k++) s += a[i][k] * b[k][j]; c[i][j] = s; }
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) sum = mix(sum, Math.floor(c[i][j]));
    return sum;
};

// Run-length and dictionary coding of strings.
programs.strings = function () {
    var text = "", packed = [], seen = {}, i, sum = 0;
    for (i = 0; i < 120; i++) text += word();
    for (i = 0; i < text.length;) {
        var length = 1;
        while (i + length < text.length && seen.hasOwnProperty(text.substr(i, length))) length++;
        var piece = text.substr(i, length);
        packed.push(piece.length > 1 ? seen[piece.slice(0, -1)] + ":" + piece.slice(-1) : piece);
        seen[piece] = packed.length;
        i += length;
    }
    sum = mixText(sum, packed.join(";").substring(0, 300));
    return mix(sum, text.split("").reverse().join("").indexOf("ak") + text.lastIndexOf("mer") + packed.length);
};

args[1].split(",").map(function (item) {
    var name = item.replace(/\d+$/, ""), rounds = +item.substr(name.length), sum = 0;
    for (var round = 0; round < rounds; round++) sum = mix(sum, programs[name]());
    return item + "=" + sum;
}).join(" ");
