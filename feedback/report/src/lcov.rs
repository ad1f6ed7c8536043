//! Coverage of source lines as an LCOV trace file, for `genhtml` and editors.
//!
//! A trace file knows two states only. Without [`LcovOptions::known`], lines whose state is unknown are written as not
//! executed. Counts are executions: of sampled code, those that breakpoints counted, and otherwise 1. Records of branches (`BRDA`) are left out: branches of the IR are not those of the source.

use super::block_state::State;
use super::frequency::Frequency;
use super::lines::{SourceFile, SourceFiles};
use pleach_profile::Covered;
use std::fmt::Write;
use std::path::Path;

/// Options of the trace file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LcovOptions {
    /// Lines that are only predicted count as executed. Otherwise they are unknown.
    pub predicted: bool,
    /// Lines and functions whose state is unknown are left out, so that a count of 0 is proved.
    pub known: bool,
}

impl LcovOptions {
    /// The number to write, if any: executions that are proved, or 1.
    fn hits(self, covered: Covered, frequency: Frequency) -> Option<u64> {
        match State::new(covered, self.predicted) {
            State::Executed => Some(frequency.at_least.max(1)),
            State::NotExecuted => Some(0),
            State::Unknown => (!self.known).then_some(0),
        }
    }
}

impl SourceFiles {
    /// The trace file. Files of which no line is written are left out.
    pub fn to_lcov(&self, options: LcovOptions) -> String {
        let mut out = String::new();
        for (path, file) in &self.files {
            write_file(path, file, options, &mut out);
        }
        out
    }
}

fn write_file(path: &Path, file: &SourceFile, options: LcovOptions, out: &mut String) {
    let lines = file.lines.iter();
    let lines = lines.filter_map(|(number, line)| Some((number, options.hits(line.covered, line.frequency)?)));
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return;
    }
    let functions = file.functions.iter();
    let functions =
        functions.filter_map(|function| Some((function, options.hits(function.covered, function.frequency)?)));
    let functions: Vec<_> = functions.collect();
    let _ = writeln!(out, "TN:pleach\nSF:{}", path.display());
    for (function, _) in &functions {
        let _ = writeln!(out, "FN:{},{}", function.line, function.name);
    }
    for (function, hits) in &functions {
        let _ = writeln!(out, "FNDA:{hits},{}", function.name);
    }
    let hit = functions.iter().filter(|(_, hits)| *hits > 0);
    let _ = writeln!(out, "FNF:{}\nFNH:{}", functions.len(), hit.count());
    for (number, hits) in &lines {
        let _ = writeln!(out, "DA:{number},{hits}");
    }
    let hit = lines.iter().filter(|(_, hits)| *hits > 0);
    let _ = writeln!(out, "LF:{}\nLH:{}\nend_of_record", lines.len(), hit.count());
}
