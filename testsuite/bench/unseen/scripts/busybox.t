# Text processing: fields, patterns, substitutions, counts.
{ for (i = 2; i <= NF; i++) count[$i]++ }
/status (fail|retry)/ { line = $0; gsub(/[0-9]+/, "#", line); shape[line]++ }
$6 ~ /[05]$/ { sum += $8; if ($8 > worst) { worst = $8; at = $2 } }
match($0, /daemon\[[0-3]\]/) { total += RSTART + length(substr($0, RSTART, RLENGTH)) }
{ sub(/^[^ ]* /, ""); out = out toupper(substr($0, 5, 2)); if (length(out) > 200) { print out; out = "" } }
END {
    for (s in shape) n++
    printf "%d %d %s %d %s %.3f\n", n, worst, at, total, count["host7"], sum / NR
}
