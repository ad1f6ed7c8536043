//! Executions and coverage by source line. [`super::lcov`] and [`super::listing`] print them.
//!
//! A line has the executions and the coverage of the blocks that begin on it. Of several blocks, which may belong to one
//! statement, it has the largest frequency and the most certain coverage: a line was executed if any of its blocks was, and
//! was not if none was. Of blocks that begin on earlier lines and go on to this one, the graph says nothing: in
//! `if (x) return;`, only the return may be a block that begins here. [`SourceFiles::doubt`] takes back proofs of lines
//! with code of such blocks.

use super::block_state::covered;
use super::frequency::{Frequency, Unit};
use super::show::Graphs;
use pleach_annotate::cfg::Cfg;
use pleach_profile::{Covered, Profile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The coverage of a line.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Line {
    /// That of the most executed block.
    pub frequency: Frequency,
    /// The most certain coverage of its blocks.
    pub covered: Covered,
    /// Number of blocks that begin here.
    pub blocks: u32,
    /// Number of those that are neither proved nor predicted to have been executed.
    pub uncovered: u32,
}

impl Line {
    fn add(&mut self, frequency: Frequency, covered: Covered) {
        (self.frequency, self.covered) = match self.blocks {
            0 => (frequency, covered),
            _ => (self.frequency.max(frequency), self.covered.max(covered)),
        };
        self.blocks += 1;
        self.uncovered += u32::from(!covered.is_executed());
    }
}

/// A function's beginning.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Linkage name.
    pub name: String,
    /// The first line of its entry block; if that is unknown, of all its blocks.
    pub line: u32,
    /// First and last lines on which its blocks begin.
    pub extent: (u32, u32),
    /// That of its entry.
    pub frequency: Frequency,
    /// The coverage of its entry.
    pub covered: Covered,
    /// Whether any of its blocks was executed, proved or predicted.
    pub is_executed: bool,
}

impl Function {
    fn add(&mut self, other: &Self) {
        self.line = self.line.min(other.line);
        self.extent.0 = self.extent.0.min(other.extent.0);
        self.extent.1 = self.extent.1.max(other.extent.1);
        self.is_executed |= other.is_executed;
        self.frequency = self.frequency.max(other.frequency);
        self.covered = self.covered.max(other.covered);
    }
}

/// A source file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SourceFile {
    /// By number.
    pub lines: BTreeMap<u32, Line>,
    /// By line and name. Several graphs or local functions of the same name are one function.
    pub functions: Vec<Function>,
}

/// Executions and coverage by source line.
#[derive(Clone, PartialEq, Debug, Default)]
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
        let (mut found, unit) = (Self::default(), Unit::from_profile(profile));
        let mut functions: BTreeMap<(PathBuf, &str), Function> = BTreeMap::new();
        for function in profile.functions.iter().filter(|function| wanted(&function.name)) {
            let cfg = graphs(function.id, function.cfg_hash);
            let place = cfg.and_then(|cfg| Some((cfg, first_line(cfg)?, file_of(cfg)?)));
            let Some((cfg, line, path)) = place else {
                found.without_lines += 1;
                continue;
            };
            let file = found.files.entry(path.clone()).or_default();
            for (block, of_graph) in cfg.blocks.iter().enumerate().filter(|(_, block)| block.line > 0) {
                let line = file.lines.entry(of_graph.line).or_default();
                line.add(unit.frequency(function, block), covered(function, block));
            }
            let entry = Function {
                name: function.name.clone(),
                line,
                extent: extent(cfg, line),
                frequency: unit.frequency(function, 0),
                covered: covered(function, 0),
                is_executed: (0..cfg.blocks.len()).any(|block| covered(function, block).is_executed()),
            };
            let known = functions.entry((path, &function.name));
            known.and_modify(|known| known.add(&entry)).or_insert(entry);
        }
        for ((path, _), function) in functions {
            found.files.entry(path).or_default().functions.push(function);
        }
        for file in found.files.values_mut() {
            file.functions.sort_by(|a, b| (a.line, &a.name).cmp(&(b.line, &b.name)));
        }
        found
    }
}

impl SourceFiles {
    /// Whether no block that begins on a line was executed, which is proved.
    pub fn is_not_executed(&self, file: &Path, line: u32) -> bool {
        let line = self.files.get(file).and_then(|file| file.lines.get(&line));
        line.is_some_and(|line| line.covered == Covered::NotExecuted)
    }

    /// Makes a line that was not executed unknown: it has code of a block that may have been.
    pub fn doubt(&mut self, file: &Path, line: u32) {
        let line = self.files.get_mut(file).and_then(|file| file.lines.get_mut(&line));
        if let Some(line) = line.filter(|line| line.covered == Covered::NotExecuted) {
            line.covered = Covered::Unknown;
        }
    }
}

/// First and last lines of a function with this first line.
fn extent(cfg: &Cfg, line: u32) -> (u32, u32) {
    let lines = || cfg.blocks.iter().map(|block| block.line).filter(|line| *line > 0);
    (lines().min().unwrap_or(line), lines().max().unwrap_or(line))
}

/// The line of the entry block, or of the first block that has one.
fn first_line(cfg: &Cfg) -> Option<u32> {
    let known = || cfg.blocks.iter().map(|block| block.line).filter(|line| *line > 0);
    match cfg.blocks.first() {
        Some(entry) if entry.line > 0 => Some(entry.line),
        _ => known().min(),
    }
}
