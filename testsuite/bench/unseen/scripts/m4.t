divert(-1)
define(`forloop', `pushdef(`$1', `$2')_forloop($@)popdef(`$1')')
define(`_forloop', `$4`'ifelse($1, `$3', `', `define(`$1', incr($1))$0($@)')')
define(`record', `struct $1 { int $2; char name[len(`$1')]; }; translit(`$1', `a-z', `A-Z')')
define(`word', `patsubst(`lorem ipsum dolor sit amet $1', `[aeiou]', `<\&>')')
divert
forloop(`i', 1, 6000, `record(`thing'i, `field'eval(i * 7 % 13))
word(i) substr(`abcdefghijklmnopqrstuvwxyz', eval(i % 20), 5) ifelse(eval(i % 3), 0, `third', `other')
')
