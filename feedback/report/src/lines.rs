//! Counts and coverage by source line: as an LCOV trace file, and as a view of the source.
//!
//! A line has the count and the coverage of the blocks that begin on it. Of several blocks, which may belong to one
//! statement, it has the largest count and the most certain coverage: a line is executed if any of its blocks is.

use super::show::Graphs;
use super::tables::grouped;
use pleach_annotate::cfg::Cfg;
use pleach_profile::{Covered, Profile};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// The coverage of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// Estimated executions of the most executed block.
    pub count: u64,
    /// The most certain coverage of its blocks.
    pub covered: Covered,
    /// Number of blocks that begin here.
    pub blocks: u32,
    /// Number of those whose execution is unknown.
    pub uncovered: u32,
}

/// A function's beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Linkage name.
    pub name: String,
    /// The first line of its entry block.
    pub line: u32,
    /// Estimated calls.
    pub count: u64,
    /// The coverage of its entry.
    pub covered: Covered,
}

/// A source file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceFile {
    /// By number.
    pub lines: BTreeMap<u32, Line>,
    /// In order.
    pub functions: Vec<Function>,
}

/// Counts and coverage by source line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceFiles {
    /// By path.
    pub files: BTreeMap<PathBuf, SourceFile>,
    /// Number of functions without a graph, a file or a line: built without `-g`, or not in the given binaries.
    pub without_lines: u64,
}

impl SourceFiles {
    /// Lines of a profile's functions. `wanted` selects functions by name; `file_of` finds their source files.
    pub fn from_profile(
        profile: &Profile,
        graphs: &Graphs<'_>,
        wanted: impl Fn(&str) -> bool,
        file_of: impl Fn(&Cfg) -> Option<PathBuf>,
    ) -> Self {
        let mut found = Self::default();
        for function in profile.functions.iter().filter(|function| wanted(&function.name)) {
            let cfg = graphs(function.id, function.cfg_hash);
            let cfg = cfg.filter(|cfg| cfg.blocks.iter().any(|block| block.line > 0));
            let Some((cfg, path)) = cfg.and_then(|cfg| Some((cfg, file_of(cfg)?))) else {
                found.without_lines += 1;
                continue;
            };
            let file = found.files.entry(path).or_default();
            let covered = |block: usize| function.coverage.get(block).copied().unwrap_or_default();
            // Counts of covered blocks are 1 at least: estimates of rare ones may be 0.
            let count = |block: usize| {
                let estimate = function.blocks.get(block).copied().unwrap_or(0);
                estimate.max(u64::from(covered(block) > Covered::Unknown))
            };
            for (block, of_graph) in cfg.blocks.iter().enumerate().filter(|(_, block)| block.line > 0) {
                let line = file.lines.entry(of_graph.line).or_default();
                line.count = line.count.max(count(block));
                line.covered = line.covered.max(covered(block));
                line.blocks += 1;
                line.uncovered += u32::from(covered(block) == Covered::Unknown);
            }
            if let Some(entry) = cfg.blocks.first() {
                file.functions.push(Function {
                    name: function.name.clone(),
                    line: entry.line,
                    count: count(0),
                    covered: covered(0),
                });
            }
        }
        for file in found.files.values_mut() {
            file.functions.sort_by(|a, b| (a.line, &a.name).cmp(&(b.line, &b.name)));
        }
        found
    }

    /// A trace file for `lcov` and `genhtml`. Lines that are only predicted count as not executed, unless `predicted`.
    pub fn to_lcov(&self, predicted: bool) -> String {
        let least = if predicted {
            Covered::PredictedByDominance
        } else {
            Covered::ByDominance
        };
        let hits = |covered: Covered, count: u64| if covered >= least { count.max(1) } else { 0 };
        let mut out = String::new();
        for (path, file) in &self.files {
            let _ = writeln!(out, "TN:pleach\nSF:{}", path.display());
            for function in &file.functions {
                let _ = writeln!(out, "FN:{},{}", function.line, function.name);
            }
            for function in &file.functions {
                let _ = writeln!(out, "FNDA:{},{}", hits(function.covered, function.count), function.name);
            }
            let hit = file.functions.iter().filter(|function| function.covered >= least);
            let _ = writeln!(out, "FNF:{}\nFNH:{}", file.functions.len(), hit.count());
            for (number, line) in &file.lines {
                let _ = writeln!(out, "DA:{number},{}", hits(line.covered, line.count));
            }
            let hit = file.lines.values().filter(|line| line.covered >= least);
            let _ = writeln!(out, "LF:{}\nLH:{}\nend_of_record", file.lines.len(), hit.count());
        }
        out
    }
}

/// The meaning of the marks of [`SourceFile::view`].
pub const LEGEND: &str = "+ executed (seen), = executed (by dominance), ? predicted, ~ predicted by dominance, ! never seen; \
                          * some of its blocks were never seen\n";

fn mark(line: &Line) -> [char; 2] {
    let state = match line.covered {
        Covered::NotExecuted => '-',
        Covered::CodeNotExecuted | Covered::Unknown => '!',
        Covered::PredictedByDominance => '~',
        Covered::Predicted => '?',
        Covered::ByDominance => '=',
        Covered::Proved => '+',
    };
    let partly = line.covered > Covered::Unknown && line.uncovered > 0;
    [state, if partly { '*' } else { ' ' }]
}

impl SourceFile {
    /// Each line with its estimated count and a mark for its coverage. `text` is the source; without it, only lines
    /// with blocks are listed. `around` limits the number of lines before the first and after the last line with
    /// blocks.
    pub fn view(&self, text: Option<&str>, around: Option<u32>) -> String {
        let mut out = String::new();
        let mut print = |number: u32, text: &str| {
            let line = self.lines.get(&number);
            let count = line
                .filter(|line| line.covered > Covered::Unknown)
                .map(|line| grouped(line.count));
            let [state, partly] = line.map_or([' ', ' '], mark);
            let row = format!("{:>16} {state}{partly} {number:>6} │ {text}", count.unwrap_or_default());
            out += row.trim_end();
            out.push('\n');
        };
        let Some(text) = text else {
            self.lines.keys().for_each(|number| print(*number, ""));
            return out;
        };
        let (first, last) = match (around, self.lines.keys().next(), self.lines.keys().next_back()) {
            (Some(around), Some(first), Some(last)) => (first.saturating_sub(around), last.saturating_add(around)),
            _ => (0, u32::MAX),
        };
        for (number, text) in (1..).zip(text.lines()) {
            if (first..=last).contains(&number) {
                print(number, text);
            }
        }
        out
    }
}
