// The list of functions.
"use strict";

/// Whether all words of a search are in a function's name, linkage name or file.
function matcher(search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return () => true;
  const texts = new Map();
  return (row) => {
    if (!texts.has(row)) {
      const file = row.file === undefined ? "" : DATA.files.files[row.file].path;
      texts.set(row, `${row.name} ${row.linkage ?? ""} ${file}`.toLowerCase());
    }
    return words.every((word) => texts.get(row).includes(word));
  };
}

const covered = (row) => (sum(row.states) > 0 ? row.states[0] / sum(row.states) : 0);

function functionColumns() {
  const most = DATA.functions[0]?.share ?? 0;
  const columns = [
    { name: "share", title: "Share of all executed IR instructions", key: (row) => row.share, cell: (row) => [shareBar(row.share, most), percent(row.share)] },
    { name: "function", title: "Name", left: true, key: (row) => row.name, cell: (row) => functionLink(positionOf(row)) },
    { name: "place", title: "Source file and line", left: true, narrow: true, key: place, cell: (row) => place(row) },
    { name: "path share", title: "Share of the executions of all paths", key: (row) => row.path_share?.[0], cell: (row) => (row.path_share ? percent(row.path_share[0]) : "") },
    { name: "90 % interval", title: "90 % interval of the path share; sorted by its width", key: (row) => row.path_share && row.path_share[2] - row.path_share[1], cell: (row) => (row.path_share ? range(row.path_share[1], row.path_share[2]) : "") },
    { name: callsName(), title: "Executions of the entry; of a sampled profile as a share of the calls of all functions", key: (row) => row.calls, cell: callsOf },
    { name: "paths", title: "Paths with samples", key: (row) => row.paths, cell: (row) => grouped(row.paths) },
    { name: "mispredicted", title: "Mispredicted share of its branches", key: (row) => row.mispredicted, cell: (row) => (row.mispredicted === undefined ? "" : percent(row.mispredicted)) },
    { name: "coverage", title: "Share of blocks that are proved to have been executed", key: covered, cell: (row) => [stateBar(row.states), h("span.of", {}, ` ${row.states[0]}/${sum(row.states)}`)] },
  ];
  if (!DATA.functions.some((row) => row.mispredicted !== undefined)) columns.splice(columns.findIndex((column) => column.name === "mispredicted"), 1);
  return columns;
}

function showFunctions(main, at) {
  const columns = functionColumns();
  const sort = Math.max(0, columns.findIndex((column) => column.name === at.sort));
  const only = h("input", { type: "checkbox", id: "executed-only", onchange: () => { amend({ all: only.checked ? undefined : "1" }); apply(); } });
  only.checked = at.all === undefined;
  const search = h("input", {
    type: "search", id: "search", placeholder: "Search functions and files  (/)", "aria-label": "Search functions and files",
    autocomplete: "off", oninput: () => { amend({ q: search.value }); apply(); },
  });
  search.value = at.q ?? "";
  const table = new Table({
    rows: DATA.functions, columns, label: "functions", sort, down: at.up === undefined,
    href: (row) => `#${link({ f: key(positionOf(row)) })}`,
    onsort: (to, down) => amend({ sort: to === 0 ? undefined : columns[to].name, up: down ? undefined : "1" }),
  });
  function apply() {
    const matches = matcher(search.value);
    table.where((row) => (!only.checked || row.share > 0) && matches(row));
  }
  apply();
  show(main,
    h("h2", {}, "Functions by share"),
    h("div.bar-row", {}, search, h("label", { for: "executed-only" }, only, " only with executions")),
    stateLegend(),
    table.element);
}
