// Numbers, matrices, JSON, a small interpreter and recursion.
function multiply(a, b, n) {
  var c = [];
  for (var i = 0; i < n; i++)
    for (var j = 0; j < n; j++) {
      var s = 0;
      for (var k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s % 97;
    }
  return c;
}
var n = 60, m = [];
for (var i = 0; i < n * n; i++) m[i] = (i * i + 3) % 89;
print(multiply(multiply(m, m, n), m, n).slice(0, 6));
function evaluate(code, x) {
  var stack = [];
  for (var i = 0; i < code.length; i++)
    switch (code[i]) {
      case '+': stack.push(stack.pop() + stack.pop()); break;
      case '*': stack.push((stack.pop() * stack.pop()) % 10007); break;
      case 'x': stack.push(x); break;
      default: stack.push(+code[i]);
    }
  return stack.pop();
}
var total = 0;
for (var x = 0; x < 9000; x++) total += evaluate(['x', 'x', '*', '3', '+', 'x', '*', '7', '+'], x);
print(total);
var tree = function (d) { return d ? { left: tree(d - 1), right: tree(d - 1), d: d, s: 'depth ' + d } : null; };
var again = JSON.parse(JSON.stringify(tree(11)));
var count = function (t) { return t ? 1 + count(t.left) + count(t.right) : 0; };
print(count(again));
var primes = 0;
for (var p = 2; p < 12000; p++) { var is = true; for (var d = 2; d * d <= p; d++) if (p % d === 0) { is = false; break; } primes += is; }
print(primes, Math.sin(primes).toFixed(8));
try { throw new Error('done'); } catch (e) { print(e.message); }
