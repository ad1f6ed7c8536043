^\s*\*.*$
\b(?:if|while|for|switch)\b\s*\(
(?i)todo|fixme|xxx
[A-Z][A-Z0-9_]{3,}
(?<=->)\w+
\b\w+(?=\[)
\((?:[^()\n]|\([^()\n]*\)){0,40}\)
