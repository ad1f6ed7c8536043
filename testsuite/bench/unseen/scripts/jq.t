# Records: select, group, count, format.
[.[] | select(.score > 20 and .at.ok)] as $good
| ($good | group_by(.at.city) | map({city: .[0].at.city, n: length, mean: (map(.score) | add / length)})),
  ($good | map(.tags[]) | unique),
  (map(select(.name | endswith("7"))) | sort_by(.score) | .[-5:] | map("\(.id): \(.name | ascii_upcase) \(.at.zip)")),
  (map(.tags | join("")) | map(ltrimstr("a") | explode | length) | add),
  ($good | .[:2000] | map(to_entries | map(select(.key != "at")) | from_entries) | .[-3:])
