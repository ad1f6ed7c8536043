// The recording: what it is, what it supports, its totals, and the hottest paths of the program.
"use strict";

const ADVICE = {
  "weights": "branch weights and counts, which steer inlining and block layout",
  "if-conversion": "unpredictable branches become selects, and selects on long chains become branches",
  "superblocks": "code is duplicated along hot paths",
  "cold splitting": "code without samples is moved to a cold section",
  "size optimisation": "functions without samples are optimised for size",
};

function showOverview(main) {
  const o = DATA.overview;
  const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const commands = o.commands.slice(0, 6).map(([command, runs]) => h("li", {}, h("code", {}, command), runs > 1 && ` × ${runs}`));
  const hidden = o.commands.length - 6;
  show(main,
    h("h2", {}, "Recording"),
    h("ul.commands", {}, commands, hidden > 0 && h("li", {}, `and ${hidden} more commands`)),
    h("dl.facts", {},
      fact("engine", o.engines.join(", ") || "unknown"),
      !o.exact && fact("CPU time", `${o.program_cpu_seconds.toFixed(2)} s`),
      !o.exact && fact("overhead", percent(o.overhead)),
      !o.exact && fact("bursts", grouped(o.bursts)),
      fact("taken branches", short(o.taken_branches)),
      fact("anchor", o.anchor),
      o.profiles.map(([name, written]) => fact("profile", name.split("/").pop(), written !== null && h("small", {}, ` written ${new Date(written * 1000).toLocaleString()}`)))),
    h("h2", {}, "What this recording supports"),
    h("p.verdict", {}, withCode(`${o.verdict}.`)),
    !o.exact && h("ul.decisions", {}, o.decisions.map(([name, bursts, has]) => h("li", {},
      h(has ? "span.yes" : "span.no", {}, has ? "✓ supported" : `✗ from ${grouped(bursts)} bursts on`), h("strong", {}, ` ${name}`), `: ${ADVICE[name]}`))),
    h("p", {}, nextStep(o)),
    h("h2", {}, "The hottest path"),
    hottest(o),
    h("h2", {}, "Hot paths of the program"),
    hotPaths(o),
    h("h2", {}, "Coverage"),
    h("p", {}, stateBar(o.blocks), ` of ${grouped(sum(o.blocks))} blocks: `, STATES.map((state, at) => `${at > 0 ? ", " : ""}${grouped(o.blocks[at])} ${state.name}`).join("")),
    h("p", {}, `Of ${grouped(o.functions[0])} functions, ${grouped(o.functions[1])} have samples, ${grouped(o.functions[2])} are proved to have been executed at least in part, and all of ${grouped(o.functions[3])} is proved not executed.`),
    stateLegend());
}

/// What to do with the recording.
function nextStep(o) {
  const all = o.exact || o.decisions.every((decision) => decision[2]);
  const build = "Next: build with clang -O2 $(pleach flags use PROFILE) …";
  if (all) return `${build}; nothing more is gained by recording longer.`;
  if (o.bursts === 0) return "Next: record longer, with --repeat 20 or --overhead 5%.";
  const next = o.decisions.find((decision) => !decision[2]);
  const times = next[1] / o.bursts;
  return `${build}, or first record some ${times >= 10 ? grouped(times) : (Math.ceil(times * 10) / 10).toFixed(1)} times as long for ${next[0]}.`;
}

function hottest(o) {
  const [path] = o.hottest;
  if (!path) return note("No path has samples.");
  const row = DATA.functions[path.function];
  const detail = detailOf(path.function);
  const own = detail?.paths[path.path];
  return h("div.hottest", {},
    h("p", {}, h("a", { href: `#${link({ f: key(path.function), p: String(path.path) })}` }, h("strong", {}, shortName(row.name)), ` ${pathText(detail, path)}`),
      ` (${[place(row), blocksText(path)].filter(Boolean).join(", ")}) has ${percent(path.share)} of all executed IR instructions and ${percent(path.path_share[0])} (${range(path.path_share[1], path.path_share[2])}) of all path executions. `,
      own && why(detail, own)),
    h("p.count", {}, PATH_LEGEND));
}

function hotPaths(o) {
  const most = o.hottest[0]?.share ?? 0;
  const text = (path) => pathText(detailOf(path.function), path);
  return new Table({
    rows: o.hottest, label: `paths of ${grouped(o.paths)}, by share`, sort: 0,
    href: (path) => `#${link({ f: key(path.function), p: String(path.path) })}`,
    columns: [
      { name: "share", title: "Share of all executed IR instructions", key: (p) => p.share, cell: (p) => [shareBar(p.share, most), percent(p.share)] },
      { name: "function", title: "Name", left: true, key: (p) => functionName(p.function), cell: (p) => functionLink(p.function, shortName(functionName(p.function))) },
      { name: "path", title: PATH_LEGEND, left: true, key: text, cell: (p) => h("a", { href: `#${link({ f: key(p.function), p: String(p.path) })}`, title: blocksText(p) }, text(p)) },
      { name: "path share", title: "Share of the executions of all paths", key: (p) => p.path_share[0], cell: (p) => percent(p.path_share[0]) },
      { name: "90 % interval", title: "Of the path share; sorted by its width", key: (p) => p.path_share[2] - p.path_share[1], cell: (p) => range(p.path_share[1], p.path_share[2]) },
    ],
  }).element;
}
