// Source lines with counts: of a function beside its graph, and of whole files.
"use strict";

/// Lines before the first and after the last with a block.
const AROUND = 3;

/// The certainty of states, for lines with several blocks: executed, predicted, unknown, not executed.
const CERTAINTY = [0, 1, 3, 2];

/// The lines on which blocks of a function begin: number → { count, state, blocks, missed }.
function linesOf(detail) {
  const lines = new Map();
  detail.blocks.forEach((block, b) => {
    if (block.line === 0) return;
    const line = lines.get(block.line) ?? { count: 0, state: 2, blocks: [], missed: 0, watched: 0 };
    line.count = Math.max(line.count, block.count);
    line.state = CERTAINTY.find((state) => state === line.state || state === block.state);
    line.blocks.push(b);
    if (block.mispredicted) {
      line.missed += block.mispredicted[0];
      line.watched += block.mispredicted[2];
    }
    lines.set(block.line, line);
  });
  return lines;
}

class Source {
  /// `onselect(line)` is called when a line is chosen.
  constructor(detail, onselect) {
    this.lines = linesOf(detail);
    this.starts = [...this.lines.keys()].sort((a, b) => a - b);
    this.rows = new Map();
    const row = DATA.functions[detail.function];
    const file = row.file === undefined ? null : DATA.files.files[row.file];
    if (this.starts.length === 0 || !file) {
      this.element = h("div.source", {}, note("No source lines: build with -g, and name the program with --binary."));
      return;
    }
    const doubtful = new Map((file.counts ?? []).map((line) => [line[0], line[2]]));
    const text = file.text?.split("\n");
    const first = Math.max(1, this.starts[0] - AROUND);
    const last = this.starts[this.starts.length - 1] + AROUND;
    const numbers = text ? Array.from({ length: Math.min(last, text.length) - first + 1 }, (_, at) => first + at) : this.starts;
    const most = Math.max(1, ...[...this.lines.values()].map((line) => line.count));
    const whole = sum(detail.blocks.map((block) => block.count));
    const body = numbers.map((number) => {
      const line = this.lines.get(number);
      // Of a line with code of other blocks, the whole file knows more.
      if (line?.state === 2 && doubtful.get(number) === 3) line.state = 3;
      const element = sourceRow(number, text?.[number - 1] ?? "", line && [line.count, line.state, whole], most, line);
      element.addEventListener("click", () => onselect(number));
      this.rows.set(number, element);
      return element;
    });
    this.element = h("div.source", {},
      h("div.bar-row", {}, h("a", { href: `#${link({ v: "coverage", file: file.path, line: this.starts[0] })}`, title: file.path }, file.path.split("/").pop()),
        h("span.count", {}, text ? "" : ` – no text: ${file.missing ?? "not found"}`)),
      h("div.source-scroll", { tabindex: "0", "aria-label": "Source, scrolls" },
        h("table.code", { "aria-label": "Source lines" },
          h("thead.hidden", {}, h("tr", {}, ["line", "executions", "state", "mispredicted", "text"].map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", {}, body))));
  }

  /// The line on which the block of a line begins.
  start(number) {
    return this.starts.filter((start) => start <= number).pop();
  }

  blocks(number) {
    return this.lines.get(this.start(number))?.blocks ?? [];
  }

  /// Scrolls to the hottest line of blocks.
  show(blocks) {
    const lines = this.starts.filter((start) => this.lines.get(start).blocks.some((b) => blocks.includes(b)));
    const hottest = lines.sort((a, b) => this.lines.get(b).count - this.lines.get(a).count)[0];
    if (hottest !== undefined) keepInView(this.rows.get(hottest));
  }

  /// Marks the lines of blocks: from where they begin to before the next line on which a block begins.
  select(blocks, scroll) {
    const chosen = new Set(this.starts.filter((start) => this.lines.get(start).blocks.some((b) => blocks.includes(b))));
    let first = null;
    for (const [number, row] of this.rows) {
      const is = chosen.has(this.start(number));
      row.classList.toggle("selected", is);
      if (is && !first) first = row;
    }
    if (first && scroll) keepInView(first);
  }
}

/// Scrolls only the nearest box, so that the page stays where it is.
function keepInView(element) {
  const box = element.closest(".source-scroll, .graph-scroll, .assembly-scroll");
  if (!box) return;
  const [inner, outer] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.top < outer.top + 20 || inner.bottom > outer.bottom - 20) {
    box.scrollTop += inner.top - outer.top - outer.height / 3;
  }
}

/// `known`: count, state, and the whole that the count is shown as a share of.
function sourceRow(number, text, known, most, line) {
  const [count, at, whole] = known ?? [0, null];
  const state = at === null ? null : STATES[at];
  const heat = known && count > 0 ? Math.sqrt(count / most) : 0;
  const missed = line && line.watched > 0 && line.missed / line.watched >= 0.005
    ? h("span", { title: `mispredicted in ${percent(line.missed / line.watched)} of executions` }, `↯ ${((line.missed / line.watched) * 100).toFixed(1)} %`) : "";
  return h(`tr${state ? `.${state.key}` : ""}${line ? ".begins" : ""}`, { "data-line": number },
    h("td.number", {}, String(number)),
    h("td.count", { style: `--share:${heat.toFixed(3)}`, title: known ? oftenInWords(count) : undefined }, known ? (count > 0 || at === 2 ? often(count, 0, whole) : "") : ""),
    h("td.sign", {}, state ? h(`span.sign.${state.key}`, { title: state.title, role: "img", "aria-label": state.name }, state.sign) : ""),
    h("td.missed", {}, missed),
    h("td.text", {}, h("code", {}, text)));
}
