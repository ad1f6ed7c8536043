// Paths: in short form, and why one is hot.
"use strict";

const SHOWN_BLOCKS = 16;
const PATH_LEGEND = "▸ from the function's entry, ■ to its end, ↺b by a back edge to block b, ✂b cut before block b, "
  + "☎ ends in a call that did not return";

/// `▸ 0→1→5 ↺1`.
function pathText(path) {
  let blocks = path.blocks.map(String);
  if (blocks.length > SHOWN_BLOCKS) {
    const half = SHOWN_BLOCKS / 2;
    blocks = [...blocks.slice(0, half), "…", ...blocks.slice(-half)];
  }
  const ends = { exit: " ■", back: ` ↺${path.to}`, cut: ` ✂${path.to}`, call: " ☎" };
  return `${path.start === "entry" ? "▸ " : ""}${blocks.join("→")}${ends[path.end] ?? ""}`;
}

/// The lines that a path passes, where they are known: `12, 15–18`.
function pathLines(detail, path) {
  const lines = [...new Set(path.blocks.map((b) => detail.blocks[b].line).filter((line) => line > 0))].sort((a, b) => a - b);
  if (lines.length === 0) return "";
  return lines.length === 1 ? `line ${lines[0]}` : `lines ${lines[0]}–${lines[lines.length - 1]}`;
}

/// Executions of the edges that enter a loop's head, from outside and by back edges.
function loopEntries(detail, head) {
  const into = detail.edges.filter(([, to]) => to === head);
  const back = sum(into.filter((edge) => edge[3]).map((edge) => edge[2]));
  const outside = sum(into.filter((edge) => !edge[3]).map((edge) => edge[2]));
  return { back, outside: head === 0 ? Math.max(outside, detail.blocks[0].count - back) : outside };
}

const times = (n) => (n === 1 ? "once" : `${short(n)} times`);

/// Why a path is executed as often as it is: sentences.
function why(detail, path) {
  const row = DATA.functions[detail.function];
  const calls = detail.blocks[0].count;
  const parts = [];
  if (path.end === "cut") {
    parts.push(`It is a part of longer paths: too many begin before block ${path.to}, so that what follows is counted as paths from there on.`);
  } else if (path.end === "back") {
    const { back, outside } = loopEntries(detail, path.to);
    const line = detail.blocks[path.to].line;
    const where = line > 0 ? `block ${path.to}, line ${line}` : `block ${path.to}`;
    if (outside > 0 && back > 0) {
      const entered = DATA.overview.exact ? `is entered ${times(outside)} and ` : "";
      parts.push(`It is one iteration of the loop at ${where}, which ${entered}goes back ${times(back / outside)} each time it is entered.`);
    } else {
      parts.push(`It is one iteration of the loop at ${where}, which ${DATA.overview.exact ? `goes back ${times(back)}` : "is not left in what was recorded"}.`);
    }
    const iterations = sum(detail.paths.filter((p) => p.to === path.to && p.end === path.end).map((p) => p.count));
    if (iterations > 0) parts.push(`${percent(path.count / iterations)} of its iterations take this path.`);
  } else if (path.start === "entry" && path.end === "exit") {
    parts.push("It is a whole call, from the function's entry to its end.");
  } else if (path.start === "entry") {
    parts.push("It is the beginning of a call.");
  } else {
    parts.push("It leads from a loop, or from where paths were cut, to the function's end.");
  }
  if (calls > 0) {
    const by = detail.callers.length > 0 && detail.callers[0][1] > 0
      ? `mostly by ${shortName(functionName(detail.callers[0][0]))} (${percent(detail.callers[0][1] / sum(detail.callers.map((c) => c[1])))} of known calls)` : "";
    const how = [DATA.overview.exact ? times(calls) : "", by].filter(Boolean).join(", ");
    if (how) parts.push(`The function is called ${how}.`);
    parts.push(`For each call, the path is executed ${times(path.count / calls)}.`);
  }
  const missed = [...new Set(path.blocks)].map((b) => [b, detail.blocks[b]])
    .filter(([, block]) => block.mispredicted && block.mispredicted[1] / block.mispredicted[2] >= 0.02)
    .sort((a, b) => b[1].mispredicted[0] - a[1].mispredicted[0]).slice(0, 2);
  for (const [b, block] of missed) {
    const [count, low, watched] = block.mispredicted;
    parts.push(`The branch of block ${b}${block.line ? ` (line ${block.line})` : ""} is mispredicted in `
      + `${percent(count / watched)} of its executions (at least ${percent(low / watched)}).`);
  }
  return parts.join(" ") || `${row.name}`;
}
