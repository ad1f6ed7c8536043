// What is shown is in the URL's fragment, so that links and Back work: `#f=name`, `#v=functions&q=text`.
"use strict";

const routes = new Map();

/// The fragment of a state.
function link(state) {
  const entries = Object.entries(state).filter(([, value]) => value !== undefined && value !== "");
  return entries.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}

function state() {
  const parts = location.hash.slice(1).split("&").filter((part) => part.includes("="));
  return Object.fromEntries(parts.map((part) => {
    const at = part.indexOf("=");
    try {
      return [part.slice(0, at), decodeURIComponent(part.slice(at + 1))];
    } catch {
      return [part.slice(0, at), ""];
    }
  }));
}

/// Shows another state, as a new entry of the history.
function go(next) {
  location.hash = link(next);
}

/// Changes a part of the state that Back should not undo step by step, such as a search.
function amend(changes) {
  const next = link({ ...state(), ...changes });
  history.replaceState(null, "", next ? `#${next}` : location.pathname + location.search);
}

/// The name of a function in fragments: its linkage name, and its identifier where several have that.
let keys = null;
let byKey = null;

function nameFunctions() {
  const linkage = (row) => row.linkage ?? row.name;
  const seen = new Map();
  DATA.functions.forEach((row) => seen.set(linkage(row), (seen.get(linkage(row)) ?? 0) + 1));
  keys = DATA.functions.map((row) => seen.get(linkage(row)) === 1 ? linkage(row) : `${linkage(row)}@${row.id}@${row.hash}`);
  byKey = new Map(keys.map((name, at) => [name, at]));
  // A link with the plain name of several functions leads to the hottest.
  DATA.functions.forEach((row, at) => {
    for (const name of [linkage(row), row.name]) if (!byKey.has(name)) byKey.set(name, at);
  });
}

const key = (at) => keys[at];
