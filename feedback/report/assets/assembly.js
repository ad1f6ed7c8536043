// The machine code of a function, by block.
"use strict";

class AssemblyView {
  constructor(detail, onselect) {
    this.parts = [];
    const assembly = detail.assembly;
    if (!assembly) {
      this.element = h("details.assembly", {}, h("summary", {}, "Assembly"),
        note("No code in the given binaries: the annotated program was not named with --binary."));
      return;
    }
    const number = sum(assembly.parts.map((part) => part.instructions.length));
    const box = h("div.assembly-scroll", { tabindex: "0", "aria-label": "Assembly, scrolls" });
    this.element = h("details.assembly", { ontoggle: () => { if (this.element.open && this.parts.length === 0) this.draw(detail, box, onselect); } },
      h("summary", {}, `Assembly ${assembly.copy ? "of its largest inlined copy, in" : "of"} ${assembly.symbol}, ${grouped(number)} instructions`), box,
      assembly.hidden > 0 && note(`${grouped(assembly.hidden)} more instructions are not listed.`));
  }

  draw(detail, box, onselect) {
    const parts = detail.assembly.parts.map((part) => {
      const block = part.block === null ? null : detail.blocks[part.block];
      const inlined = part.inlined ? ` – inlined ${part.inlined[0]}, its block ${part.inlined[1]}` : "";
      const head = block
        ? h("button.block", { type: "button", onclick: () => onselect(part.block) },
          `${STATES[block.state].sign} block ${part.block}${block.line ? `, line ${block.line}` : ""}: ${oftenInWords(block.count, block.at_least)}${inlined}`)
        : h("span.block", {}, "before the first probe");
      const text = part.instructions.map(([address, code]) => `${address.toString(16).padStart(8)}  ${code}`).join("\n");
      const element = h("section", {}, head, h("pre", {}, text));
      this.parts.push([part.block, element]);
      return element;
    });
    box.replaceChildren(...parts);
    this.select(this.chosen ?? []);
  }

  select(blocks) {
    this.chosen = blocks;
    let first = null;
    for (const [block, element] of this.parts) {
      const is = blocks.includes(block);
      element.classList.toggle("selected", is);
      if (is && !first) first = element;
    }
    if (first) keepInView(first);
  }
}
