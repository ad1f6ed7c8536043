%!PS
% Arithmetic, dictionaries, strings and sorting; then an image and a shading in halftones.
/fib { dup 2 lt { pop 1 } { dup 1 sub fib exch 2 sub fib add } ifelse } def
24 fib =
/sieve 60000 array def
0 1 59999 { sieve exch true put } for
2 1 244 { dup sieve exch get { dup dup mul exch 59999 { sieve exch false put } for } { pop } ifelse } for
0 2 1 59999 { sieve exch get { 1 add } if } for =
/words 5000 dict def
0 1 40000 { 7919 mul 10007 mod 10 string cvs cvn dup words exch known
    { words exch 2 copy get 1 add put } { words exch 1 put } ifelse } for
0 words { exch pop add } forall =
/a 400 array def 0 1 399 { a exch dup 7919 mul 1009 mod put } for
0 1 398 { /i exch def i 1 add 1 399 { /j exch def a i get a j get gt
    { a i get a i a j get put a j 3 -1 roll put } if } for } for
a 0 get = a 200 get = a 399 get =
/line 256 string def
gsave 40 300 translate 500 450 scale
/row 0 def 256 256 8 [256 0 0 256 0 0]
{ 0 1 255 { line exch dup dup mul row 37 mul add 255 and put } for /row row 1 add def line } image
grestore
gsave 40 40 500 240 rectclip
<< /ShadingType 2 /ColorSpace /DeviceRGB /Coords [40 40 540 280] /Extend [true true]
   /Function << /FunctionType 2 /Domain [0 1] /C0 [1 0 .2] /C1 [0 .4 1] /N 1.7 >> >> shfill
grestore
showpage
