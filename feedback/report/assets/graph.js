// A function's control-flow graph: laid out by dagre, drawn as SVG, with paths over it.
"use strict";

const NODE = { width: 150, height: 44 };
/// Larger graphs are cut down to their most executed blocks, which can be followed by eye.
const FIRST_NODES = 70;
/// The layout takes seconds beyond this.
const MAX_NODES = 280;
const MAX_LABELS = 140;

/// Colours of paths; letters tell them apart, too.
const PATH_COLOURS = 8;
const pathLetter = (at) => (at < 26 ? String.fromCharCode(65 + at) : `${at + 1}`);

class Graph {
  /// `onselect(block)` is called when a block is chosen. `marks`: what `flags use` did, by block.
  constructor(detail, onselect, marks) {
    this.detail = detail;
    this.onselect = onselect;
    this.marks = marks;
    this.whole = sum(detail.blocks.map((block) => block.count));
    this.heaviest = Math.max(1, ...detail.blocks.map((block) => block.count * block.instructions));
    this.scale = 1;
    this.selected = null;
    this.limit = FIRST_NODES;
    this.scroll = h("div.graph-scroll", { tabindex: "0", "aria-label": "Graph, scrolls" });
    this.count = h("span.count", {});
    this.more = h("button", { type: "button", onclick: () => this.drawMore() }, "more blocks");
    const button = (text, label, act) => h("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.element = h("div.graph", {},
      h("div.bar-row", {},
        button("+", "Larger", () => this.zoom(this.scale * 1.25)),
        button("−", "Smaller", () => this.zoom(this.scale / 1.25)),
        button("fit", "Fit the width", () => this.fit()),
        this.more, this.count),
      this.scroll);
    this.draw();
  }

  draw() {
    this.drawn = this.drawnBlocks();
    this.layout();
    this.overlay = svg("g", { class: "ways" });
    this.nodes = new Map();
    const edges = svg("g", {}, this.edges.map((edge) => this.edge(edge)));
    const nodes = svg("g", {}, [...this.drawn].sort((a, b) => a - b).map((b) => this.node(b)));
    this.picture = svg("svg", {
      class: "cfg", role: "group", "aria-label": `Control-flow graph, ${this.drawn.size} blocks`,
      viewBox: `${this.left} 0 ${this.width} ${this.height}`,
    }, this.markers(), edges, this.overlay, nodes);
    this.scroll.replaceChildren(this.picture);
    const all = this.detail.blocks.length;
    this.more.hidden = this.drawn.size === all || this.limit >= MAX_NODES;
    const blocks = this.drawn.size < all ? `the ${this.drawn.size} most executed of ${grouped(all)} blocks` : `${all} blocks`;
    this.count.textContent = DATA.overview.exact ? blocks : `${blocks}, with their shares of the function's block executions`;
  }

  drawMore() {
    this.limit = Math.min(MAX_NODES, 2 * this.limit);
    this.draw();
    this.place();
    this.ways(this.shownWays ?? []);
  }

  drawnBlocks() {
    const all = this.detail.blocks.map((block, at) => [at, block.count * block.instructions]);
    if (all.length <= this.limit * 1.3) return new Set(all.map(([at]) => at));
    // Blocks of the hottest paths first, so that these are drawn whole.
    const chosen = new Set([0]);
    for (const path of this.detail.paths) {
      if (chosen.size + path.blocks.length > this.limit) break;
      path.blocks.forEach((b) => chosen.add(b));
    }
    all.sort((a, b) => b[1] - a[1]);
    for (const [at, work] of all) if (chosen.size < this.limit && work > 0) chosen.add(at);
    return chosen;
  }

  layout() {
    const graph = new dagre.graphlib.Graph();
    const many = this.drawn.size > 120;
    graph.setGraph({ rankdir: "TB", nodesep: 24, edgesep: 14, ranksep: many ? 34 : 42, marginx: 16, marginy: 22, ranker: many ? "longest-path" : "network-simplex" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const b of this.drawn) graph.setNode(String(b), { ...NODE });
    this.edges = this.detail.edges.filter(([from, to]) => this.drawn.has(from) && this.drawn.has(to));
    const heaviest = Math.max(1, ...this.edges.map((edge) => edge[2]));
    this.most = heaviest;
    for (const [from, to, count] of this.edges) {
      graph.setEdge(String(from), String(to), { weight: 1 + Math.round((9 * count) / heaviest), minlen: 1 });
    }
    dagre.layout(graph);
    const { width, height } = graph.graph();
    this.at = new Map([...this.drawn].map((b) => [b, graph.node(String(b))]));
    this.points = new Map(this.edges.map(([from, to]) => [`${from}>${to}`, graph.edge(String(from), String(to)).points]));
    // Edges may leave the box of the blocks.
    const xs = [...this.points.values()].flat().map((point) => point.x);
    this.left = Math.min(0, ...xs.map((x) => x - 16));
    this.width = Math.max(NODE.width, width, ...xs.map((x) => x + 16)) - this.left;
    this.height = Math.max(NODE.height, height);
  }

  markers() {
    const marker = (id, name) => svg("marker", { id, class: name, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
      svg("path", { d: "M0 0L8 4L0 8z" }));
    return svg("defs", {}, marker("arrow", "arrow-head"), marker("arrow-cold", "arrow-head cold"));
  }

  curve(points, shift) {
    const p = points.map(({ x, y }) => [x + shift, y + shift / 2]);
    let d = `M${p[0][0].toFixed(1)} ${p[0][1].toFixed(1)}`;
    for (let at = 1; at < p.length - 1; at += 1) {
      const [x, y] = p[at];
      const [nx, ny] = at === p.length - 2 ? p[at + 1] : [(x + p[at + 1][0]) / 2, (y + p[at + 1][1]) / 2];
      d += `Q${x.toFixed(1)} ${y.toFixed(1)} ${nx.toFixed(1)} ${ny.toFixed(1)}`;
    }
    if (p.length === 2) d += `L${p[1][0].toFixed(1)} ${p[1][1].toFixed(1)}`;
    return d;
  }

  edge([from, to, count, back]) {
    const points = this.points.get(`${from}>${to}`);
    const width = count > 0 ? 1 + 6 * Math.sqrt(count / this.most) : 1;
    const out = sum(this.detail.edges.filter((edge) => edge[0] === from).map((edge) => edge[2]));
    const share = out > 0 ? `, ${percent(count / out)} of what leaves block ${from}` : "";
    const middle = points[Math.floor(points.length / 2)];
    return svg("g", { class: `edge${count > 0 ? "" : " cold"}${back ? " back" : ""}` },
      svg("path", { d: this.curve(points, 0), "stroke-width": width.toFixed(2), "marker-end": count > 0 ? "url(#arrow)" : "url(#arrow-cold)" }),
      svg("title", {}, `${from} → ${to}${back ? " (back edge)" : ""}: ${oftenInWords(count)}${share}`),
      this.edges.length <= MAX_LABELS && count > 0 && out > count && svg("text", { x: middle.x + 4, y: middle.y, class: "edge-label" }, percent(count / out)));
  }

  node(b) {
    const block = this.detail.blocks[b];
    const { x, y } = this.at.get(b);
    const state = STATES[block.state];
    const work = block.count * block.instructions;
    const heat = Math.sqrt(work / this.heaviest);
    const left = x - NODE.width / 2;
    const top = y - NODE.height / 2;
    const calls = block.calls?.length ?? 0;
    const what = [block.line ? `line ${block.line}` : `${block.instructions} instr.`, calls > 0 ? `☎${calls > 1 ? calls : ""}` : "", block.landing_pad ? "⚠" : ""].filter(Boolean).join(" ");
    const missed = block.mispredicted && block.mispredicted[0] / block.mispredicted[2];
    const mark = this.marks.get(b);
    const g = svg("g", {
      class: `node ${state.key}`, tabindex: "0", role: "button", "data-block": b, "aria-pressed": "false",
      "aria-label": `Block ${b}, ${oftenInWords(block.count, block.at_least)}, ${state.title}${block.line ? `, line ${block.line}` : ""}`,
      onclick: () => this.chooseBlock(b),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); this.chooseBlock(b); } },
    },
    svg("rect", { x: left, y: top, width: NODE.width, height: NODE.height, rx: 5, class: "back" }),
    svg("rect", { x: left, y: top, width: NODE.width, height: NODE.height, rx: 5, class: "heat", "fill-opacity": (0.85 * heat).toFixed(3) }),
    svg("rect", { x: left, y: top, width: NODE.width, height: NODE.height, rx: 5, class: "frame" }),
    svg("text", { x: left + 8, y: top + 18, class: "name" }, `${state.sign} ${b}`),
    svg("text", { x: left + NODE.width - 8, y: top + 18, class: "number" }, often(block.count, block.at_least, this.whole)),
    svg("text", { x: left + 8, y: top + 35, class: "what" }, what),
    missed >= 0.02 && svg("text", { x: left + NODE.width - 8, y: top + 35, class: "missed" }, `↯ ${(missed * 100).toFixed(0)} %`),
    mark && svg("text", { x: left + NODE.width - 8, y: top - 4, class: "mark" }, mark),
    svg("title", {}, `block ${b}: ${oftenInWords(block.count, block.at_least)}; ${COVERED[block.covered]}; ${block.instructions} IR instructions, ends in ${block.end}`));
    this.nodes.set(b, g);
    return g;
  }

  chooseBlock(b) {
    this.onselect(this.selected === b ? null : b);
  }

  /// Marks blocks as chosen: one by itself, or those of a source line.
  select(blocks) {
    this.selected = blocks.length === 1 ? blocks[0] : null;
    for (const [b, node] of this.nodes) {
      const chosen = blocks.includes(b);
      node.classList.toggle("selected", chosen);
      node.setAttribute("aria-pressed", String(chosen));
    }
  }

  /// Scrolls to a block.
  show(b, behavior) {
    const at = this.at.get(b);
    if (!at) return;
    this.scroll.scrollTo({ behavior, left: (at.x - this.left) * this.scale - this.scroll.clientWidth / 2, top: at.y * this.scale - this.scroll.clientHeight / 3 });
  }

  /// Draws ways over the graph: [{ path, at }], where `at` is the path's position, and thus its colour and letter.
  ways(ways) {
    this.shownWays = ways;
    const parts = [];
    const lanes = new Map();
    const lane = (place) => { const used = lanes.get(place) ?? 0; lanes.set(place, used + 1); return used; };
    for (const { path, at } of ways) {
      const colour = at % PATH_COLOURS;
      const steps = path.blocks.slice(1).map((to, step) => [path.blocks[step], to]);
      if (path.end === "back" || path.end === "cut") steps.push([path.blocks[path.blocks.length - 1], path.to]);
      for (const [from, to] of steps) {
        const points = this.points.get(`${from}>${to}`);
        if (points) parts.push(svg("path", { class: `way way-${colour}`, d: this.curve(points, 4 * lane(`${from}>${to}`)) }));
      }
      for (const b of path.blocks) {
        const place = this.at.get(b);
        if (!place) continue;
        const side = 5 * lane(b);
        parts.push(svg("rect", { class: `stop way-${colour}`, x: place.x - NODE.width / 2 - 7 - side, y: place.y - NODE.height / 2, width: 4, height: NODE.height, rx: 2 }));
      }
      const first = this.at.get(path.blocks[0]);
      if (first) {
        const x = first.x - NODE.width / 2 + 4 + 18 * lane(`first ${path.blocks[0]}`);
        const y = first.y - NODE.height / 2 - 9;
        parts.push(svg("g", { class: `letter way-${colour}` }, svg("circle", { cx: x, cy: y, r: 8 }), svg("text", { x, y: y + 4 }, pathLetter(at))));
      }
    }
    this.overlay.replaceChildren(...parts);
    this.picture.classList.toggle("has-ways", ways.length > 0);
  }

  zoom(scale) {
    this.scale = Math.min(2.5, Math.max(0.15, scale));
    this.picture.setAttribute("width", Math.round(this.width * this.scale));
    this.picture.setAttribute("height", Math.round(this.height * this.scale));
  }

  fit() {
    this.zoom(Math.min(1, (this.scroll.clientWidth - 8) / this.width));
  }

  /// After it is in the page: a readable size, and the hottest path in sight.
  place() {
    this.zoom(Math.max(0.8, Math.min(1, (this.scroll.clientWidth - 8) / this.width)));
    const hottest = this.detail.paths[0]?.blocks[0] ?? 0;
    this.show(hottest, "instant");
  }
}
