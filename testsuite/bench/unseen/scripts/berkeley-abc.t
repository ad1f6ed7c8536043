read i10.aig
strash
print_stats
balance
rewrite
refactor
balance
resub -K 6
rewrite -z
balance
print_stats
refactor -z
resub -K 8
balance
rewrite
refactor
balance
resub -K 6
rewrite -z
balance
print_stats
refactor -z
resub -K 8
dch
print_stats
if -K 6
print_stats
print_fanio
