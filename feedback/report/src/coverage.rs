//! The report of `pleach coverage`: how many blocks of each function were executed, and how that is known.

use super::show::Graphs;
use super::tables::{grouped, table, without_padding};
use pleach_annotate::manifest::Anchor;
use pleach_profile::{Covered, FunctionProfile, Profile};
use serde::Serialize;
use std::fmt::Write;
use std::ops::AddAssign;

/// Version of the JSON form. It changes when a key is removed or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// Numbers of blocks, or of IR instructions, by what is known about their execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// All.
    pub all: u64,
    /// Proved by recorded branches.
    pub seen: u64,
    /// Implied by executed blocks.
    pub by_dominance: u64,
    /// Shadow execution passed them, but the program may not have.
    pub predicted: u64,
    /// Implied by predicted blocks.
    pub predicted_by_dominance: u64,
    /// Proved not to have been executed.
    pub not_executed: u64,
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

    fn note(&mut self, covered: Covered, weight: u64) {
        self.all += weight;
        match covered {
            Covered::NotExecuted => self.not_executed += weight,
            Covered::CodeNotExecuted | Covered::Unknown => {}
            Covered::Proved => self.seen += weight,
            Covered::ByDominance => self.by_dominance += weight,
            Covered::Predicted => self.predicted += weight,
            Covered::PredictedByDominance => self.predicted_by_dominance += weight,
        }
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
    /// Its blocks.
    pub blocks: Tally,
    /// Its IR instructions, where its graph is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Tally>,
    /// Each block, in block order.
    pub coverage: Vec<Covered>,
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
    /// Functions with blocks that are only predicted.
    pub functions_covered: u64,
    /// All blocks.
    pub blocks: Tally,
    /// All IR instructions, of functions whose graphs are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Tally>,
    /// Functions with covered blocks, by descending number of covered blocks.
    pub functions: Vec<FunctionRow>,
}

impl CoverageReport {
    /// The coverage of a profile.
    pub fn new(profile: &Profile, graphs: &Graphs<'_>) -> Self {
        let mut rows: Vec<FunctionRow> = profile.functions.iter().map(|f| row(f, graphs)).collect();
        let (mut blocks, mut instructions) = (Tally::default(), None);
        for row in &rows {
            blocks += row.blocks;
            if let Some(of_function) = row.instructions {
                *instructions.get_or_insert_with(Tally::default) += of_function;
            }
        }
        let functions_all = rows.len() as u64;
        rows.retain(|row| row.blocks.proved() + row.blocks.only_predicted() > 0);
        rows.sort_by(|a, b| {
            let size = |row: &FunctionRow| std::cmp::Reverse(row.blocks.proved() + row.blocks.only_predicted());
            (size(a), &a.function, &a.function_id, &a.cfg_hash).cmp(&(
                size(b),
                &b.function,
                &b.function_id,
                &b.cfg_hash,
            ))
        });
        Self {
            version: JSON_VERSION,
            anchor: profile.anchor,
            functions_all,
            functions_proved: rows.iter().filter(|row| row.blocks.proved() > 0).count() as u64,
            functions_covered: rows.len() as u64,
            blocks,
            instructions,
            functions: rows,
        }
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// For people: the totals, and at most `top` functions.
    pub fn to_text(&self, top: Option<usize>) -> String {
        let mut out = String::new();
        let percent = |part: u64, all: u64| format!("{:.1} %", 100.0 * part as f64 / all.max(1) as f64);
        let mut total = |what: &str, tally: &Tally| {
            let _ = writeln!(
                out,
                "{what}: {} of {} executed ({}; {} seen, {} by dominance), {} more predicted",
                grouped(tally.proved()),
                grouped(tally.all),
                percent(tally.proved(), tally.all),
                grouped(tally.seen),
                grouped(tally.by_dominance),
                grouped(tally.only_predicted()),
            );
        };
        total("blocks", &self.blocks);
        if let Some(instructions) = &self.instructions {
            total("IR instructions", instructions);
        }
        let _ = writeln!(
            out,
            "functions: {} of {} executed, {} more predicted\n",
            grouped(self.functions_proved),
            grouped(self.functions_all),
            grouped(self.functions_covered - self.functions_proved),
        );
        let mut functions = table(
            &["executed", "predicted", "blocks", "seen", "by dominance", "function"],
            ..5,
        );
        let shown = self.functions.len().min(top.unwrap_or(usize::MAX));
        for row in &self.functions[..shown] {
            let Tally {
                all,
                seen,
                by_dominance,
                ..
            } = row.blocks;
            functions.add_row([
                percent(row.blocks.proved(), all),
                percent(row.blocks.only_predicted(), all),
                grouped(all),
                grouped(seen),
                grouped(by_dominance),
                row.function.clone(),
            ]);
        }
        out += &without_padding(&functions.to_string());
        if shown < self.functions.len() {
            let _ = writeln!(out, "and {} more: --top 0 lists them all", self.functions.len() - shown);
        }
        out
    }
}

fn row(function: &FunctionProfile, graphs: &Graphs<'_>) -> FunctionRow {
    let covered = |block: usize| function.coverage.get(block).copied().unwrap_or_default();
    let mut blocks = Tally::default();
    (0..function.blocks.len()).for_each(|block| blocks.note(covered(block), 1));
    let instructions = graphs(function.id, function.cfg_hash).map(|cfg| {
        let mut tally = Tally::default();
        let each = cfg.blocks.iter().enumerate();
        each.for_each(|(block, of_graph)| tally.note(covered(block), of_graph.instructions.into()));
        tally
    });
    FunctionRow {
        function: function.name.clone(),
        function_id: function.id.to_string(),
        cfg_hash: function.cfg_hash.to_string(),
        blocks,
        instructions,
        coverage: function.coverage.clone(),
    }
}
