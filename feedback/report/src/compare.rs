//! The report of `pleach overlap`: how much two profiles, or a profile and exact counts, agree.
//!
//! The overlap of two distributions is the sum of the minima of their shares: 1 for equal distributions, 0 for disjoint
//! ones. A function's difference is its contribution to 1 − overlap: half of Σ |share − share| over its paths or
//! blocks.

use super::flows::{Flows, FunctionFlow, FunctionKey, changed_functions};
use super::names::Names;
use super::paths_text::with_unit;
use super::table::table;
use super::tables::{grouped, percent, without_padding};
use pleach_annotate::manifest::Anchor;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Version of the JSON form. It changes when a key is removed or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// The two cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the first is of the {first} anchor, the second of the {second} anchor: compare profiles of one anchor only")]
pub struct DifferentAnchors {
    /// The first one's anchor.
    pub first: &'static str,
    /// The second one's anchor.
    pub second: &'static str,
}

/// The common anchor. Blocks at different anchors are not comparable.
pub(super) fn one_anchor(first: Anchor, second: Anchor) -> Result<Anchor, DifferentAnchors> {
    if first == second {
        return Ok(first);
    }
    Err(DifferentAnchors {
        first: first.name(),
        second: second.name(),
    })
}

/// The agreement of two profiles.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overlap {
    /// [`JSON_VERSION`].
    pub version: u32,
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// Overlap of the flow of paths; `None` if one side has no paths.
    pub paths: Option<f64>,
    /// Overlap of the executions of blocks; `None` if one side has none.
    pub blocks: Option<f64>,
    /// Executed paths in the first, in the second, in both.
    pub path_numbers: [u64; 3],
    /// Number of functions with different graphs in the two.
    pub changed_functions: u64,
    /// Functions that differ, by descending difference.
    pub functions: Vec<FunctionOverlap>,
    /// Number of functions that are not listed.
    pub hidden: u64,
}

/// The difference of a function.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionOverlap {
    /// Linkage name.
    pub function: String,
    /// Identifier.
    pub function_id: String,
    /// Graph that the counts are of.
    pub cfg_hash: String,
    /// Its share of the flow of paths in the first and the second.
    pub path_shares: [f64; 2],
    /// Contribution of its paths to 1 − overlap.
    pub path_difference: f64,
    /// Its share of executions of blocks in the first and the second.
    pub block_shares: [f64; 2],
    /// Contribution of its blocks to 1 − overlap.
    pub block_difference: f64,
}

impl Overlap {
    /// Compares two profiles. Lists at most `top` functions.
    ///
    /// # Errors
    /// Fails if the anchors differ.
    pub fn new(first: &Flows, second: &Flows, top: Option<usize>) -> Result<Self, DifferentAnchors> {
        let anchor = one_anchor(first.anchor, second.anchor)?;
        let totals = [first, second].map(|flows| Totals {
            paths: flows.path_flow(),
            blocks: flows.block_flow(),
        });
        let keys: BTreeSet<&FunctionKey> = first.functions.keys().chain(second.functions.keys()).collect();
        let none = FunctionFlow::default();
        let mut numbers = [0; 3];
        let mut functions = Vec::new();
        let (mut paths, mut blocks) = (0.0, 0.0);
        for key in keys {
            let sides = [first, second].map(|flows| flows.functions.get(key).unwrap_or(&none));
            count_paths(sides, &mut numbers);
            let function = FunctionOverlap::new(key, sides, &totals);
            paths += function.path_shares.iter().sum::<f64>() / 2.0 - function.path_difference;
            blocks += function.block_shares.iter().sum::<f64>() / 2.0 - function.block_difference;
            functions.push(function);
        }
        let weight = |f: &FunctionOverlap| f.path_difference.max(f.block_difference);
        // Rounding alone makes no difference.
        functions.retain(|f| weight(f) > 1e-12);
        functions.sort_by(|a, b| {
            let by_name = || (&a.function, &a.cfg_hash).cmp(&(&b.function, &b.cfg_hash));
            weight(b).total_cmp(&weight(a)).then_with(by_name)
        });
        let hidden = super::paths::cut(&mut functions, top);
        let both = |of: fn(&Totals) -> f64| totals.iter().all(|t| of(t) > 0.0);
        Ok(Self {
            version: JSON_VERSION,
            anchor,
            paths: both(|t| t.paths).then_some(paths),
            blocks: both(|t| t.blocks).then_some(blocks),
            path_numbers: numbers,
            changed_functions: changed_functions(first, second),
            functions,
            hidden,
        })
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// For people.
    pub fn to_text(&self, names: &Names) -> String {
        let mut out = String::new();
        let [first, second, both] = self.path_numbers.map(grouped);
        let share = |overlap: Option<f64>| overlap.map_or("unknown".into(), percent);
        let _ = writeln!(
            out,
            "overlap of paths:  {} ({first} and {second} paths, {both} of them the same)",
            share(self.paths)
        );
        let _ = writeln!(out, "overlap of blocks: {}", share(self.blocks));
        if self.changed_functions > 0 {
            let functions = with_unit(self.changed_functions, "function");
            let _ = writeln!(
                out,
                "{functions} with other control flow in each: the two are of different builds"
            );
        }
        if !self.functions.is_empty() {
            let header = [
                "difference",
                "paths, first",
                "second",
                "blocks, first",
                "second",
                "function",
            ];
            let mut rows = table(&header, ..5).fitting(names);
            for f in &self.functions {
                rows.add_row([
                    percent(f.path_difference.max(f.block_difference)),
                    percent(f.path_shares[0]),
                    percent(f.path_shares[1]),
                    percent(f.block_shares[0]),
                    percent(f.block_shares[1]),
                    names.shown(&f.function),
                ]);
            }
            let _ = writeln!(out, "\n{rows}");
            if self.hidden > 0 {
                let _ = writeln!(out, "and {} more", grouped(self.hidden));
            }
            let _ = writeln!(
                out,
                "\ndifference: what the function takes from the overlap of paths or of blocks, whichever is more; then its shares"
            );
        }
        without_padding(&out)
    }
}

struct Totals {
    paths: f64,
    blocks: f64,
}

fn count_paths([first, second]: [&FunctionFlow; 2], numbers: &mut [u64; 3]) {
    numbers[0] += first.paths.len() as u64;
    numbers[1] += second.paths.len() as u64;
    numbers[2] += first
        .paths
        .keys()
        .filter(|path| second.paths.contains_key(path))
        .count() as u64;
}

impl FunctionOverlap {
    fn new(key: &FunctionKey, sides: [&FunctionFlow; 2], totals: &[Totals; 2]) -> Self {
        let mut paths: BTreeMap<_, [f64; 2]> = BTreeMap::new();
        let mut blocks = vec![[0.0; 2]; sides[0].blocks.len().max(sides[1].blocks.len())];
        for (side, (function, total)) in sides.iter().zip(totals).enumerate() {
            let share = |count: f64, total: f64| if total > 0.0 { count / total } else { 0.0 };
            for (path, interval) in &function.paths {
                paths.entry(path).or_default()[side] = share(interval.count, total.paths);
            }
            for (shares, &count) in blocks.iter_mut().zip(&function.blocks) {
                shares[side] = share(count, total.blocks);
            }
        }
        let (path_shares, path_difference) = sums(paths.into_values());
        let (block_shares, block_difference) = sums(blocks);
        Self {
            function: sides
                .iter()
                .map(|f| &f.name)
                .find(|n| !n.is_empty())
                .cloned()
                .unwrap_or_default(),
            function_id: key.0.to_string(),
            cfg_hash: key.1.to_string(),
            path_shares,
            path_difference,
            block_shares,
            block_difference,
        }
    }
}

/// Sums of both sides' shares, and half the sum of their differences.
fn sums(shares: impl IntoIterator<Item = [f64; 2]>) -> ([f64; 2], f64) {
    shares.into_iter().fold(([0.0; 2], 0.0), |(sums, difference), [a, b]| {
        ([sums[0] + a, sums[1] + b], difference + (a - b).abs() / 2.0)
    })
}
