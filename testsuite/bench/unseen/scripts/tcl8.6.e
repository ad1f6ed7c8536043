# Recursion, arithmetic, arrays.
proc fib {n} { if {$n < 2} { return $n }; return [expr {[fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]}] }
puts [fib 19]
proc sieve {n} {
    for {set i 2} {$i <= $n} {incr i} { set prime($i) 1 }
    for {set i 2} {$i * $i <= $n} {incr i} {
        if {$prime($i)} { for {set j [expr {$i * $i}]} {$j <= $n} {incr j $i} { set prime($j) 0 } }
    }
    set count 0
    foreach {k v} [array get prime] { incr count $v }
    return $count
}
puts [sieve 40000]
proc life {size steps} {
    set grid {}
    for {set i 0} {$i < $size * $size} {incr i} { lappend grid [expr {($i * 7 + $i / 3) % 5 < 2}] }
    while {[incr steps -1] >= 0} {
        set new {}
        for {set i 0} {$i < $size} {incr i} {
            for {set j 0} {$j < $size} {incr j} {
                set n 0
                foreach {di dj} {-1 -1 -1 0 -1 1 0 -1 0 1 1 -1 1 0 1 1} {
                    incr n [lindex $grid [expr {(($i + $di) % $size) * $size + ($j + $dj) % $size}]]
                }
                lappend new [expr {$n == 3 || ($n == 2 && [lindex $grid [expr {$i * $size + $j}]])}]
            }
        }
        set grid $new
    }
    return [join $grid ""]
}
puts [life 40 4]
proc hanoi {n from to by} { if {$n == 0} { return 0 }; return [expr {[hanoi [expr {$n - 1}] $from $by $to] + 1 + [hanoi [expr {$n - 1}] $by $to $from]}] }
puts [hanoi 13 a b c]
