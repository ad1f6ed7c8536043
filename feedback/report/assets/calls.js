// The flame graph of called functions.
"use strict";

let redrawFlame = null;

function showCalls(main) {
  const { calls } = DATA;
  const how = calls.source === "stacks"
    ? "Made of call stacks that were rebuilt from the calls and returns of raw vectors. A burst begins in the middle of a run: callers from before it are unknown."
    : "Made of counts of calls: a function's work is divided among its callers in proportion to their calls, as gprof does. That assumes that a call costs the same wherever it is made.";
  const cut = calls.cut > 0 ? ` Recursion is cut: ${grouped(calls.cut)} ${calls.cut === 1 ? "call" : "calls"} between functions.` : "";
  const search = h("input", { type: "search", id: "search", placeholder: "Highlight  (/)", "aria-label": "Highlight functions", autocomplete: "off" });
  const details = h("p.count", { role: "status" }, "Choose a function to zoom into it; hover for numbers.");
  const box = h("div.flame", { role: "img", "aria-label": "Flame graph: the width of a function is its share of work with all that it calls" });
  const open = h("a.function", { hidden: true }, "");
  show(main, h("h2", {}, "Flame graph of calls"), h("p", {}, `${how}${cut}`),
    h("div.bar-row", {}, search, h("button", { type: "button", onclick: () => chart.resetZoom() }, "Reset"), open), details, box);
  const node = (each) => ({ name: shortName(functionName(each.function)), at: each.function, value: each.value, children: (each.children ?? []).map(node) });
  const all = sum(calls.roots.map((root) => root.value));
  const tree = { name: "all", value: all, children: calls.roots.map(node) };
  const colours = getComputedStyle(document.documentElement);
  const chart = flamegraph.default().width(Math.max(300, box.clientWidth)).cellHeight(20).minFrameSize(1).transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 250)
    .inverted(true).selfValue(false).sort((a, b) => b.value - a.value)
    .setColorMapper((frame) => (frame.highlight ? colours.getPropertyValue("--way-4") : heatOf(frame.data.at)))
    .label((frame) => `${frame.data.name}: ${percent(frame.data.value)}`)
    .tooltip(false)
    .onHover((frame) => { details.textContent = `${frame.data.at === undefined ? "all" : functionName(frame.data.at)}: ${percent(frame.data.value)} with what it calls`; })
    .onClick((frame) => {
      open.hidden = frame.data.at === undefined;
      if (frame.data.at === undefined) return;
      open.href = `#${link({ f: key(frame.data.at) })}`;
      open.textContent = `Open ${frame.data.name}`;
    });
  d3.select(box).datum(tree).call(chart);
  search.addEventListener("input", () => (search.value ? chart.search(search.value) : chart.clear()));
  redrawFlame = () => { chart.width(Math.max(300, box.clientWidth)); chart.update(); };
  main.append(callTable(calls));
}

/// The same colour for a function wherever it is.
function heatOf(at) {
  if (at === undefined) return "var(--flame-root)";
  const hash = [...key(at)].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 997, 7);
  return `hsl(${20 + (hash % 35)} ${60 + (hash % 20)}% var(--flame-light))`;
}

/// The same as a list, for those who cannot see the picture: largest first.
function callTable(calls) {
  const item = (node, depth) => h("li", {}, h("span.value", {}, percent(node.value)), " ", functionLink(node.function),
    depth < 5 && (node.children ?? []).length > 0 && h("ul.tree", {}, node.children.slice(0, 5).map((child) => item(child, depth + 1))));
  return h("details", {}, h("summary", {}, "As a list"), h("ul.tree", {}, calls.roots.slice(0, 8).map((root) => item(root, 0))));
}
