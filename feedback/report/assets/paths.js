// Paths: in short form, and why one is hot.
"use strict";

const SHOWN_STEPS = 16;
const PATH_LEGEND = "numbers are source lines, or blocks where lines are not known; ▸ from the function's entry, ■ to its end, "
  + "↺n by a back edge to n, ✂n cut before n, ☎ ends in a call that did not return; *f(): the most frequent target of an "
  + "indirect call";

/// For each function in detail, how many of its paths have a text.
const pathTexts = new WeakMap();

/// `▸ 120 → 131 → next_token() → 140 ↺120`: lines and calls, as `pleach paths` shows them. `detail` is that of the
/// path's function; where it is not known or has no lines, block numbers. Paths that would look the same get both.
function pathText(detail, path) {
  const text = pathSteps(detail, path);
  if (!detail) return text;
  if (!pathTexts.has(detail)) {
    const texts = new Map();
    detail.paths.map((each) => pathSteps(detail, each)).forEach((each) => texts.set(each, (texts.get(each) ?? 0) + 1));
    pathTexts.set(detail, texts);
  }
  return pathTexts.get(detail).get(text) > 1 ? `${text} (${blocksText(path)})` : text;
}

function pathSteps(detail, path) {
  const steps = detail ? stepsOf(detail, path.blocks) : [];
  const line = (b) => detail.blocks[b]?.line || "";
  return steps.length > 0 ? pathOf(path, steps, line(path.to)) : pathOf(path, path.blocks, path.to);
}

/// Lines and calls of blocks in order, beginning with a line. A block that begins on the line of the one before it adds
/// its calls only.
function stepsOf(detail, blocks) {
  const steps = [];
  let last = 0;
  for (const block of blocks.map((b) => detail.blocks[b])) {
    if (block.line > 0 && block.line !== last) steps.push(last = block.line);
    if (last > 0) steps.push(...callsText(block.calls ?? []));
  }
  return steps;
}

/// A block's calls as steps: of the targets of an indirect call, the most frequent.
function callsText(calls) {
  const name = (call) => (call.to === null ? "call()" : `${shortName(functionName(call.to))}()`);
  const steps = calls.filter((call) => !call.indirect).map(name);
  const [most] = calls.filter((call) => call.indirect).sort((a, b) => b.count - a.count);
  return most ? [...steps, most.to === null ? "indirect call()" : `*${name(most)}`] : steps;
}

/// A path of steps, shortened, between its ends.
function pathOf(path, steps, to) {
  const half = SHOWN_STEPS / 2;
  const shown = steps.length > SHOWN_STEPS ? [...steps.slice(0, half), "…", ...steps.slice(-half)] : steps;
  const ends = { exit: " ■", back: ` ↺${to}`, cut: ` ✂${to}`, call: " ☎" };
  return `${path.start === "entry" ? "▸ " : ""}${shown.join(" → ")}${ends[path.end] ?? ""}`;
}

const blocksText = (path) => `${path.blocks.length === 1 ? "block" : "blocks"} ${path.blocks.join(" ")}`;

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
    const where = line > 0 ? `line ${line} (block ${path.to})` : `block ${path.to}`;
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
    parts.push(`The branch ${block.line ? `on line ${block.line} (block ${b})` : `of block ${b}`} is mispredicted in `
      + `${percent(count / watched)} of its executions (at least ${percent(low / watched)}).`);
  }
  return parts.join(" ") || `${row.name}`;
}
