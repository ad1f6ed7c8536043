// What `flags use` did in a build, by function.
"use strict";

const TREATMENTS = {
  "used": "profile used",
  "salvaged": "profile of an older version used",
  "size": "optimised for size",
  "unlikely": "cold section",
  "not-sampled": "no samples: no profile",
  "stale": "changed too much: no profile",
  "other-of-name": "another function of this name: no profile",
  "absent": "not in the profile",
};

let byLinkage = null;

/// What the build did with a function.
function builtOf(row) {
  if (!DATA.summary) return [];
  if (!byLinkage) {
    byLinkage = new Map();
    for (const each of DATA.summary.functions) byLinkage.set(each.function, [...(byLinkage.get(each.function) ?? []), each]);
  }
  const all = byLinkage.get(row.linkage ?? row.name) ?? [];
  // Local functions of one name are told apart by their files.
  const file = row.file === undefined ? undefined : DATA.files.files[row.file].path.split("/").pop();
  const own = all.filter((each) => each.file?.split("/").pop() === file);
  return own.length > 0 ? own : all;
}

/// Signs of what was done to blocks, and what they mean.
const MARKS = {
  superblock: ["▣", "▣n: copied for the n-th superblock"],
  if_converted: ["⇉", "⇉: its branch was if-converted"],
  selects_to_branches: ["⑂", "⑂: a select in it became a branch"],
  split: ["✂", "✂: split off, away from code that runs"],
};

/// Marks of blocks in the graph. Superblocks are known by block; the rest by source line, of code that was not inlined.
function marksOf(row, detail) {
  const marks = new Map();
  const mark = (b, text) => marks.set(b, marks.has(b) ? `${marks.get(b)} ${text}` : text);
  const lines = linesOf(detail);
  const starts = [...lines.keys()].sort((a, b) => a - b);
  const beginning = (line) => lines.get(line)?.blocks ?? [];
  const containing = (line) => beginning(starts.filter((start) => start <= line).pop());
  // Of several blocks on a line, code generation splits off the least executed.
  const coldest = (line) => {
    const least = Math.min(...beginning(line).map((b) => detail.blocks[b].count));
    return beginning(line).filter((b) => detail.blocks[b].count === least);
  };
  const branches = (b) => detail.edges.filter(([from]) => from === b).length > 1;
  for (const { superblocks, lines: done } of builtOf(row)) {
    (superblocks ?? []).forEach((blocks, at) => blocks.forEach((b) => mark(b, `${MARKS.superblock[0]}${at + 1}`)));
    const each = (kind, blocksOf, applies) => {
      const blocks = (done?.[kind] ?? []).flatMap(blocksOf).filter(applies);
      new Set(blocks).forEach((b) => mark(b, MARKS[kind][0]));
    };
    each("if_converted", containing, branches);
    each("selects_to_branches", containing, () => true);
    each("split", coldest, () => true);
  }
  return marks;
}

/// What the marks of a function's graph mean.
function marksLegend(marks) {
  const used = [...marks.values()].join("");
  const meanings = Object.values(MARKS).filter(([sign]) => used.includes(sign)).map(([, meaning]) => meaning);
  return meanings.length > 0 && h("p.count", {}, `Above blocks: ${meanings.join("; ")}.`);
}

function buildOf(row) {
  if (!DATA.summary) return null;
  const built = builtOf(row);
  return h("section", {}, h("h3", {}, "What the build did with it"),
    built.length === 0 && note("The build has no remarks on it: it was not compiled, or under another name."),
    built.map((each) => [each.file && h("p.count", {}, `${each.file}${each.line ? `:${each.line}` : ""}`),
      h("ul.remarks", {}, each.remarks.map((remark) => h("li", {}, h(remark.done ? "span.yes" : "span.no", {}, remark.done ? "✓ " : "✗ "), remark.text)),
        each.done.inlined > 0 && h("li", {}, h("span.yes", {}, "✓ "), `${each.done.inlined} calls inlined into it`))]));
}

function showBuild(main) {
  const { summary } = DATA;
  const { totals } = summary;
  const fact = (name, value) => value > 0 && h("div", {}, h("dt", {}, name), h("dd", {}, grouped(value)));
  const byName = new Map();
  DATA.functions.forEach((row, at) => { const name = row.linkage ?? row.name; if (!byName.has(name)) byName.set(name, at); });
  const share = (each) => DATA.functions[byName.get(each.function)]?.share;
  const number = (name, title, of) => ({ name, title, key: of, cell: (each) => (of(each) > 0 ? grouped(of(each)) : "") });
  const search = h("input", { type: "search", id: "search", placeholder: "Search functions  (/)", "aria-label": "Search functions", autocomplete: "off", oninput: () => table.where((each) => each.function.toLowerCase().includes(search.value.toLowerCase())) });
  const isUsed = (column) => column.left || column.name === "share" || summary.functions.some((each) => column.key(each) > 0);
  const table = new Table({
    rows: summary.functions, label: "functions", sort: 0,
    columns: [
      { name: "share", title: "Share of all executed IR instructions", key: share, cell: (each) => (share(each) === undefined ? "" : percent(share(each))) },
      { name: "function", title: "Name", left: true, key: (each) => each.function, cell: (each) => (byName.has(each.function) ? functionLink(byName.get(each.function)) : each.function) },
      { name: "profile", title: "What became of the profile", left: true, narrow: true, key: (each) => each.treatment ?? "", cell: (each) => TREATMENTS[each.treatment] ?? "" },
      number("superblocks", "Superblocks formed", (each) => each.done.superblocks),
      number("copied", "IR instructions copied for superblocks", (each) => each.done.copied),
      number("declined", "Joins that were not copied", (each) => each.done.not_profitable + each.done.too_large),
      number("if-converted", "Branches that became selects", (each) => each.done.if_converted),
      number("to branches", "Selects that became branches", (each) => each.done.selects_to_branches),
      number("split off", "Blocks moved to a cold section", (each) => each.done.split),
      number("inlined", "Calls inlined into it", (each) => each.done.inlined),
    ].filter(isUsed),
  });
  show(main, h("h2", {}, "What the build did"),
    h("dl.facts", {}, Object.entries(totals.treatments).map(([name, value]) => fact(TREATMENTS[name], value)),
      fact("superblocks", totals.done.superblocks), fact("IR instructions copied", totals.done.copied),
      fact("superblocks declined: gain too small", totals.done.not_profitable), fact("superblocks declined: code too large", totals.done.too_large),
      fact("branches if-converted", totals.done.if_converted), fact("selects to branches", totals.done.selects_to_branches),
      fact("blocks split off", totals.done.split), fact("calls inlined", totals.done.inlined)),
    h("div.bar-row", {}, search), table.element);
}
