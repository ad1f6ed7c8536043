# Data, statistics, fits, contours and loops, as text.
set print "-"
set table $data
set samples 3000
plot [0:30] 3.2 * sin(.7 * x + .4) * exp(-.05 * x) + .1 * (int(x * 7919) % 13 - 6)
unset table
stats $data using 1:2 name "A" nooutput
print A_mean_y, A_stddev_y, A_correlation
f(x) = a * sin(b * x + c) * exp(-d * x)
a = 3; b = .68; c = .3; d = .04
set fit quiet nolog
fit f(x) $data using 1:2 via a, b, c, d
print sprintf("%.4f %.4f %.4f %.4f", a, b, c, d)
set terminal dumb 120, 40
plot $data using 1:2 smooth bezier, $data using 1:(f($1)) smooth csplines, $data using (floor($1)):2 smooth unique
set view map
unset surface
set contour
set cntrparam levels 12 cubicspline points 6
set samples 60
set isosamples 60
splot [-3:3] [-3:3] sin(x) * cos(y) + x * y / 5
fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
print fib(21)
s = ""
do for [i = 1:3000] {
    s = substr(s . sprintf("%03x", i * 7919 % 4093), 2, 60)
    if (strstrt(s, "fff")) { print i, " ", s }
}
