// Views, keyboard, light and dark. This runs last.
"use strict";

const VIEWS = [
  { key: "overview", name: "Overview", show: showOverview },
  { key: "functions", name: "Functions", show: showFunctions },
  { key: "calls", name: "Calls", show: showCalls },
  { key: "coverage", name: "Coverage", show: showCoverage },
  { key: "build", name: "Build", show: showBuild, has: () => DATA.summary },
  { key: "against", name: "Changes", show: showAgainst, has: () => DATA.against },
];

/// Where each state was scrolled to, so that Back returns there.
const scrolled = new Map();
let current = null;

function render() {
  const at = state();
  const main = document.getElementById("content");
  if (current !== null) scrolled.set(current, window.scrollY);
  current = location.hash;
  redrawFlame = null;
  const found = at.f === undefined ? undefined : byKey.get(at.f);
  const view = at.f === undefined ? VIEWS.find((each) => each.key === at.v) ?? VIEWS[0] : VIEWS[1];
  if (at.f !== undefined && found === undefined) show(main, h("h2", {}, "Not in the profile"), note(`No function ${at.f}.`));
  else if (found !== undefined) showFunction(main, found, at);
  else if (view.has && !view.has()) showOverview(main);
  else view.show(main, at);
  for (const tab of document.querySelectorAll("#views a")) {
    if (tab.dataset.view === view.key) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  const title = document.getElementById("title").textContent;
  document.title = `${found === undefined ? view.name : shortName(functionName(found))} – ${title} – pleach`;
  if (at.line === undefined) window.scrollTo(0, scrolled.get(current) ?? 0);
}

/// A choice of light or dark that is kept, where the browser lets pages of files keep anything.
const kept = {
  read() { try { return localStorage.getItem("pleach-theme"); } catch { return null; } },
  write(value) { try { localStorage.setItem("pleach-theme", value); } catch { /* It lasts until the page is closed. */ } },
};

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.querySelector("#theme span").textContent = theme;
}

const KEYS = [
  ["/", "search"], ["j, ↓ / k, ↑", "next and previous row"], ["Enter", "open it"], ["Esc", "leave the search; leave a function"],
  ["1 – 6", "views"], ["?", "this help"],
];

function help() {
  const dialog = document.getElementById("help");
  dialog.replaceChildren(h("h2", { id: "help-title" }, "Keyboard and signs"),
    h("table", {}, h("tbody", {}, KEYS.map(([name, what]) => h("tr", {}, h("td.left", {}, h("kbd", {}, name)), h("td.left", {}, what))))),
    stateLegend(),
    h("p", {}, PATH_LEGEND),
    h("p", {}, "Shares are of executed IR instructions unless a column says otherwise. In graphs, the fill of a block is its share of the function's work, its frame its state, the width of an edge its executions; dashed edges are back edges; ↯ is the share of mispredicted executions; ☎ a call; ⚠ begins exception handling."),
    h("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  dialog.showModal();
}

/// Moves the focus to the next or previous row of a table or list.
function move(step) {
  const rows = [...document.querySelectorAll("main tr[data-href] a.function, main tr[data-href] td.file a, main button.path")].filter((each) => each.offsetParent !== null);
  if (rows.length === 0) return;
  const at = rows.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  rows[next].focus();
  rows[next].scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
  const typing = event.target.matches?.("input");
  const actions = {
    "/": () => document.getElementById("search")?.focus(),
    "?": help,
    "j": () => move(1), "k": () => move(-1), "ArrowDown": () => move(1), "ArrowUp": () => move(-1),
    "Escape": () => { if (state().f !== undefined) history.length > 1 ? history.back() : go({ v: "functions" }); },
  };
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); event.target.blur(); move(1); }
    return;
  }
  // Arrows scroll boxes that have the focus.
  if (event.key.startsWith("Arrow") && event.target.matches?.(".graph-scroll, .source-scroll, .assembly-scroll")) return;
  const shown = VIEWS.filter((view) => !view.has || view.has());
  if (/^[1-9]$/.test(event.key) && shown[event.key - 1]) go({ v: shown[event.key - 1].key });
  else if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
}

async function begin() {
  setTheme(kept.read() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    kept.write(next);
    setTheme(next);
  });
  document.getElementById("help-button").addEventListener("click", help);
  DATA = await unpack();
  document.getElementById("data").remove();
  nameFunctions();
  document.getElementById("views").replaceChildren(...VIEWS.filter((view) => !view.has || view.has()).map((view) =>
    h("a", { href: `#${link({ v: view.key })}`, "data-view": view.key }, view.name)));
  window.addEventListener("hashchange", render);
  window.addEventListener("resize", () => redrawFlame?.());
  document.addEventListener("keydown", onKey);
  history.scrollRestoration = "manual";
  render();
  document.documentElement.dataset.ready = "";
}

begin().catch((error) => {
  document.getElementById("content").replaceChildren(h("p.note", { role: "alert" }, `The report cannot be shown: ${error.message}. It needs a browser from 2023 on.`));
});
