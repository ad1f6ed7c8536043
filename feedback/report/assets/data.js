// The data of the page: unpacked once, then read only. Numbers as text.
"use strict";

let DATA = null;

/// Unpacks the page's data: JSON, compressed, in base64.
async function unpack() {
  const text = document.getElementById("data").textContent;
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const STATES = [
  { key: "executed", name: "executed", sign: "●", title: "proved to have been executed" },
  { key: "predicted", name: "predicted only", sign: "◐", title: "only predicted: shadow execution passed it" },
  { key: "never", name: "not executed", sign: "○", title: "proved not executed" },
  { key: "unknown", name: "unknown", sign: "?", title: "unknown: it may have been executed" },
];

const COVERED = {
  "proved": "executed: a recorded branch passed it",
  "hit": "executed: a breakpoint was hit",
  "by-dominance": "executed: implied, the graph has no way around it",
  "predicted": "predicted only: shadow execution passed it",
  "predicted-by-dominance": "predicted only: implied by predicted blocks",
  "not-executed": "not executed: its breakpoint was armed throughout and never hit",
  "code-not-executed": "unknown: its code was not executed, but control may have been led around it",
  "unknown": "unknown: no evidence",
};

const grouped = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");

/// Three digits and a unit, as llvm-cov prints counts.
function short(n) {
  const units = ["", "k", "M", "G", "T", "P", "E"];
  let at = 0;
  let value = n;
  while (value >= 999.5 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  if (at === 0) return n < 10 && n !== Math.round(n) ? n.toFixed(1) : String(Math.round(n));
  return value.toPrecision(3).replace(/\.$/, "") + units[at];
}

function percent(share) {
  const value = share * 100;
  if (value === 0) return "0 %";
  if (value < 0.01) return "< 0.01 %";
  return `${value.toFixed(value >= 99.995 ? 0 : 2)} %`;
}

/// How often something was executed. Counts of a sampled profile have no unit: shares of all block executions, or of
/// `whole`. `atLeast`: executions that breakpoints counted.
function often(count, atLeast = 0, whole = DATA.overview.executions) {
  if (DATA.overview.exact) return short(Math.max(count, atLeast));
  if (count > 0) return percent(count / whole);
  return atLeast > 0 ? `≥ ${short(atLeast)}` : "0";
}

/// The same in words.
function oftenInWords(count, atLeast = 0) {
  if (DATA.overview.exact) return `${grouped(Math.max(count, atLeast))} executions`;
  if (count > 0) return `${often(count)} of all block executions`;
  return atLeast > 0 ? `at least ${grouped(atLeast)} ${atLeast === 1 ? "execution" : "executions"}` : "no executions";
}

/// The calls of all functions.
let allCalls = null;

/// As `pleach report` counts calls: of a sampled profile, shares of the calls of all functions.
const callsName = () => (DATA.overview.exact ? "calls" : "call share");

function callsOf(row) {
  allCalls ??= sum(DATA.functions.map((each) => each.calls));
  return often(row.calls, 0, allCalls);
}

const range = (low, high) => `${(low * 100).toFixed(2)}–${(high * 100).toFixed(2)} %`;

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

const functionName = (at) => DATA.functions[at].name;

/// A function in detail, if it is shown so.
const detailOf = (at) => DATA.details[DATA.functions[at].detail] ?? null;

/// A name without parameters, for narrow places. Parentheses within template arguments are part of the name.
function shortName(name) {
  let depth = 0;
  for (let at = 0; at < name.length; at += 1) {
    const c = name[at];
    if (c === "<") depth += 1;
    if (c === ">") depth = Math.max(0, depth - 1);
    const isName = name.startsWith("(anonymous", at) || name.slice(0, at).endsWith("operator");
    if (c === "(" && depth === 0 && at > 0 && !isName) return name.slice(0, at);
  }
  return name;
}

function place(row) {
  if (row.file === undefined) return "";
  const file = DATA.files.files[row.file].path.split("/").pop();
  return row.line ? `${file}:${row.line}` : file;
}

let positions = null;

/// The position of a row of functions.
function positionOf(row) {
  positions ??= new Map(DATA.functions.map((each, at) => [each, at]));
  return positions.get(row);
}
