// A table that is sorted by its headers and filtered by a predicate. It draws a page of rows at a time.
"use strict";

const PAGE = 200;

/// `columns`: { name, title, key: row → number or text, cell: row → node or text, left, wide }.
class Table {
  constructor(options) {
    this.options = options;
    this.rows = options.rows;
    this.sort = options.sort ?? 0;
    this.down = options.down ?? true;
    this.shown = PAGE;
    this.filter = () => true;
    this.body = h("tbody", {});
    this.more = h("button.more", { type: "button", onclick: () => { this.shown += 5 * PAGE; this.draw(); } });
    this.count = h("p.count", { role: "status" });
    const heads = options.columns.map((column, at) => h("th", { scope: "col" },
      h("button", { type: "button", title: column.title, onclick: () => this.by(at) }, column.name, h("span.arrow", { "aria-hidden": "true" }))));
    this.heads = heads;
    this.table = h("table", { "aria-label": options.label }, h("thead", {}, h("tr", {}, heads)), this.body);
    this.element = h("div.table", {}, this.count, h("div.scroll", {}, this.table), this.more);
    heads.forEach((head, at) => head.classList.toggle("left", options.columns[at].left === true));
    this.draw();
  }

  by(at) {
    this.down = this.sort === at ? !this.down : largestFirst(this.options.columns[at]);
    this.sort = at;
    this.shown = PAGE;
    this.draw();
    this.options.onsort?.(at, this.down);
  }

  where(filter) {
    this.filter = filter;
    this.shown = PAGE;
    this.draw();
  }

  draw() {
    const { columns, rows, href, label } = this.options;
    const key = columns[this.sort].key;
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      const less = typeof x === "string" ? x.localeCompare(y) : (x ?? -Infinity) - (y ?? -Infinity);
      return this.down ? -less : less;
    };
    const found = rows.filter(this.filter).sort(order);
    this.heads.forEach((head, at) => {
      const sorted = at === this.sort;
      head.setAttribute("aria-sort", sorted ? (this.down ? "descending" : "ascending") : "none");
      head.querySelector(".arrow").textContent = sorted ? (this.down ? " ▾" : " ▴") : "";
    });
    this.body.replaceChildren(...found.slice(0, this.shown).map((row) =>
      h("tr", { "data-href": href?.(row) }, columns.map((column) =>
        h(`td${column.left ? ".left" : ""}${column.narrow ? ".place" : ""}`, {}, column.cell(row))))));
    this.count.textContent = found.length === rows.length
      ? `${grouped(rows.length)} ${label}` : `${grouped(found.length)} of ${grouped(rows.length)} ${label}`;
    this.more.textContent = `Show more of ${grouped(found.length - this.shown)}`;
    this.more.hidden = found.length <= this.shown;
  }
}

/// Numbers are first sorted from the largest on, text from A on.
const largestFirst = (column) => column.left !== true;
