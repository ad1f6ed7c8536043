# Objects, closures, recursion and arithmetic.
package Tree;
sub new { bless { key => $_[1], left => undef, right => undef, n => 1 }, $_[0] }
sub insert {
    my ($self, $key) = @_;
    if ($key == $self->{key}) { $self->{n}++; return $self }
    my $side = $key < $self->{key} ? 'left' : 'right';
    if ($self->{$side}) { $self->{$side}->insert($key) } else { $self->{$side} = Tree->new($key) }
    return $self;
}
sub depth { my ($l, $r) = map { $_ ? $_->depth : 0 } @{ $_[0] }{qw(left right)}; 1 + ($l > $r ? $l : $r) }
package main;
my $x = 42;
my $next = sub { $x = ($x * 16807) % 2147483647 };
my $tree = Tree->new(500);
$tree->insert($next->() % 3000) for 1 .. 8000;
print $tree->depth, "\n";
my @grid = map { [map { $next->() % 2 } 1 .. 40] } 1 .. 40;
for (1 .. 6) {
    my @new;
    for my $i (0 .. 39) { for my $j (0 .. 39) {
        my $n = 0;
        for my $di (-1 .. 1) { for my $dj (-1 .. 1) { $n += $grid[($i + $di) % 40][($j + $dj) % 40] if $di || $dj } }
        $new[$i][$j] = $n == 3 || ($n == 2 && $grid[$i][$j]) ? 1 : 0;
    } }
    @grid = @new;
}
print join('', @$_), "\n" for @grid;
sub hanoi { my ($n, $a, $b, $c) = @_; return $n ? hanoi($n - 1, $a, $c, $b) + 1 + hanoi($n - 1, $c, $b, $a) : 0 }
print hanoi(14, 'a', 'b', 'c'), "\n";
my @primes = (2);
N: for (my $n = 3; @primes < 1500; $n += 2) { for (@primes) { last if $_ * $_ > $n; next N unless $n % $_ } push @primes, $n }
print "$primes[-1]\n";
