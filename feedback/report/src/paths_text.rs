//! Tables of paths and edges, for people.

use super::names::Names;
use super::paths::{Edges, Paths, Totals, cut};
use super::source_paths::{PathContext, SourceNames, distinct};
use super::table::table;
use super::tables::{grouped, without_padding};
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path, Start};
use std::fmt::{Display, Write};

/// The middle blocks of a longer path are left out.
const SHOWN_BLOCKS: usize = 24;

pub(super) const LEGEND: &str = "▸ from the function's entry, ■ to its end, ↺b by a back edge to block b, ✂b cut before block b, \
                      ☎ ends in a call that did not return";

impl Paths<'_> {
    /// For people, with block numbers.
    pub fn to_text(&self, names: &Names) -> String {
        self.text(names, None)
    }

    /// For people, with source lines where the graphs have them.
    pub fn to_source_text(&self, names: &Names, sources: &SourceNames) -> String {
        self.text(names, Some(sources))
    }

    fn text(&self, names: &Names, sources: Option<&SourceNames>) -> String {
        let mut out = String::new();
        if !self.rows.is_empty() {
            let mut rows = table(&["share", "cumulative", "count", "function", "path"], ..3)
                .fitting(names)
                .with_texts(&["path"]);
            let share = |count: u128| format!("{:.2} %", count as f64 / self.totals.executions as f64 * 100.0);
            let mut so_far = 0;
            let paths = self.rows.iter().map(|(function, exact)| {
                let context = PathContext {
                    cfg: &function.cfg,
                    hash: function.cfg.hash(),
                    targets: &[],
                };
                (Some(context), exact.path.iter().collect())
            });
            let (paths, legend) = distinct(paths, sources, names);
            for ((function, exact), path) in self.rows.iter().zip(paths) {
                let count = u128::from(exact.count);
                so_far += count;
                rows.add_row([
                    share(count),
                    share(so_far),
                    grouped(count),
                    names.shown(&function.cfg.name),
                    path,
                ]);
            }
            if self.others > 0 {
                let count = self.totals.executions - so_far;
                rows.add_row([
                    share(count),
                    share(so_far + count),
                    grouped(count),
                    String::new(),
                    with_unit(self.others, "other path"),
                ]);
            }
            let _ = writeln!(out, "{rows}");
            let _ = writeln!(out, "\n{legend}");
        }
        let Totals {
            paths: executed,
            executions,
            longest,
            ..
        } = self.totals;
        let _ = writeln!(
            out,
            "{}, {} executed, {}, the longest of {}",
            functions(&self.totals),
            with_unit(executed, "path"),
            with_unit(executions, "path execution"),
            with_unit(longest, "block")
        );
        without_padding(&out)
    }
}

impl Edges<'_> {
    /// For people.
    pub fn to_text(&self, names: &Names) -> String {
        let (mut rows, mut taken) = (Vec::new(), 0_u64);
        for function in &self.functions {
            let (name, flow) = (&function.cfg.name, &function.flow);
            taken += flow.edges.values().filter(|&&count| count > 0).count() as u64;
            rows.push((flow.entries, name, format!("▸{}", BlockIndex::ENTRY.0)));
            rows.extend(flow.edges.iter().map(|((from, to), &count)| {
                let edge = format!("{}→{}", from.0, to.0);
                (count, name, edge)
            }));
            let exits = flow.exits.iter().enumerate();
            rows.extend(exits.map(|(block, &count)| (count, name, format!("{block} ■"))));
        }
        rows.retain(|row| row.0 > 0);
        // Stable, so that edges with equal counts keep their order.
        rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let hidden = cut(&mut rows, self.top);
        let mut out = String::new();
        if !rows.is_empty() {
            let mut shown = table(&["count", "function", "edge"], ..1).fitting(names);
            for (count, name, edge) in rows {
                shown.add_row([grouped(count), names.shown(name), edge]);
            }
            let _ = writeln!(out, "{shown}");
            if hidden > 0 {
                let _ = writeln!(out, "and {} more", grouped(hidden));
            }
            let _ = writeln!(out, "\n▸ into the function, ■ out of it");
        }
        let _ = writeln!(out, "{}, {} taken", functions(&self.totals), with_unit(taken, "edge"));
        without_padding(&out)
    }
}

fn functions(totals: &Totals) -> String {
    format!(
        "{} of {} executed",
        grouped(totals.executed_functions),
        with_unit(totals.functions, "function")
    )
}

/// `▸0→1→3 ↺1`
pub(super) fn path(path: &Path) -> String {
    let mut out = String::from(match path.start {
        Start::Entry => "▸",
        Start::Inside => "",
    });
    let mut blocks: Vec<_> = path.blocks.iter().map(|block| block.0.to_string()).collect();
    if blocks.len() > SHOWN_BLOCKS {
        let (from, to) = (SHOWN_BLOCKS / 2, blocks.len() - SHOWN_BLOCKS / 2);
        blocks.splice(from..to, [format!("… {} blocks …", to - from)]);
    }
    out.push_str(&blocks.join("→"));
    let _ = match path.end {
        End::Exit => write!(out, " ■"),
        End::Back(to) => write!(out, " ↺{}", to.0),
        End::Cut(to) => write!(out, " ✂{}", to.0),
        End::Call => write!(out, " ☎"),
    };
    out
}

pub(super) fn with_unit(count: impl Display + PartialEq + From<u8>, what: &str) -> String {
    let plural = if count == 1.into() { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}
