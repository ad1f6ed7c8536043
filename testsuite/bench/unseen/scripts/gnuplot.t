# Functions of one variable and a surface, as SVG.
set terminal svg size 800,600
set samples 4000
set grid
set title "Functions"
plot sin(x) * exp(-x * x / 40) title "damped", besj0(x), floor(x) - x ** 3 / 900 with steps, erf(x) with linespoints
set polar
plot [0:12 * pi] t * sin(t) with filledcurves
unset polar
set samples 80
set isosamples 80
set hidden3d
splot [-3:3] [-3:3] sin(x * x + y * y) / (x * x + y * y + .1), exp(-x * x - y * y) with lines
unset hidden3d
set pm3d
set palette rgbformulae 33, 13, 10
set samples 160
set isosamples 160
splot [-4:4] [-4:4] cos(x) * sin(y) + real(cosh({.3, 1} * x / 4)) with pm3d
