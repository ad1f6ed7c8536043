// Computation on numbers and strings: recursion, sorting, sets and texts in other formats.
local fib(n) = if n < 2 then n else fib(n - 1) + fib(n - 2);
local random(seed, n) = if n == 0 then [] else
  local next = (seed * 1103 + 12345) % 65536;
  [next] + random(next, n - 1);
local numbers = random(42, 400);
local sieve(n) = std.foldl(
  function(primes, i) if std.length([p for p in primes if p * p <= i && i % p == 0]) == 0 then primes + [i] else primes,
  std.range(2, n),
  []
);
local words = [std.char(97 + n % 26) + std.asciiUpper(std.substr('lorem ipsum dolor', n % 9, 5)) for n in numbers];
{
  fib: fib(19),
  sorted: std.sort(numbers),
  primes: sieve(350),
  words: std.set(words),
  joined: std.join(', ', std.reverse(words)),
  split: std.mapWithIndex(function(i, w) i + ':' + std.strReplace(w, 'O', '<o>'), std.split(self.joined, ',')),
  digest: std.foldl(function(h, c) (h * 31 + std.codepoint(c)) % 1000003, std.stringChars(self.joined), 7),
  ini: std.manifestIni({ main: { a: 1, b: [true, 'x'] }, sections: { s: { c: '%e' % 12345.678 } } }),
  yaml: std.manifestYamlDoc({ list: numbers[:50], text: 'several\nlines\n', nested: { a: null, b: [{ c: {} }] } }),
  merged: std.mergePatch({ a: { b: 1, c: 2 } }, { a: { c: null, d: [1, 2] } }),
  base64: std.base64(self.joined[:300]),
}
