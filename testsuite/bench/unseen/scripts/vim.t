" Edits of a text: substitutions, global commands, normal mode, sorting, joining, undoing.
%s/\<class \(\w\+\)/struct \1/g
%s/\v(virtual|static)\s+(\w+)/\2 \1/ge
g/^\s*\/\//m0
g/#include/normal f<ci<header
g/return/s/\s\+/ /g
%s/\v<(\w)(\w*)>/\u\1\L\2/g
undo
g/^$/,/./-1j
v/[a-z]/d
1,4000sort /\w\+/ r
%s/\v(\d+)/\=submatch(1) * 2 + 1/g
set textwidth=60 shiftwidth=2 expandtab
normal gg1200gqj
g/struct/normal >>A;
2000,2600normal dwviwyP0~$
%s/[^[:print:]]//ge
%retab
g/struct/.,/;/>
g/Value/t.
%print
qall!
