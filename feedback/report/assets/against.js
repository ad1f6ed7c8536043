// What changed since another profile.
"use strict";

function showAgainst(main) {
  const { against } = DATA;
  const position = new Map(DATA.functions.map((row, at) => [`${row.id} ${row.hash}`, at]));
  const change = (each) => `${each.change > 0 ? "+" : "−"}${(Math.abs(each.change) * 100).toFixed(2)} %`;
  const shares = (name, of) => [
    { name, title: `Share of path executions ${name}`, key: (each) => of(each).share, cell: (each) => percent(of(each).share) },
    { name: "90 % interval", title: "Sorted by its width", key: (each) => of(each).high - of(each).low, cell: (each) => range(of(each).low, of(each).high) },
  ];
  const named = (each) => {
    const at = position.get(`${each.function_id} ${each.cfg_hash}`);
    return at === undefined ? h("span", {}, each.function, h("small", {}, " not in this profile")) : functionLink(at, shortName(functionName(at)));
  };
  const text = (each) => {
    const at = position.get(`${each.function_id} ${each.cfg_hash}`);
    return pathText(at === undefined ? null : detailOf(at), each);
  };
  const columns = [
    { name: "change", title: "Difference of the shares; sorted by its size", key: (each) => Math.abs(each.change), cell: change },
    ...shares("before", (each) => each.before), ...shares("after", (each) => each.after),
    { name: "function", title: "Name", left: true, key: (each) => each.function, cell: named },
  ];
  const table = (rows, label, more) => (rows.length > 0 ? new Table({ rows, label, columns: [...columns, ...more], sort: 0 }).element : note(`No ${label}.`));
  show(main, h("h2", {}, "Changes"),
    h("p", {}, `Shares of path executions whose 90 % intervals before and after have nothing in common: ${grouped(against.functions.length)} of ${grouped(against.compared[0])} functions and ${grouped(against.paths.length)} of ${grouped(against.compared[1])} paths.`),
    against.changed_functions > 0 && note(`${against.changed_functions === 1 ? "1 function has" : `${grouped(against.changed_functions)} functions have`} other control flow in each: the two are of different builds.`),
    h("h3", {}, "Functions"), table(against.functions, "changed functions", []),
    h("h3", {}, "Paths"), table(against.paths, "changed paths", [{ name: "path", title: PATH_LEGEND, left: true, key: text, cell: (each) => h("span", { title: blocksText(each) }, text(each)) }]));
}
