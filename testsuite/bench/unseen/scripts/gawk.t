# Text processing.
{ words += NF; for (i = 1; i <= NF; i++) count[tolower($i)]++ }
/status (fail|retry)/ { gsub(/[0-9]+/, "#"); shape[$0]++ }
match($0, /took ([0-9]+) ms/, m) { time += m[1]; if (m[1] > worst) worst = m[1] }
{ line = sprintf("%-60.60s|", $0); total += length(line) + index(line, "host1") }
END {
    PROCINFO["sorted_in"] = "@val_num_desc"
    for (w in count) { print w, count[w]; if (++n > 20) break }
    for (s in shape) print shape[s], s
    print words, time, worst, total
}
