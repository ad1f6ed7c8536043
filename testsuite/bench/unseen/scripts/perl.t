# Text: words, substitutions, hashes of arrays, sorting by several keys.
my $seed = 7;
sub r { $seed = ($seed * 1103515245 + 12345) % 2147483648; return $seed % $_[0] }
my @syllables = qw(ka lo mi ter un sa pre do vi ex con tra bel nor);
my (%count, %lines, $out);
for my $line (1 .. 12000) {
    my $text = join ' ', map { join '', map { $syllables[r(14)] } 0 .. r(3) } 0 .. 9;
    $text =~ s/(\w+)ter\b/$1TER/g;
    $text =~ tr/aeiou/AEIOU/ if $line % 3 == 0;
    for my $word (split / /, $text) {
        $count{lc $word}++;
        push @{ $lines{substr $word, 0, 3} }, $line;
    }
    $out .= sprintf "%05d %-40.40s|%s\n", $line, $text, join ',', $text =~ /\b(\w)\w*k(\w)/g;
    $out = substr $out, -4000 if length $out > 20000;
}
my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print "$_ $count{$_}\n" for @top[0 .. 20];
print scalar(@{ $lines{$_} }), " $_\n" for sort keys %lines;
print unpack('%32C*', $out), "\n";
