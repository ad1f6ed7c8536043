// One function: why it is hot, its paths over its graph, its source, its loops, callers and calls, its machine code.
"use strict";

const FIRST_PATHS = 8;

function showFunction(main, at, state) {
  const row = DATA.functions[at];
  const head = [
    h("p.crumbs", {}, h("a", { href: `#${link({ v: "functions" })}` }, "Functions"), ` › ${place(row)}`),
    h("h2.name", {}, row.name),
    row.linkage && h("p.linkage", {}, row.linkage),
  ];
  if (row.detail === undefined) {
    show(main, head, facts(row, null), buildOf(row),
      note(row.share > 0 ? "Not shown in detail: --top shows more functions." : "No executions are known: there are no counts to draw."));
    return;
  }
  const detail = DATA.details[row.detail];
  const view = new FunctionView(detail, row, state);
  show(main, head, view.elements);
  view.begin();
}

function facts(row, detail) {
  const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return h("dl.facts", {},
    fact("share of IR instructions", percent(row.share)),
    row.path_share && fact("share of path executions", percent(row.path_share[0]), h("small", {}, ` ${range(row.path_share[1], row.path_share[2])}`)),
    fact(callsName(), callsOf(row)),
    fact("paths", grouped(row.paths)),
    detail && row.mispredicted !== undefined && fact("mispredicted", percent(row.mispredicted)),
    fact("blocks", stateBar(row.states), h("small", {}, STATES.map((state, at) => row.states[at] > 0 && ` ${state.sign} ${row.states[at]} ${state.name}`))));
}

class FunctionView {
  constructor(detail, row, state) {
    this.detail = detail;
    this.row = row;
    this.chosen = new Set((state.p ?? (detail.paths.length > 0 ? "0" : "")).split(",").filter(Boolean).map(Number).filter((p) => detail.paths[p]));
    this.hovered = null;
    const marks = marksOf(row, detail);
    this.graph = new Graph(detail, (b) => this.select(b === null ? [] : [b], "graph"), marks);
    this.source = new Source(detail, (line) => this.select(this.source.blocks(line), "source"));
    this.assembly = new AssemblyView(detail, (b) => this.select([b], "assembly"));
    this.info = h("div.info", { "aria-live": "polite" }, h("p.count", {}, "Choose a block or a line: it is marked in graph, source and assembly."));
    this.explained = h("p.why", {});
    const sourceButton = h("button", { type: "button", id: "toggle-source", "aria-pressed": "true", onclick: () => this.toggleSource() }, "Source");
    this.sourceButton = sourceButton;
    this.sides = h(this.source.rows.size > 0 ? "div.sides" : "div.sides.without-source", {}, this.graph.element, this.source.element);
    sourceButton.hidden = this.source.rows.size === 0;
    this.elements = [
      facts(row, detail),
      this.explained,
      h("div.columns", {}, this.paths(), h("div", {}, this.info)),
      h("div.bar-row", {}, h("h3", {}, "Control flow"), sourceButton, sourceButton.hidden && h("span.count", {}, "No source lines: build with -g, and name the program with --binary.")),
      this.sides,
      stateLegend(),
      marksLegend(marks),
      this.assembly.element,
      this.loops(),
      h("div.columns", {}, this.callers(), this.called()),
      buildOf(row),
    ].filter(Boolean);
  }

  begin() {
    this.graph.place();
    this.drawWays();
    const [hottest] = [...this.chosen].sort((a, b) => a - b);
    if (hottest !== undefined) this.source.show(this.detail.paths[hottest].blocks);
  }

  toggleSource() {
    const hidden = this.sides.classList.toggle("without-source");
    this.sourceButton.setAttribute("aria-pressed", String(!hidden));
  }

  paths() {
    const { paths } = this.detail;
    if (paths.length === 0) return h("section", {}, h("h3", {}, "Paths"), note("No paths with samples."));
    this.pathRows = paths.map((path, at) => this.pathRow(path, at));
    const list = h("ul.paths", {}, this.pathRows.slice(0, FIRST_PATHS));
    const hidden = this.pathRows.length - FIRST_PATHS;
    const more = h("button.more", { type: "button", onclick: () => { list.append(...this.pathRows.slice(FIRST_PATHS)); more.remove(); } }, `Show ${hidden} more`);
    const left = this.row.paths - paths.length;
    return h("section", {}, h("h3", { title: PATH_LEGEND }, "Hottest paths"),
      h("p.count", {}, "shares of the function's IR instructions and of its path executions; choose several to see them in the graph"),
      list, hidden > 0 && more, left > 0 && note(`${grouped(left)} rarer paths are not listed.`));
  }

  pathRow(path, at) {
    const [share, low, high] = path.share;
    const button = h("button.path", {
      type: "button", "data-path": at, "aria-pressed": String(this.chosen.has(at)),
      "aria-label": `Path ${pathLetter(at)}, ${percent(share)}, blocks ${path.blocks.join(" ")}`,
      title: `${blocksText(path)}\n${PATH_LEGEND}`,
      onclick: () => this.togglePath(at), onmouseenter: () => this.hover([at]), onmouseleave: () => this.hover(null),
      onfocus: () => this.hover([at]), onblur: () => this.hover(null),
    }, h(`span.letter.way-${at % PATH_COLOURS}`, {}, pathLetter(at)),
    h("span.value", {}, percent(path.work)), h("span.value", {}, percent(share)), h("span.interval", {}, range(low, high)), h("span.way-text", {}, pathText(this.detail, path)));
    return h("li", {}, button);
  }

  togglePath(at) {
    if (!this.chosen.delete(at)) this.chosen.add(at);
    amend({ p: [...this.chosen].sort((a, b) => a - b).join(",") || undefined });
    this.pathRows[at].firstChild.setAttribute("aria-pressed", String(this.chosen.has(at)));
    this.drawWays();
    if (this.chosen.has(at)) this.graph.show(this.detail.paths[at].blocks[0]);
  }

  hover(paths) {
    this.hovered = paths;
    this.drawWays();
  }

  drawWays() {
    const all = [...new Set([...this.chosen, ...(this.hovered ?? [])])].sort((a, b) => a - b);
    this.graph.ways(all.map((at) => ({ path: this.detail.paths[at], at })));
    const shown = this.hovered?.[0] ?? [...this.chosen].sort((a, b) => a - b)[0];
    const path = shown === undefined ? null : this.detail.paths[shown];
    this.explained.replaceChildren(...(path
      ? [h("strong", {}, shown === 0 ? "The hottest path" : `Path ${pathLetter(shown)}`), ` (${blocksText(path)}) has ${percent(path.share[0])} of the function's path executions and ${percent(path.work)} of its IR instructions. ${why(this.detail, path)}`]
      : ["Choose a path to see it in the graph, and why it is hot."]));
  }

  /// Marks blocks in graph, source and assembly.
  select(blocks, from) {
    this.graph.select(blocks);
    this.source.select(blocks, from !== "source");
    this.assembly.select(blocks);
    if (from !== "graph" && blocks.length > 0) this.graph.show(blocks[0]);
    this.info.replaceChildren(...(blocks.length === 0
      ? [h("p.count", {}, "Choose a block or a line: it is marked in graph, source and assembly.")]
      : blocks.slice(0, 4).map((b) => blockInfo(this.detail, b))));
  }

  loops() {
    if (this.detail.loops.length === 0) return null;
    const item = (window, depth) => h("li", {},
      h("button.path", {
        type: "button", "aria-label": `Path ${pathLetter(window.path)}, ${percent(window.share)}`,
        onclick: () => { if (!this.chosen.has(window.path)) this.togglePath(window.path); },
        onmouseenter: () => this.hover([window.path]), onmouseleave: () => this.hover(null),
      },
      h("span.value", {}, percent(window.share)),
      h(`span.letter.way-${window.path % PATH_COLOURS}`, {}, pathLetter(window.path)),
      shareBar(window.share, 1),
      h("span.way-text", {}, `${depth > 0 ? "then " : ""}${pathText(this.detail, this.detail.paths[window.path])}`)),
      window.next.length > 0 && h("ul.tree", {}, window.next.slice(0, 6).map((next) => item(next, depth + 1))));
    return h("section", {}, h("h3", {}, "Where loops spend their iterations, by history"),
      h("p.count", {}, "Each path with its share of the iterations that follow the paths above it (k-iteration paths)."),
      this.detail.loops.map((loop) => h("details.loop", { open: this.detail.loops.length < 4 },
        h("summary", {}, `Loop at block ${loop.head}${this.detail.blocks[loop.head].line ? `, line ${this.detail.blocks[loop.head].line}` : ""}: ${DATA.overview.exact ? `${short(loop.iterations)} iterations` : oftenInWords(loop.iterations)}`),
        h("ul.tree", {}, loop.windows.slice(0, 8).map((window) => item(window, 0))))));
  }

  callers() {
    const all = sum(this.detail.callers.map((caller) => caller[1]));
    const callers = this.detail.callers.map(([at, count]) => h("li", {}, h("span.value", {}, percent(all > 0 ? count / all : 0)), " ", functionLink(at), DATA.overview.exact && h("small", {}, ` ${short(count)} calls`)));
    const before = this.detail.called.map((called) => h("li", {},
      h("span.value", {}, often(called.count)), " ",
      called.caller === null || called.caller === undefined ? "unknown" : functionLink(called.caller, shortName(functionName(called.caller))),
      ` ${beforeText(called)} ☎ path ${pathLetter(called.path)}`));
    return h("section", {}, h("h3", {}, "Callers"), callers.length > 0 ? h("ul.list", {}, callers) : note("No call of it was counted."),
      before.length > 0 && [h("h4", {}, "Paths, by what the caller executed before"), h("ul.list", {}, before)]);
  }

  called() {
    const sums = new Map();
    this.detail.blocks.forEach((block) => (block.calls ?? []).forEach((call) => {
      if (call.to === null) return;
      const known = sums.get(call.to) ?? { count: 0, indirect: call.indirect };
      known.count += call.count;
      sums.set(call.to, known);
    }));
    const calls = [...sums].filter(([, call]) => call.count > 0).sort((a, b) => b[1].count - a[1].count).slice(0, 20);
    return h("section", {}, h("h3", {}, "Calls"), calls.length > 0
      ? h("ul.list", {}, calls.map(([at, call]) => h("li", {}, h("span.value", {}, often(call.count)), " ", functionLink(at), call.indirect && h("small", {}, " indirect"))))
      : note("It calls no function of the profile."));
  }
}

/// What a caller executed before a call.
function beforeText(called) {
  const detail = called.caller === null || called.caller === undefined ? null : detailOf(called.caller);
  const steps = detail ? stepsOf(detail, called.before) : [];
  return (steps.length > 0 ? steps : called.before).join(" → ");
}

function blockInfo(detail, b) {
  const block = detail.blocks[b];
  const out = detail.edges.filter((edge) => edge[0] === b);
  const leaving = sum(out.map((edge) => edge[2]));
  const missed = block.mispredicted;
  return h("section.block-info", {}, h("h3", {}, `Block ${b}`),
    h("p", {}, `${oftenInWords(block.count, block.at_least)} – ${COVERED[block.covered]}. ${block.instructions} IR instructions${block.line ? `, from line ${block.line} on` : ""}, ends in ${block.end}.`),
    missed && h("p", {}, `Its branch is mispredicted in ${percent(missed[0] / missed[2])} of its executions (at least ${percent(missed[1] / missed[2])}).`),
    out.length > 0 && h("ul.list", {}, out.map(([, to, count, back]) => h("li", {}, `→ block ${to}${back ? " (back edge)" : ""}: ${often(count)}${leaving > 0 ? `, ${percent(count / leaving)}` : ""}`))),
    block.calls?.length > 0 && h("ul.list", {}, block.calls.map((call) => h("li", {}, "☎ ", call.to === null ? (call.indirect ? "an indirect call without known targets" : "a function that is not in the profile") : functionLink(call.to), call.indirect && call.to !== null && h("small", {}, " indirect"), ` ${often(call.count)}`))),
    block.lengths?.length > 0 && h("p", {}, `Lengths of the memory operation: ${block.lengths.map(([length, share]) => `${length} bytes ${percent(share)}`).join(", ")}`),
    block.divisors?.length > 0 && h("p", {}, `Divides by: ${block.divisors.map(([divisor, share]) => `${divisor} ${percent(share)}`).join(", ")}`));
}
