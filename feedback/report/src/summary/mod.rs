//! The report of `pleach summary`: what `flags use` did with each function of a build, and why not more. It is read from
//! the optimisation records that clang writes with `-fsave-optimization-record`.
//!
//! 1. `read`: documents of a record that are about pleach or about inlining.
//! 2. This file: remarks become functions and totals.
//! 3. `text`: tables for people.

mod read;
mod text;

pub use read::{RecordError, Remark, read_record};
pub use text::{NotInBuild, SummaryOptions};

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Version of the JSON form. It changes when a key is removed or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// What `flags use` did in a build.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct BuildSummary {
    /// [`JSON_VERSION`].
    pub version: u32,
    /// Number of optimisation records that were read.
    pub records: usize,
    /// Sums over all functions.
    pub totals: Totals,
    /// Functions with remarks, those with most done first.
    pub functions: Vec<FunctionSummary>,
    /// Number of functions that are not listed.
    pub hidden: u64,
    /// Whether one function was asked for.
    #[serde(skip)]
    detailed: bool,
}

/// Sums over functions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Functions with a remark about the profile. One that several files define counts once for each.
    pub functions: u64,
    /// Functions by what became of the profile: names of [`Treatment`].
    pub treatments: BTreeMap<Treatment, u64>,
    /// What was done.
    pub done: OptimisationCounts,
}

/// What became of a function's profile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Treatment {
    /// The profile was recorded on a function with this graph.
    Used,
    /// The profile is of an older version of the function, or of an equal one.
    Salvaged,
    /// Not executed, or without samples: optimised for size.
    Size,
    /// Executed rarely: less is inlined into it.
    Rare,
    /// Without samples: placed in a cold section.
    Unlikely,
    /// Without samples, and not known to be cold.
    NotSampled,
    /// Its control flow changed too much.
    Stale,
    /// The profile has only another function of this name.
    OtherOfName,
    /// Not in the profile.
    Absent,
}

impl Treatment {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Used => "profile used: the graph is unchanged",
            Self::Salvaged => "profile used: of an older version",
            Self::Size => "optimised for size",
            Self::Rare => "executed rarely: less is inlined into it",
            Self::Unlikely => "without samples: placed in a cold section",
            Self::NotSampled => "without samples: compiled without a profile",
            Self::Stale => "not matched: its control flow changed too much",
            Self::OtherOfName => "not matched: the profile has another function of this name",
            Self::Absent => "not matched: not in the profile",
        }
    }
}

impl Treatment {
    /// In a table.
    pub fn short(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Salvaged => "of an older version",
            Self::Size => "for size",
            Self::Rare => "rare",
            Self::Unlikely => "cold section",
            Self::NotSampled => "no samples",
            Self::Stale => "changed too much",
            Self::OtherOfName => "another function",
            Self::Absent => "not in the profile",
        }
    }
}

/// Numbers of what was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OptimisationCounts {
    /// Superblocks formed.
    pub superblocks: u64,
    /// IR instructions copied for them.
    pub copied: u64,
    /// Joins that were not copied, as their gain is less than the cost of the code.
    pub not_profitable: u64,
    /// Joins that were not copied, as a limit on code size excludes them.
    pub too_large: u64,
    /// Branches that were if-converted.
    pub if_converted: u64,
    /// Selects that became branches.
    pub selects_to_branches: u64,
    /// Blocks split off.
    pub split: u64,
    /// Calls that were inlined into it.
    pub inlined: u64,
}

impl OptimisationCounts {
    fn add(&mut self, other: &Self) {
        self.superblocks += other.superblocks;
        self.copied += other.copied;
        self.not_profitable += other.not_profitable;
        self.too_large += other.too_large;
        self.if_converted += other.if_converted;
        self.selects_to_branches += other.selects_to_branches;
        self.split += other.split;
        self.inlined += other.inlined;
    }

    /// Number of transformations, for the order of functions.
    fn number(&self) -> u64 {
        self.superblocks + self.if_converted + self.selects_to_branches
    }

    /// Takes a remark's numbers.
    fn note(&mut self, remark: &Remark) {
        self.superblocks += remark.number("Superblocks");
        self.copied += remark.number("Copied");
        self.not_profitable += remark.number("NotProfitable");
        self.too_large += remark.number("TooLarge");
        self.if_converted += remark.number("IfConverted");
        self.selects_to_branches += remark.number("SelectsToBranches");
        self.split += remark.number("SplitBlocks");
        self.inlined += u64::from(remark.pass == "inline" && remark.passed);
    }
}

/// A function of a build.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FunctionSummary {
    /// Linkage name.
    pub function: String,
    /// Its source file, where the build has debug information; it tells functions of the same name apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The function's line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What became of its profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub treatment: Option<Treatment>,
    /// What was done.
    pub done: OptimisationCounts,
    /// Blocks at the anchor that are in superblocks: each superblock with its blocks in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub superblocks: Vec<Vec<u32>>,
    /// Source lines of what was done, where the compiler knows them and the code was not inlined from elsewhere.
    #[serde(skip_serializing_if = "Lines::is_empty")]
    pub lines: Lines,
    /// What the compiler said, in its order.
    pub remarks: Vec<RemarkText>,
}

/// Source lines of transformations.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Lines {
    /// Of branches that were if-converted.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub if_converted: BTreeSet<u32>,
    /// Of selects that became branches.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub selects_to_branches: BTreeSet<u32>,
    /// Of blocks that were split off: where each begins.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub split: BTreeSet<u32>,
}

impl Lines {
    fn is_empty(&self) -> bool {
        self.if_converted.is_empty() && self.selects_to_branches.is_empty() && self.split.is_empty()
    }

    /// Takes a remark's lines.
    fn note(&mut self, remark: &Remark) {
        let lines = match remark.name.as_str() {
            "IfConversion" => &mut self.if_converted,
            "SelectToBranch" => &mut self.selects_to_branches,
            "Placed" => &mut self.split,
            _ => return,
        };
        let named = remark.arguments.iter().filter(|(key, _)| key == "Line");
        lines.extend(named.filter_map(|(_, line)| line.parse::<u32>().ok()));
    }
}

/// A remark's text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RemarkText {
    /// The remark's name, such as `Superblocks`.
    pub name: String,
    /// Whether it says what was done; otherwise, what was not.
    pub done: bool,
    /// The text.
    pub text: String,
}

impl BuildSummary {
    /// Sums up the remarks of several records, each of one compilation.
    pub fn new(records: &[Vec<Remark>]) -> Self {
        let mut functions: BTreeMap<(&str, usize), FunctionSummary> = BTreeMap::new();
        for (record, remarks) in records.iter().enumerate() {
            for remark in remarks {
                // A name is unique in a compilation, and local functions of several may share it.
                let function = functions.entry((&remark.function, record));
                function.or_default().note(remark);
            }
        }
        // Inlining alone says nothing about a profile.
        let mut functions: Vec<FunctionSummary> = functions.into_values().filter(|f| !f.remarks.is_empty()).collect();
        functions.sort_by(|a, b| {
            let name = |f: &FunctionSummary| (f.function.clone(), f.file.clone());
            let order = |f: &FunctionSummary| (Reverse(f.done.number()), Reverse(f.done.inlined), f.treatment);
            order(a).cmp(&order(b)).then_with(|| name(a).cmp(&name(b)))
        });
        let mut totals = Totals::default();
        for function in &functions {
            totals.functions += u64::from(function.treatment.is_some());
            if let Some(treatment) = function.treatment {
                *totals.treatments.entry(treatment).or_default() += 1;
            }
            totals.done.add(&function.done);
        }
        Self {
            version: JSON_VERSION,
            records: records.len(),
            totals,
            functions,
            hidden: 0,
            detailed: false,
        }
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl FunctionSummary {
    fn note(&mut self, remark: &Remark) {
        self.done.note(remark);
        self.function.clone_from(&remark.function);
        // The inliner's remarks are at the call, which may be in another file.
        if remark.pass != "pleach" {
            return;
        }
        if self.file.is_none() {
            (self.file, self.line) = (remark.file.clone(), remark.line);
        }
        let treatment = match remark.name.as_str() {
            "ProfileUsed" if remark.argument("Origin").is_some() => Some(Treatment::Salvaged),
            "ProfileUsed" => Some(Treatment::Used),
            "Cold" => Some(Treatment::Size),
            "Rare" => Some(Treatment::Rare),
            "Unlikely" => Some(Treatment::Unlikely),
            "NotSampled" => Some(Treatment::NotSampled),
            "StaleProfile" => Some(Treatment::Stale),
            "OtherFunction" => Some(Treatment::OtherOfName),
            "NoProfile" | "FunctionTooLarge" => Some(Treatment::Absent),
            _ => None,
        };
        self.treatment = treatment.or(self.treatment);
        self.lines.note(remark);
        let blocks = remark.arguments.iter().filter(|(key, _)| key == "Trace");
        self.superblocks
            .extend(blocks.map(|(_, text)| text.split(' ').filter_map(|b| b.parse().ok()).collect()));
        self.remarks.push(RemarkText {
            name: remark.name.clone(),
            done: remark.passed,
            text: remark.text.clone(),
        });
    }
}
