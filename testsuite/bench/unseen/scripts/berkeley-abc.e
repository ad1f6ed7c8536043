read_blif ../../inputs/berkeley-abc.e.blif
print_stats
strash
scleanup
fraig
print_stats
scorr
print_stats
frames -F 3 -i
print_stats
fraig
print_stats
dc2
if -K 4
mfs
print_stats
print_fanio
