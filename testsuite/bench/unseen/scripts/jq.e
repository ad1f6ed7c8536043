# Trees: paths, recursion, rewriting; arithmetic.
def depth: if type == "array" or type == "object" then 1 + ([.[] | depth] | max // 0) else 0 end;
def fib: if . < 2 then . else (. - 1 | fib) + (. - 2 | fib) end;
def gcd(a; b): if b == 0 then a else gcd(b; a % b) end;
(map(depth)),
([.. | numbers] | length, (map(floor) | add)),
([paths(strings)] | length),
(.[:3] | walk(if type == "object" then with_entries(.value |= (if type == "number" then . * 2 else . end)) else . end)),
(13 | fib),
(reduce range(3000) as $i (0; . + gcd($i * 7919; 360360))),
([limit(5; .[] | tostream | select(length == 2) | .[0] | map(tostring) | join("/"))]),
(.[5] | tojson | fromjson == .),
(last(range(20000) | select(. % 7 == 3)))
