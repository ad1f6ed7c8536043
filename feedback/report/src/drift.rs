//! The report of `pleach drift`: whether an old profile still fits what a program does now, by a new profile.
//!
//! The question is not whether the two differ, for with enough samples they always do, but how much of what the program
//! does now the old profile would mislead the compiler about: executions of blocks that it regards as cold or does not
//! contain, and executions of branches whose more frequent direction changed.
//!
//! *What the old profile knows* is what `use` would have: the record of the same graph, or what is salvaged of an older
//! version of the function ([`pleach_decide::stale`]), without functions of new names. A block is cold from LLVM's
//! threshold on: outside the hottest blocks with 999 999 of a million executions.
//!
//! *How sure that is.* All executions of a burst may have one cause, so that the bursts of the new profile are the
//! observations: the share has Wilson's 90 % interval.
//!
//! *How much is too much.* LLVM calls the blocks with 99 % of the executions hot: any profile leaves 1 % to code that it
//! gives no priority. An old profile still fits unless the share is surely more, that is, at the lower bound of its
//! interval.

use super::compare::{DifferentAnchors, JSON_VERSION, Overlap, one_anchor};
use super::flows::{Flows, Interval};
use super::names::Names;
use super::paths::cut;
use super::paths_text::with_unit;
use super::table::table;
use super::tables::{grouped, percent, percent_range, without_padding};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::Path;
use pleach_decide::stale::{MatchKind, salvage};
use pleach_decide::support::wilson_interval;
use pleach_profile::summary::{HOT_CUTOFF, ProfileSummary};
use pleach_profile::{Covered, FunctionProfile, Profile};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The cutoff, in parts per million, below whose minimum count LLVM calls a block cold.
const COLD_CUTOFF: u32 = 999_999;

/// The share of executions that any profile leaves to code without priority.
pub const TOLERANCE: f64 = 1.0 - HOT_CUTOFF as f64 / 1e6;

/// Why the old profile would mislead the compiler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It has no function of that name.
    NewFunction,
    /// It has another version of the function, of which nothing can be salvaged.
    ChangedFunction,
    /// It proves that the block was not executed.
    NotExecuted,
    /// It has a count that is cold.
    Cold,
    /// It has no samples of the block.
    Unknown,
    /// The branch had another more frequent direction.
    OtherDirection,
}

impl Reason {
    const ALL: [Self; 6] = [
        Self::NewFunction,
        Self::ChangedFunction,
        Self::NotExecuted,
        Self::Cold,
        Self::Unknown,
        Self::OtherDirection,
    ];

    fn text(self) -> &'static str {
        match self {
            Self::NewFunction => "functions missing from the old profile",
            Self::ChangedFunction => "functions that changed beyond recognition",
            Self::NotExecuted => "blocks proved not executed in the old profile",
            Self::Cold => "blocks cold in the old profile",
            Self::Unknown => "blocks without samples in the old profile",
            Self::OtherDirection => "branches whose more frequent direction changed",
        }
    }
}

/// An estimated share.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Estimate {
    /// The share.
    pub share: f64,
    /// Lower bound of its 90 % interval.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// What an old profile is worth now.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Drift {
    /// The version of the JSON form.
    pub version: u32,
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// Whether the old profile still fits.
    pub fits: bool,
    /// The same in a sentence, and why.
    pub verdict: String,
    /// Share of the new executions that the old profile would mislead the compiler about.
    pub misled: Estimate,
    /// The largest share that still fits: [`TOLERANCE`].
    pub tolerance: f64,
    /// The parts of `misled`.
    pub reasons: BTreeMap<Reason, f64>,
    /// Share of the new executions in functions whose old version was salvaged.
    pub salvaged: f64,
    /// Overlap of the flow of paths; `None` if one side has no paths. Its interval assumes that all paths err alike.
    pub overlap_of_paths: Option<Estimate>,
    /// Overlap of the executions of blocks; `None` if one side has none.
    pub overlap_of_blocks: Option<f64>,
    /// Bursts of the old and the new profile; `None` for exact counts.
    pub bursts: [Option<u64>; 2],
    /// Functions that the old profile would mislead the compiler about, by descending share.
    pub functions: Vec<FunctionDrift>,
    /// Number of functions that are not listed.
    pub hidden: u64,
}

/// A function that changed what it does.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionDrift {
    /// Linkage name.
    pub function: String,
    /// Identifier.
    pub function_id: String,
    /// Graph of the new profile.
    pub cfg_hash: String,
    /// Its share of the new executions.
    pub share: f64,
    /// The part of that which the old profile would mislead the compiler about.
    pub misled: f64,
    /// Most of it, because.
    pub reason: Reason,
}

impl Drift {
    /// Compares an old profile with a new one. Lists at most `top` functions.
    ///
    /// # Errors
    /// Fails if the anchors differ.
    pub fn new(old: &Profile, new: &Profile, top: Option<usize>) -> Result<Self, DifferentAnchors> {
        let anchor = one_anchor(old.anchor, new.anchor)?;
        let known = Known::new(old);
        let total: f64 = new
            .functions
            .iter()
            .flat_map(|f| &f.blocks)
            .map(|&count| count as f64)
            .sum();
        let share = |count: f64| if total > 0.0 { count / total } else { 0.0 };
        let mut reasons: BTreeMap<Reason, f64> = BTreeMap::new();
        let (mut functions, mut salvaged) = (Vec::new(), 0.0);
        for function in new.functions.iter().filter(|f| f.blocks.iter().any(|&count| count > 0)) {
            let executions: f64 = function.blocks.iter().map(|&count| count as f64).sum();
            let (misled, is_salvaged) = known.misled(function);
            if is_salvaged {
                salvaged += share(executions);
            }
            for (reason, count) in &misled {
                *reasons.entry(*reason).or_default() += share(*count);
            }
            let most = misled.iter().max_by(|a, b| a.1.total_cmp(b.1));
            if let Some((&reason, _)) = most {
                functions.push(FunctionDrift {
                    function: function.name.clone(),
                    function_id: function.id.to_string(),
                    cfg_hash: function.cfg_hash.to_string(),
                    share: share(executions),
                    misled: share(misled.values().sum()),
                    reason,
                });
            }
        }
        functions.sort_by(|a, b| b.misled.total_cmp(&a.misled).then_with(|| a.function.cmp(&b.function)));
        let hidden = cut(&mut functions, top);
        // Not `sum`, which returns −0 for an empty iterator.
        let misled = estimate(reasons.values().fold(0.0, |sum, share| sum + share).min(1.0), new);
        let fits = misled.low <= TOLERANCE;
        let flows = [old, new].map(Flows::of_profile);
        let overlap = Overlap::new(&flows[0], &flows[1], None)?;
        let mut drift = Self {
            version: JSON_VERSION,
            anchor,
            fits,
            verdict: String::new(),
            misled,
            tolerance: TOLERANCE,
            reasons,
            salvaged,
            overlap_of_paths: overlap.paths.map(|share| {
                let (low, high) = overlap_interval(&flows[0], &flows[1]);
                Estimate { share, low, high }
            }),
            overlap_of_blocks: overlap.blocks,
            bursts: [old, new].map(|p| (!p.provenance.is_exact()).then_some(p.provenance.bursts)),
            functions,
            hidden,
        };
        drift.verdict = drift.sentence();
        Ok(drift)
    }

    /// The verdict.
    fn sentence(&self) -> String {
        let Estimate { share, low, high } = self.misled;
        let misled = format!("{} ({}) of the executions", percent(share), percent_range(low, high));
        let main = self.reasons.iter().max_by(|a, b| a.1.total_cmp(b.1));
        match (self.fits, main) {
            (false, Some((reason, _))) => format!(
                "record again: the old profile misleads the compiler about {misled}; main reason: {}",
                reason.text()
            ),
            _ if high > self.tolerance => format!(
                "still fits, given {}: the old profile misleads the compiler about {misled}",
                with_unit(self.bursts[1].unwrap_or(0), "new burst")
            ),
            _ => format!("still fits: the old profile misleads the compiler about {misled}"),
        }
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// For people.
    pub fn to_text(&self, names: &Names) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}\n", self.verdict);
        let mut rows = table(&["share", "of the new profile's executions"], ..1)
            .fitting(names)
            .with_texts(&["of the new profile's executions"]);
        for reason in Reason::ALL {
            if let Some(&share) = self.reasons.get(&reason) {
                rows.add_row([percent(share), reason.text().to_owned()]);
            }
        }
        rows.add_row([
            percent(self.misled.share),
            "together; a profile fits if this is at most 1 %".to_owned(),
        ]);
        if self.salvaged > 0.0 {
            let text = "in functions that changed, with counts from their older versions".to_owned();
            rows.add_row([percent(self.salvaged), text]);
        }
        let _ = writeln!(out, "{rows}\n");
        if let Some(Estimate { share, low, high }) = self.overlap_of_paths {
            let _ = writeln!(
                out,
                "overlap of paths:  {} ({})",
                percent(share),
                percent_range(low, high)
            );
        }
        if let Some(share) = self.overlap_of_blocks {
            let _ = writeln!(out, "overlap of blocks: {}", percent(share));
        }
        let [old, new] = self
            .bursts
            .map(|bursts| bursts.map_or_else(|| "exact counts".to_owned(), grouped));
        let _ = writeln!(out, "bursts: {old} old, {new} new");
        if !self.functions.is_empty() {
            let mut rows = table(&["misled", "executions", "function", "main reason"], ..2)
                .fitting(names)
                .with_texts(&["main reason"]);
            for f in &self.functions {
                let reason = f.reason.text().to_owned();
                rows.add_row([percent(f.misled), percent(f.share), names.shown(&f.function), reason]);
            }
            let _ = writeln!(out, "\n{rows}");
            if self.hidden > 0 {
                let _ = writeln!(out, "and {} more", grouped(self.hidden));
            }
        }
        without_padding(&out)
    }
}

/// A share of the new profile with its interval.
fn estimate(share: f64, new: &Profile) -> Estimate {
    let (low, high) = match new.provenance.is_exact() {
        true => (share, share),
        false => wilson_interval(share, new.provenance.bursts.max(1) as f64),
    };
    Estimate { share, low, high }
}

/// Overlap at the lower and the upper bounds of all paths' intervals: the same bursts saw all paths, so that their
/// errors are not independent.
fn overlap_interval(old: &Flows, new: &Flows) -> (f64, f64) {
    let totals = [old, new].map(|flows| flows.path_flow().max(f64::MIN_POSITIVE));
    let unseen = [old, new].map(Flows::unseen_share);
    let (mut low, mut high) = (0.0, 0.0);
    let keys: BTreeSet<_> = old.functions.keys().chain(new.functions.keys()).collect();
    for key in keys {
        let sides = [old, new].map(|flows| flows.functions.get(key));
        let paths: BTreeSet<&Path> = sides.iter().flatten().flat_map(|f| f.paths.keys()).collect();
        for path in paths {
            let ends = [0, 1].map(|side| match sides[side].and_then(|f| f.paths.get(path)) {
                Some(Interval { low, high, .. }) => (low / totals[side], high / totals[side]),
                None => (0.0, unseen[side]),
            });
            low += ends[0].0.min(ends[1].0);
            high += ends[0].1.min(ends[1].1);
        }
    }
    (low.min(1.0), high.min(1.0))
}

/// What a profile knows of functions.
struct Known<'p> {
    by_name: FxHashMap<FunctionGuid, Vec<&'p FunctionProfile>>,
    scale: f64,
    /// Smaller counts are cold.
    cold: u64,
}

/// A profile's knowledge of one function.
enum Record<'p> {
    Same(&'p FunctionProfile),
    Salvaged(Box<FunctionProfile>),
    None(Reason),
}

impl<'p> Known<'p> {
    fn new(profile: &'p Profile) -> Self {
        let mut by_name: FxHashMap<FunctionGuid, Vec<&FunctionProfile>> = FxHashMap::default();
        for function in &profile.functions {
            by_name.entry(function.id.guid).or_default().push(function);
        }
        let summary = ProfileSummary::from_functions(&profile.functions);
        Self {
            by_name,
            scale: profile.scale,
            cold: summary.min_count(COLD_CUTOFF).unwrap_or(0).max(1),
        }
    }

    /// As the compiler finds it: by identifier and graph, else by name and graph, else an older version.
    fn record(&self, id: FunctionId, cfg_hash: CfgHash, graph: Option<&Cfg>) -> Record<'p> {
        let Some(records) = self.by_name.get(&id.guid) else {
            return Record::None(Reason::NewFunction);
        };
        let same = |own: bool| records.iter().find(|r| r.cfg_hash == cfg_hash && (r.id == id) == own);
        if let Some(record) = same(true).or_else(|| same(false)) {
            return Record::Same(record);
        }
        let best = records.iter().max_by_key(|r| (r.id == id, r.samples));
        let salvaged = best
            .zip(graph)
            .and_then(|(old, new)| salvage(old, new, MatchKind::ChangedGraph, self.scale));
        match salvaged {
            Some(salvaged) => Record::Salvaged(Box::new(salvaged.profile)),
            None => Record::None(Reason::ChangedFunction),
        }
    }

    /// The executions of a function that the profile misleads the compiler about, and whether it was salvaged.
    fn misled(&self, new: &FunctionProfile) -> (BTreeMap<Reason, f64>, bool) {
        let mut misled = BTreeMap::new();
        let mut add = |reason: Reason, count: u64| *misled.entry(reason).or_default() += count as f64;
        let executed = || new.blocks.iter().enumerate().filter(|(_, count)| **count > 0);
        let salvaged;
        let (old, is_salvaged) = match self.record(new.id, new.cfg_hash, new.graph.as_deref()) {
            Record::Same(record) => (record, false),
            Record::Salvaged(record) => {
                salvaged = record;
                (&*salvaged, true)
            }
            Record::None(reason) => {
                executed().for_each(|(_, &count)| add(reason, count));
                return (misled, false);
            }
        };
        for (block, &count) in executed() {
            if let Some(reason) = self.cold_reason(old, block) {
                add(reason, count);
            }
        }
        if let Some(graph) = &new.graph {
            let count = self.other_directions(old, new, graph);
            if count > 0 {
                add(Reason::OtherDirection, count);
            }
        }
        (misled, is_salvaged)
    }

    /// Why the compiler gives no priority to a block, if so.
    fn cold_reason(&self, old: &FunctionProfile, block: usize) -> Option<Reason> {
        let count = old.blocks.get(block).copied().unwrap_or(0);
        let state = old.coverage.get(block).copied().unwrap_or_default();
        match count {
            count if count >= self.cold => None,
            0 if state < Covered::Unknown => Some(Reason::NotExecuted),
            0 => Some(Reason::Unknown),
            _ => Some(Reason::Cold),
        }
    }

    /// Executions by which the likeliest successor of a branch exceeds the one that was likeliest before. Successors
    /// that are in cold_reason are counted as blocks.
    fn other_directions(&self, old: &FunctionProfile, new: &FunctionProfile, graph: &Cfg) -> u64 {
        let mut sum = 0u64;
        for (block, base) in graph.edge_bases().iter().map(|&base| base as usize).enumerate() {
            if self.cold_reason(old, block).is_some() {
                continue;
            }
            // Slots with one target are one direction.
            let mut directions: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
            for (slot, &to) in graph.blocks[block].successors.iter().enumerate() {
                let counts = [old, new].map(|f| f.edges.get(base + slot).copied().unwrap_or(0));
                let known = directions.entry(to.0).or_default();
                *known = [known[0].saturating_add(counts[0]), known[1].saturating_add(counts[1])];
            }
            directions.retain(|&to, _| self.cold_reason(old, to as usize).is_none());
            let most = directions.values().map(|counts| counts[1]).max();
            let expected = directions
                .values()
                .max_by_key(|counts| **counts)
                .map(|counts| counts[1]);
            sum = sum.saturating_add(most.unwrap_or(0) - expected.unwrap_or(0));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::{Block, Terminator};
    use pleach_annotate::id::{BlockIndex, ModuleHash};
    use pleach_profile::Provenance;

    /// A function of a branch, its two sides, and a return.
    fn function(name: &str, [left, right]: [u64; 2]) -> FunctionProfile {
        let id = FunctionId {
            guid: FunctionGuid::of_name(name),
            module: ModuleHash(0),
        };
        let block = |successors: &[u32]| Block {
            successors: successors.iter().copied().map(BlockIndex).collect(),
            terminator: Terminator::Branch,
            is_eh_pad: false,
            instructions: 1,
            line: 0,
        };
        let graph = Cfg {
            id,
            module: ModuleHash(0),
            name: name.into(),
            source_file: "a.c".into(),
            blocks: vec![block(&[1, 2]), block(&[3]), block(&[3]), block(&[])],
            calls: Vec::new(),
        };
        FunctionProfile {
            id,
            cfg_hash: graph.hash(),
            name: name.into(),
            samples: left + right,
            blocks: vec![left + right, left, right, left + right],
            edges: vec![left, right, left, right],
            graph: Some(Box::new(graph)),
            ..FunctionProfile::default()
        }
    }

    fn profile(bursts: u64, functions: Vec<FunctionProfile>) -> Profile {
        Profile {
            provenance: Provenance {
                bursts,
                ..Provenance::default()
            },
            scale: 1.0,
            functions,
            ..Profile::default()
        }
    }

    fn drift(old: &Profile, new: &Profile) -> Drift {
        Drift::new(old, new, None).expect("one anchor")
    }

    #[test]
    fn the_same_load_fits() {
        let one = profile(1000, vec![function("f", [900, 100])]);
        let drift = drift(&one, &one);
        assert!(drift.fits && drift.reasons.is_empty());
        assert_eq!(
            drift.verdict,
            "still fits: the old profile misleads the compiler about 0.00 % (0.00–0.27 %) of the executions"
        );
    }

    #[test]
    fn what_misleads_is_told_by_its_reason() {
        let mut unsampled = function("g", [0, 50]);
        unsampled.coverage = vec![Covered::Proved, Covered::NotExecuted, Covered::Proved, Covered::Proved];
        let old = profile(1000, vec![function("f", [900, 100]), unsampled, function("h", [0, 50])]);
        let functions = [("f", [100, 200]), ("g", [30, 70]), ("h", [10, 90]), ("new", [1, 1])];
        let new = profile(1000, functions.map(|(name, counts)| function(name, counts)).to_vec());
        let drift = drift(&old, &new);
        let total = 900.0 + 300.0 + 300.0 + 6.0;
        let expected = [
            (Reason::NewFunction, 6.0 / total),
            (Reason::NotExecuted, 30.0 / total),
            (Reason::Unknown, 10.0 / total),
            // 200 − 100: as many as were not expected.
            (Reason::OtherDirection, 100.0 / total),
        ];
        assert_eq!(
            drift.reasons.keys().copied().collect::<Vec<_>>(),
            expected.map(|(reason, _)| reason)
        );
        for (reason, share) in expected {
            assert!((drift.reasons[&reason] - share).abs() < 1e-12, "{reason:?}");
        }
        assert!(!drift.fits);
        assert!(drift.verdict.starts_with("record again: "), "{}", drift.verdict);
        assert_eq!(drift.functions[0].function, "f");
        // One burst may show anything.
        let short = Profile {
            provenance: Provenance {
                bursts: 1,
                ..Provenance::default()
            },
            ..new
        };
        assert!(drift_of_short(&old, &short));
    }

    fn drift_of_short(old: &Profile, new: &Profile) -> bool {
        let drift = drift(old, new);
        drift.fits && drift.verdict.contains("still fits, given 1 new burst:")
    }
}
