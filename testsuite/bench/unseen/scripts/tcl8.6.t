# Strings, lists, dictionaries.
set seed 17
proc r {n} { global seed; set seed [expr {($seed * 1103515245 + 12345) % 2147483648}]; return [expr {$seed % $n}] }
proc words {count} {
    set syllables {ka lo mi ter un sa pre do vi ex con tra bel nor}
    set out {}
    for {set i 0} {$i < $count} {incr i} {
        set w ""
        for {set k [r 3]} {$k >= 0} {incr k -1} { append w [lindex $syllables [r 14]] }
        lappend out $w
    }
    return $out
}
proc main {} {
    set count [dict create]
    for {set line 0} {$line < 9000} {incr line} {
        set text [join [words 8] " "]
        if {$line % 3 == 0} { set text [string toupper [string map {ter TER a e} $text]] }
        foreach w [split $text] { dict incr count $w; lappend index([string range $w 0 2]) $line }
        if {[regexp {\m(\w)k(\w+)} $text -> a b]} { dict incr count $b [string length $a] }
        regsub -all {[aeiou]} $text {} text
    }
    set top {}
    dict for {w n} $count { lappend top [list $w $n] }
    foreach pair [lrange [lsort -integer -decreasing -index 1 [lsort -index 0 $top]] 0 20] { puts $pair }
    foreach k [lsort [array names index]] { puts "$k [llength [lsort -unique -integer $index($k)]]" }
}
main
