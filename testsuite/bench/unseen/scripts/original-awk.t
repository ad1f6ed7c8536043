{ words += NF; for (i = NF; i > 0; i--) { w = substr($i, 1, 6); count[w]++ } }
/status fail/ { gsub(/[0-9]+/, "#"); shape[$0]++ }
$2 ~ /^host1/ { sub("host", "node"); long = long ? long "," NR : NR; if (length(long) > 500) long = "" }
{ total += length(sprintf("%8d %-30s|", NR, $4)) }
END { for (s in shape) print shape[s], s; for (w in count) if (count[w] > 900) print w, count[w]; print words, total, long }
