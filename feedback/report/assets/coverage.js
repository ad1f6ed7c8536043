// Coverage by folder and file, and the source of a file.
"use strict";

function showCoverage(main, at) {
  const file = at.file === undefined ? undefined : DATA.files.files.find((each) => each.path === at.file);
  if (file) showFile(main, file, Number(at.line ?? 0));
  else showFolders(main, at);
}

const addStates = (all) => STATES.map((_, at) => sum(all.map((states) => states[at])));

/// Folders with their files. The part of the path that all files have in common is left out.
function folders() {
  const { files } = DATA.files;
  const groups = new Map();
  for (const file of files) {
    const folder = file.path.includes("/") ? file.path.slice(0, file.path.lastIndexOf("/")) : "";
    groups.set(folder, [...(groups.get(folder) ?? []), file]);
  }
  return [...groups].map(([folder, inside]) => ({ folder, files: inside, blocks: addStates(inside.map((file) => file.blocks)) }));
}

function coverageCells(what) {
  const all = sum(what.blocks);
  const lines = what.lines && sum(what.lines);
  return [
    h("td", {}, stateBar(what.blocks)),
    h("td", {}, `${all > 0 ? ((100 * what.blocks[0]) / all).toFixed(1) : "–"} %`, h("span.of", {}, ` ${what.blocks[0]}/${all}`)),
    h("td", {}, what.lines ? `${((100 * what.lines[0]) / Math.max(1, lines)).toFixed(1)} %` : "", what.lines && h("span.of", {}, ` ${what.lines[0]}/${lines}`)),
    STATES.slice(1).map((_, at) => h("td", {}, grouped(what.blocks[at + 1]))),
  ];
}

function showFolders(main, at) {
  const search = h("input", { type: "search", id: "search", placeholder: "Search files  (/)", "aria-label": "Search files", autocomplete: "off", oninput: () => { amend({ q: search.value }); draw(); } });
  search.value = at.q ?? "";
  const body = h("tbody", {});
  const heads = ["", "blocks executed", "lines executed", "predicted only", "not executed", "unknown"];
  function draw() {
    const wanted = search.value.toLowerCase();
    body.replaceChildren(...folders().flatMap(({ folder, files }) => {
      const found = files.filter((file) => file.path.toLowerCase().includes(wanted));
      if (found.length === 0) return [];
      const lines = found.filter((file) => file.lines).map((file) => file.lines);
      const whole = { blocks: addStates(found.map((file) => file.blocks)), lines: lines.length > 0 ? addStates(lines) : undefined };
      return [
        h("tr.folder", {}, h("th.left", { scope: "rowgroup" }, folder || "(directory unknown)"), coverageCells(whole)),
        ...found.map((file) => h("tr", { "data-href": `#${link({ v: "coverage", file: file.path })}` },
          h("td.left.file", {}, h("a", { href: `#${link({ v: "coverage", file: file.path })}` }, file.path.split("/").pop())), coverageCells(file))),
      ];
    }));
  }
  draw();
  show(main, h("h2", {}, "Coverage by file"), h("div.bar-row", {}, search), stateLegend(),
    h("div.scroll", {}, h("table", { "aria-label": "Coverage by file" }, h("thead", {}, h("tr", {}, h("th.left", { scope: "col" }, "file"), heads.map((name) => h("th", { scope: "col" }, name)))), body)),
    DATA.files.unknown > 0 && note(`${grouped(DATA.files.unknown)} functions have no known source file: they were never sampled, and no binary with debug information was given.`));
}

function showFile(main, file, line) {
  const known = new Map(file.counts?.map((each) => [each[0], each]) ?? []);
  const most = Math.max(1, ...[...known.values()].map((each) => each[1]));
  const text = file.text?.replace(/\n$/, "").split("\n");
  const numbers = text ? text.map((_, at) => at + 1) : [...known.keys()];
  const row = (number) => {
    const [, count, state] = known.get(number) ?? [];
    return sourceRow(number, text?.[number - 1] ?? "", known.has(number) ? [count, state] : null, most, known.has(number) ? { missed: 0, watched: 0 } : null);
  };
  const position = DATA.files.files.indexOf(file);
  const inside = DATA.functions.map((each, at) => [each, at]).filter(([each]) => each.file === position).sort((a, b) => (a[0].line ?? 0) - (b[0].line ?? 0));
  const body = h("tbody", {});
  show(main,
    h("p.crumbs", {}, h("a", { href: `#${link({ v: "coverage" })}` }, "Coverage"), ` › ${file.path}`),
    h("h2", {}, file.path.split("/").pop()),
    h("p", {}, stateBar(file.blocks), ` ${file.blocks[0]} of ${sum(file.blocks)} blocks proved executed`, file.lines && `, ${file.lines[0]} of ${sum(file.lines)} lines`),
    h("details", {}, h("summary", {}, `${inside.length} functions`), h("ul.list", {}, inside.map(([each, at]) => h("li", {}, h("span.value", {}, percent(each.share)), " ", functionLink(at), each.line && h("small", {}, ` line ${each.line}`))))),
    !text && note(`No text: ${file.missing ?? "not found"}.`),
    stateLegend(),
    h("div.source.whole", {}, h("table.code", { "aria-label": `Source of ${file.path}` }, h("thead.hidden", {}, h("tr", {}, ["line", "executions", "state", "mispredicted", "text"].map((name) => h("th", { scope: "col" }, name)))), body)));
  // Rows of large files are made in pieces, so that the page stays responsive.
  let next = 0;
  const piece = () => {
    if (!body.isConnected) return;
    body.append(...numbers.slice(next, next + 2000).map(row));
    next += 2000;
    if (line > 0 && next >= numbers.findIndex((number) => number >= line)) {
      body.querySelector(`[data-line="${line}"]`)?.scrollIntoView({ block: "center" });
      body.querySelector(`[data-line="${line}"]`)?.classList.add("selected");
      line = 0;
    }
    if (next < numbers.length) setTimeout(piece);
  };
  piece();
}
