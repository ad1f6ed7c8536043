\b(?:const|int|bool|void|unsigned)\b[^;{}\n]*;
//.*$
\b\w+::\w+\s*\(
(?i)clause|literal|watch|trail
^(?:  )+(?:if|for|while|return)\b.*$
