// Elements. Text from the data is only ever set as text, never as markup.
"use strict";

/// An element: `h("a.name", { href: "#" }, "text", child, …)`.
function h(what, attributes, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length > 0) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

/// An element of SVG.
function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/// Replaces what is in an element.
function show(element, ...children) {
  element.replaceChildren();
  fill(element, {}, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/// The share of a bar for each state, and the same in words.
function stateBar(states) {
  const all = sum(states);
  if (all === 0) return h("span.bar", { role: "img", "aria-label": "nothing" });
  const words = STATES.map((state, at) => `${states[at]} ${state.name}`).filter((_, at) => states[at] > 0).join(", ");
  const parts = STATES.map((state, at) =>
    states[at] > 0 && h(`span.part.${state.key}`, { style: `flex-grow:${states[at]}` }));
  return h("span.bar", { role: "img", "aria-label": words, title: words }, parts);
}

function shareBar(value, largest) {
  const width = largest > 0 ? (100 * value) / largest : 0;
  return h("span.share", { "aria-hidden": "true" }, h("span", { style: `width:${width.toFixed(2)}%` }));
}

function functionLink(at, text) {
  const name = functionName(at);
  return h("a.function", { href: `#${link({ f: key(at) })}`, title: name }, text ?? name);
}

function note(...text) {
  return h("p.note", {}, ...text);
}

/// The signs of states, for pages that show them.
function stateLegend() {
  return h("ul.legend", { "aria-label": "States" }, STATES.map((state) =>
    h("li", {}, h(`span.sign.${state.key}`, { "aria-hidden": "true" }, state.sign), ` ${state.title}`)));
}

/// Text with code between backticks.
function withCode(text) {
  return text.split("`").map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part));
}
