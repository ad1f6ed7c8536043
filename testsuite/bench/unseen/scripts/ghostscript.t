%!PS
% Vector graphics: strokes, curves, fills, clips.
/seed 42 def
/random { /seed seed 16807 mul 2147483647 mod cvi def seed 1000 mod } def
/flower { gsave translate 0 1 11 { pop 30 rotate 0 0 moveto 20 10 40 60 10 90 curveto -30 60 -20 20 0 0 curveto
    gsave fill grestore 0 setgray stroke } for grestore } def
1 1 60 { pop
    random 1000 div random 1000 div random 1000 div setrgbcolor
    .2 .2 scale random 3 mul random 4 mul flower 5 5 scale
} for
1 1 900 { /i exch def
    random 1000 div 1 .7 sethsbcolor i 7 mod 1 add setlinewidth i 3 mod setlinejoin i 2 mod setlinecap
    random .6 mul random .8 mul moveto
    1 1 8 { pop random .6 mul random .8 mul random .6 mul random .8 mul random .6 mul random .8 mul curveto } for
    i 4 mod 0 eq { [4 2 i 5 mod 1 add] 0 setdash } { [] 0 setdash } ifelse
    i 5 mod 0 eq { eofill } { stroke } ifelse
} for
gsave 300 400 200 0 360 arc clip newpath
0 3 600 { dup 10 moveto 600 exch sub 790 lineto .5 setlinewidth stroke } for
grestore
showpage
