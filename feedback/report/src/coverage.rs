//! The report of `pleach coverage`: how many blocks of each function were executed, were not, or are unknown, and how
//! that is known.

use super::block_state::covered;
use super::show::Graphs;
use pleach_annotate::manifest::Anchor;
use pleach_profile::{Covered, Executions, FunctionProfile, Profile};
use serde::Serialize;
use std::cmp::Reverse;
use std::ops::AddAssign;

/// Version of the JSON form. It changes when a key is removed or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// Numbers of blocks, or of IR instructions, by what is known about their execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// All: the sum of the following.
    pub all: u64,
    /// Proved by recorded branches or breakpoints.
    pub seen: u64,
    /// Implied by executed blocks.
    pub by_dominance: u64,
    /// Shadow execution passed them, but the program may not have.
    pub predicted: u64,
    /// Implied by predicted blocks.
    pub predicted_by_dominance: u64,
    /// Proved not to have been executed.
    pub not_executed: u64,
    /// Without any evidence.
    pub unknown: u64,
}

impl Tally {
    /// Number that is proved to have been executed.
    pub fn proved(&self) -> u64 {
        self.seen + self.by_dominance
    }

    /// Number that is only predicted to have been executed.
    pub fn only_predicted(&self) -> u64 {
        self.predicted + self.predicted_by_dominance
    }

    /// Number that is proved or predicted to have been executed.
    pub fn executed(&self) -> u64 {
        self.proved() + self.only_predicted()
    }

    /// Whether all are proved not to have been executed.
    pub fn is_never_executed(&self) -> bool {
        self.all > 0 && self.not_executed == self.all
    }

    fn note(&mut self, covered: Covered, weight: u64) {
        self.all += weight;
        let part = match covered {
            Covered::NotExecuted => &mut self.not_executed,
            Covered::CodeNotExecuted | Covered::Unknown => &mut self.unknown,
            Covered::PredictedByDominance => &mut self.predicted_by_dominance,
            Covered::Predicted => &mut self.predicted,
            Covered::ByDominance => &mut self.by_dominance,
            Covered::Hit | Covered::Proved => &mut self.seen,
        };
        *part += weight;
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.seen += other.seen;
        self.by_dominance += other.by_dominance;
        self.predicted += other.predicted;
        self.predicted_by_dominance += other.predicted_by_dominance;
        self.not_executed += other.not_executed;
        self.unknown += other.unknown;
    }
}

/// A function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FunctionRow {
    /// Linkage name.
    pub function: String,
    /// Identifier.
    pub function_id: String,
    /// Graph that the blocks are of.
    pub cfg_hash: String,
    /// Source file of its module, where its graph is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_file: Option<String>,
    /// Its blocks.
    pub blocks: Tally,
    /// Its IR instructions, where its graph is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Tally>,
    /// Each block, in block order.
    pub coverage: Vec<Covered>,
    /// Executions that breakpoints counted, in block order; empty if none were counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<Executions>,
}

/// Coverage of a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CoverageReport {
    /// [`JSON_VERSION`].
    pub version: u32,
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// All functions.
    pub functions_all: u64,
    /// Functions with a block that is proved to have been executed.
    pub functions_proved: u64,
    /// Functions with a block that is proved or predicted to have been executed.
    pub functions_covered: u64,
    /// Functions all of whose blocks are proved not to have been executed.
    pub functions_not_executed: u64,
    /// All blocks.
    pub blocks: Tally,
    /// All IR instructions, of functions whose graphs are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Tally>,
    /// Functions with executed or predicted blocks, by descending number of those.
    pub functions: Vec<FunctionRow>,
    /// Functions without such blocks but with some that are proved not to have been executed, by descending number of
    /// those.
    pub not_executed: Vec<FunctionRow>,
    /// Functions all of whose blocks are unknown, by descending number of those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<FunctionRow>,
}

impl CoverageReport {
    /// The coverage of a profile.
    pub fn new(profile: &Profile, graphs: &Graphs<'_>) -> Self {
        let rows: Vec<FunctionRow> = profile.functions.iter().map(|f| row(f, graphs)).collect();
        let (mut blocks, mut instructions) = (Tally::default(), None);
        for row in &rows {
            blocks += row.blocks;
            if let Some(of_function) = row.instructions {
                *instructions.get_or_insert_with(Tally::default) += of_function;
            }
        }
        let functions_all = rows.len() as u64;
        let (mut functions, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.blocks.executed() > 0);
        let (mut not_executed, mut unknown): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|row| row.blocks.not_executed > 0);
        functions.sort_by(|a, b| largest_first(Tally::executed, a, b));
        not_executed.sort_by(|a, b| largest_first(|tally| tally.not_executed, a, b));
        unknown.sort_by(|a, b| largest_first(|tally| tally.unknown, a, b));
        let number =
            |rows: &[FunctionRow], of: fn(&Tally) -> bool| rows.iter().filter(|r| of(&r.blocks)).count() as u64;
        Self {
            version: JSON_VERSION,
            anchor: profile.anchor,
            functions_all,
            functions_proved: number(&functions, |tally| tally.proved() > 0),
            functions_covered: functions.len() as u64,
            functions_not_executed: number(&not_executed, Tally::is_never_executed),
            blocks,
            instructions,
            functions,
            not_executed,
            unknown,
        }
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn largest_first(size: fn(&Tally) -> u64, a: &FunctionRow, b: &FunctionRow) -> std::cmp::Ordering {
    let names = |row: &FunctionRow| [row.function.clone(), row.function_id.clone(), row.cfg_hash.clone()];
    let by_name = || names(a).cmp(&names(b));
    Reverse(size(&a.blocks))
        .cmp(&Reverse(size(&b.blocks)))
        .then_with(by_name)
}

fn row(function: &FunctionProfile, graphs: &Graphs<'_>) -> FunctionRow {
    let mut blocks = Tally::default();
    (0..function.blocks.len()).for_each(|block| blocks.note(covered(function, block), 1));
    let graph = graphs(function.id, function.cfg_hash);
    let instructions = graph.map(|cfg| {
        let mut tally = Tally::default();
        let each = cfg.blocks.iter().enumerate();
        each.for_each(|(block, of_graph)| tally.note(covered(function, block), of_graph.instructions.into()));
        tally
    });
    FunctionRow {
        function: function.name.clone(),
        function_id: function.id.to_string(),
        cfg_hash: function.cfg_hash.to_string(),
        source_file: graph.map(|cfg| cfg.source_file.clone()),
        blocks,
        instructions,
        coverage: function.coverage.clone(),
        counted: function.counted.clone(),
    }
}
