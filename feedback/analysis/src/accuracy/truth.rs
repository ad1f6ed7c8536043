//! Exact counts and estimates of paths, prepared for comparison.

use super::Shares;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_ball_larus::counts::exact::{ExactFunction, ExactProfile};
use pleach_ball_larus::{Mode, NumberingOptions, Path};
use pleach_profile::Anchor;
use pleach_profile::path_profile::{FunctionPaths, PathProfile};
use std::collections::{BTreeMap, BTreeSet};

/// A function with one graph.
pub type FunctionKey = (FunctionId, CfgHash);

/// A path of a program. Ties are broken in the order of keys: function, graph, path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathKey {
    /// Its function.
    pub function: FunctionKey,
    /// The path.
    pub path: Path,
}

/// Exact counts of one function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrueFunction {
    /// Its graph at the anchor.
    pub cfg: Cfg,
    /// Executions of each acyclic path, in the order of paths.
    pub paths: BTreeMap<Path, u64>,
    /// Executions of each block.
    pub blocks: Vec<u64>,
}

impl TrueFunction {
    fn executions(&self) -> u64 {
        self.paths.values().fold(0, |sum, &count| sum.saturating_add(count))
    }
}

/// Exact counts of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Truth {
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// All counted functions, including those that were never executed.
    pub functions: BTreeMap<FunctionKey, TrueFunction>,
}

/// Why exact counts contain no paths.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TruthError {
    /// No function was counted.
    #[error("the file contains no functions")]
    Empty,
    /// Modules were instrumented at different anchors.
    #[error("it was instrumented at different anchors: compile all of it with the same --anchor")]
    MixedAnchors,
    /// Only edges were counted.
    #[error("{0}: only edges were counted: build with $(pleach flags instrument) without --edges")]
    Edges(String),
    /// Paths are cut in other places than estimated ones.
    #[error(
        "{0}: instrumented with a path limit of {1} per block, but estimates use {limit}: instrument with the default",
        limit = NumberingOptions::default().max_paths
    )]
    Limit(String, u64),
}

/// Functions that could not be compared.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Unmatched {
    /// Names of those with flow.
    pub functions: Vec<String>,
    /// Their share of the flow.
    pub share: f64,
}

impl Truth {
    /// Sums exact counts, over all modes in which a function was counted.
    ///
    /// # Errors
    /// There are no functions, several anchors, or no comparable paths.
    pub fn from_exact(exact: &ExactProfile) -> Result<Self, TruthError> {
        let anchor = exact.functions.first().ok_or(TruthError::Empty)?.anchor;
        let mut functions: BTreeMap<FunctionKey, TrueFunction> = BTreeMap::new();
        for function in &exact.functions {
            check(function, anchor)?;
            let truth = functions
                .entry((function.cfg.id, function.cfg.hash()))
                .or_insert_with(|| TrueFunction {
                    cfg: function.cfg.clone(),
                    paths: BTreeMap::new(),
                    blocks: vec![0; function.cfg.blocks.len()],
                });
            for counted in function.acyclic() {
                for path in counted.path {
                    let sum = truth.paths.entry(path).or_default();
                    *sum = sum.saturating_add(counted.count);
                }
            }
            for (sum, &count) in truth.blocks.iter_mut().zip(&function.flow.blocks) {
                *sum = sum.saturating_add(count);
            }
        }
        Ok(Self { anchor, functions })
    }

    /// Removes the functions that are not among `known`, and returns them with their share of the executions.
    pub fn restrict(&mut self, known: &BTreeSet<FunctionKey>) -> Unmatched {
        let all: u64 = self.functions.values().map(TrueFunction::executions).sum();
        let mut unmatched = Unmatched::default();
        let mut executions = 0;
        self.functions.retain(|key, function| {
            let is_known = known.contains(key);
            let count = function.executions();
            if !is_known && count > 0 {
                executions += count;
                unmatched.functions.push(function.cfg.name.clone());
            }
            is_known
        });
        unmatched.share = executions as f64 / all.max(1) as f64;
        unmatched
    }

    /// The flow of each executed path.
    pub fn flow(&self) -> Shares<PathKey> {
        let paths = self.functions.iter().flat_map(|(&function, truth)| {
            let key = move |path: &Path| PathKey {
                function,
                path: path.clone(),
            };
            truth.paths.iter().map(move |(path, &count)| (key(path), count as f64))
        });
        Shares::new(paths, 0.0)
    }

    /// Removes the functions that were not counted from an estimate, and returns them with their share of it.
    pub fn take_uncounted(&self, profile: &mut PathProfile) -> Unmatched {
        let all = profile.total();
        let is_counted = |f: &FunctionPaths| self.functions.contains_key(&(f.id, f.cfg_hash));
        let (counted, others): (Vec<_>, Vec<_>) = profile.functions.drain(..).partition(is_counted);
        profile.functions = counted;
        let rest = all - profile.total();
        Unmatched {
            functions: others.into_iter().map(|f| f.name).collect(),
            share: if all > 0.0 { rest.max(0.0) / all } else { 0.0 },
        }
    }
}

/// An estimate, prepared for comparison.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Estimated {
    /// Estimated flow.
    pub shares: Shares<PathKey>,
    /// The interval of each path's flow.
    pub intervals: BTreeMap<PathKey, (f64, f64)>,
}

impl Estimated {
    /// The shares and intervals of an estimate's paths, relative to its total.
    pub fn new(profile: &PathProfile) -> Self {
        let listed = profile.functions.iter().flat_map(|f| {
            f.paths.iter().map(|estimate| {
                let path = estimate.path.clone();
                let function = (f.id, f.cfg_hash);
                (PathKey { function, path }, estimate)
            })
        });
        let total = profile.total();
        let unlisted = profile.functions.iter().map(|f| f.unlisted).sum();
        Self {
            intervals: listed
                .clone()
                .map(|(key, e)| (key, (e.low / total, e.high / total)))
                .collect(),
            shares: Shares::new(listed.map(|(key, e)| (key, e.count)), unlisted),
        }
    }
}

fn check(function: &ExactFunction, anchor: Anchor) -> Result<(), TruthError> {
    let name = || function.cfg.name.clone();
    if function.anchor != anchor {
        return Err(TruthError::MixedAnchors);
    }
    if function.options.mode == Mode::Edges {
        return Err(TruthError::Edges(name()));
    }
    if function.options.max_paths != NumberingOptions::default().max_paths {
        return Err(TruthError::Limit(name(), function.options.max_paths));
    }
    Ok(())
}
