<?php // Objects, recursion and arithmetic.
class Tree {
    public ?Tree $left = null; public ?Tree $right = null;
    function __construct(public int $key) {}
    function insert(int $key): void {
        if ($key == $this->key) return;
        $side = $key < $this->key ? 'left' : 'right';
        if ($this->$side) $this->$side->insert($key); else $this->$side = new Tree($key);
    }
    function depth(): int { return 1 + max($this->left ? $this->left->depth() : 0, $this->right ? $this->right->depth() : 0); }
}
$x = 42; $tree = new Tree(500);
for ($i = 0; $i < 20000; $i++) { $x = ($x * 16807) % 2147483647; $tree->insert($x % 30000); }
echo $tree->depth(), "\n";
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
echo fib(23), "\n";
$n = 120; $a = $b = $c = [];
for ($i = 0; $i < $n; $i++) for ($j = 0; $j < $n; $j++) { $a[$i][$j] = ($i * 7 + $j) % 11; $b[$i][$j] = ($i + $j * 3) % 13 / 4; }
for ($i = 0; $i < $n; $i++) for ($j = 0; $j < $n; $j++) { $s = 0; for ($k = 0; $k < $n; $k++) $s += $a[$i][$k] * $b[$k][$j]; $c[$i][$j] = $s; }
echo array_sum(array_map('array_sum', $c)), "\n";
$sieve = array_fill(0, 200001, true);
for ($i = 2; $i * $i <= 200000; $i++) if ($sieve[$i]) for ($j = $i * $i; $j <= 200000; $j += $i) $sieve[$j] = false;
echo count(array_filter($sieve)) - 2, "\n";
function gen($n) { for ($i = 0; $i < $n; $i++) yield $i => $i ^ ($i >> 3); }
$h = 0; foreach (gen(100000) as $k => $v) { $h = ($h * 31 + $k * $v) & 0xffffffff; } echo $h, "\n";
