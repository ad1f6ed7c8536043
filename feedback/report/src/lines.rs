//! Executions and coverage by source line. [`super::lcov`] and [`super::listing`] print them.
//!
//! A line has the executions and the coverage of the blocks that begin on it. Of several blocks of a function, which may
//! belong to one statement, it has the largest frequency and the most certain coverage: a line was executed if any of its
//! blocks was, and was not if none was. Frequencies of several functions are added up: a line of a template or of an
//! inlined function is in all of them. Of blocks that begin on earlier lines and go on to this one, the graph says
//! nothing: in `if (x) return;`, only the return may be a block that begins here. [`SourceFiles::doubt`] takes back proofs
//! of lines with code of such blocks.

use super::block_state::covered;
use super::frequency::{Frequency, Unit};
use super::show::Graphs;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::sources::TextPosition;
use pleach_profile::{Covered, FunctionProfile, Profile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where a block begins, as far as debug information tells more than the graph.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockPlace {
    /// In bytes, from 1, on the block's line; 0 if unknown.
    pub column: u32,
    /// If the block begins with code that was inlined before the anchor: its positions in the inlined functions, the
    /// innermost last.
    pub inlined: Vec<TextPosition>,
}

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

    /// Adds the same line of another function.
    fn join(&mut self, other: &Self) {
        (self.frequency, self.covered) = match self.blocks {
            0 => (other.frequency, other.covered),
            _ => (self.frequency + other.frequency, self.covered.max(other.covered)),
        };
        self.blocks += other.blocks;
        self.uncovered += other.uncovered;
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
    /// What one position in it tells of a function that was inlined.
    fn of_inlined(at: &TextPosition, frequency: Frequency, covered: Covered) -> Self {
        Self {
            name: at.function.to_string(),
            line: at.line,
            extent: (at.line, at.line),
            frequency,
            covered,
            is_executed: covered.is_executed(),
        }
    }

    /// Adds what another block of the same copy tells.
    fn widen(&mut self, other: &Self) {
        let frequency = self.frequency.max(other.frequency);
        self.add(other);
        self.frequency = frequency;
    }

    /// Adds another copy.
    fn add(&mut self, other: &Self) {
        self.line = self.line.min(other.line);
        self.extent.0 = self.extent.0.min(other.extent.0);
        self.extent.1 = self.extent.1.max(other.extent.1);
        self.is_executed |= other.is_executed;
        self.frequency = self.frequency + other.frequency;
        self.covered = self.covered.max(other.covered);
    }
}

/// A source file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SourceFile {
    /// By number.
    pub lines: BTreeMap<u32, Line>,
    /// Parts of lines by line and column, where blocks' columns are known.
    pub columns: BTreeMap<(u32, u32), Line>,
    /// By line and name. Several graphs or local functions of the same name, and all copies of an inlined function, are
    /// one function.
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
    /// Lines of a profile's functions. `wanted` selects functions by name; `file_of` finds their source files, `places`
    /// what else is known of their blocks.
    pub fn from_profile<'p>(
        profile: &Profile,
        graphs: &Graphs<'_>,
        wanted: impl Fn(&str) -> bool,
        file_of: impl Fn(&Cfg) -> Option<PathBuf>,
        places: impl Fn(&FunctionProfile) -> &'p [BlockPlace],
    ) -> Self {
        let (mut found, unit) = (Self::default(), Unit::from_profile(profile));
        let mut functions: BTreeMap<(Rc<Path>, Rc<str>), Function> = BTreeMap::new();
        for function in profile.functions.iter().filter(|function| wanted(&function.name)) {
            let cfg = graphs(function.id, function.cfg_hash);
            let place = cfg.and_then(|cfg| Some((cfg, first_line(cfg)?, file_of(cfg)?)));
            let Some((cfg, line, path)) = place else {
                found.without_lines += 1;
                continue;
            };
            let mut of_function = FunctionLines::new(path.into());
            let places = places(function);
            for (block, of_graph) in cfg.blocks.iter().enumerate().filter(|(_, block)| block.line > 0) {
                let state = (unit.frequency(function, block), covered(function, block));
                of_function.add(of_graph.line, places.get(block), state);
            }
            let entry = Function {
                name: function.name.clone(),
                line,
                extent: extent(cfg, line),
                frequency: unit.frequency(function, 0),
                covered: covered(function, 0),
                is_executed: (0..cfg.blocks.len()).any(|block| covered(function, block).is_executed()),
            };
            let name = (of_function.path.clone(), function.name.as_str().into());
            for (name, function) in of_function.inlined.iter().chain([(&name, &entry)]) {
                let known = functions.entry(name.clone());
                known
                    .and_modify(|known| known.add(function))
                    .or_insert_with(|| function.clone());
            }
            found.join(&of_function.parts);
        }
        for ((path, _), function) in functions {
            found.file(&path).functions.push(function);
        }
        for file in found.files.values_mut() {
            file.functions.sort_by(|a, b| (a.line, &a.name).cmp(&(b.line, &b.name)));
        }
        found
    }

    fn file(&mut self, path: &Path) -> &mut SourceFile {
        if !self.files.contains_key(path) {
            self.files.insert(path.to_owned(), SourceFile::default());
        }
        self.files.get_mut(path).expect("present")
    }

    fn join(&mut self, parts: &BTreeMap<Part, Line>) {
        for ((path, line, column), part) in parts {
            let file = self.file(path);
            match column {
                0 => file.lines.entry(*line).or_default().join(part),
                _ => file.columns.entry((*line, *column)).or_default().join(part),
            }
        }
    }
}

/// A file, a line, and a column, 0 for the whole line.
type Part = (Rc<Path>, u32, u32);

/// The lines of one function, of the functions that were inlined into it, too.
struct FunctionLines {
    path: Rc<Path>,
    parts: BTreeMap<Part, Line>,
    inlined: BTreeMap<(Rc<Path>, Rc<str>), Function>,
}

impl FunctionLines {
    fn new(path: Rc<Path>) -> Self {
        Self {
            path,
            parts: BTreeMap::new(),
            inlined: BTreeMap::new(),
        }
    }

    /// Adds a block that begins on a line of the function.
    fn add(&mut self, line: u32, place: Option<&BlockPlace>, (frequency, covered): (Frequency, Covered)) {
        let own = (self.path.clone(), line, place.map_or(0, |place| place.column));
        let inlined = place.map_or(&[][..], |place| &place.inlined);
        let positions = inlined.iter().map(|at| (at.file.clone(), at.line, at.column));
        for (path, line, column) in std::iter::once(own).chain(positions) {
            if column > 0 {
                let part = self.parts.entry((path.clone(), line, column));
                part.or_default().add(frequency, covered);
            }
            self.parts.entry((path, line, 0)).or_default().add(frequency, covered);
        }
        for at in inlined {
            let function = Function::of_inlined(at, frequency, covered);
            let known = self.inlined.entry((at.file.clone(), at.function.clone()));
            known.and_modify(|known| known.widen(&function)).or_insert(function);
        }
    }
}

impl SourceFiles {
    /// Whether no block that begins on a line was executed, which is proved.
    pub fn is_not_executed(&self, file: &Path, line: u32) -> bool {
        let line = self.files.get(file).and_then(|file| file.lines.get(&line));
        line.is_some_and(|line| line.covered == Covered::NotExecuted)
    }

    /// Makes a line that was not executed unknown: it has code of a block that may have been.
    pub fn mark_unknown_if_not_executed(&mut self, file: &Path, line: u32) {
        let Some(file) = self.files.get_mut(file) else { return };
        let parts = file
            .columns
            .range_mut((line, 0)..=(line, u32::MAX))
            .map(|(_, part)| part);
        for part in file.lines.get_mut(&line).into_iter().chain(parts) {
            if part.covered == Covered::NotExecuted {
                part.covered = Covered::Unknown;
            }
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
