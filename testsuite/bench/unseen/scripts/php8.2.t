<?php // Strings and arrays.
$seed = 13;
function r($n) { global $seed; $seed = ($seed * 1103515245 + 12345) % 2147483648; return $seed % $n; }
$syllables = explode(' ', 'ka lo mi ter un sa pre do vi ex con tra bel nor');
$count = []; $index = [];
for ($line = 0; $line < 60000; $line++) {
    $words = [];
    for ($i = 0; $i < 8; $i++) { $w = ''; for ($k = r(3); $k >= 0; $k--) $w .= $syllables[r(14)]; $words[] = $w; }
    $text = implode(' ', $words);
    if ($line % 3 == 0) $text = strtoupper(str_replace('ter', 'TER', $text));
    foreach ($words as $w) { $count[$w] = ($count[$w] ?? 0) + 1; $index[substr($w, 0, 3)][] = $line; }
    if (preg_match('/\b(\w)k(\w+)/', $text, $m)) $count[$m[2]] = ($count[$m[2]] ?? 0) + strlen($m[1]);
}
uksort($count, fn($a, $b) => $count[$b] <=> $count[$a] ?: strcmp($a, $b));
foreach (array_slice($count, 0, 20) as $w => $n) printf("%-10s %d\n", $w, $n);
ksort($index);
foreach ($index as $k => $v) echo $k, ' ', count(array_unique($v)), "\n";
