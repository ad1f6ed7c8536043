//! The exact profile: paths and flow of every function, whatever modules it was compiled in.

use super::Counts;
use super::unit::{Unit, UnitFunction};
use crate::edges::{Flow, Inconsistent};
use crate::graph::PathGraph;
use crate::{Mode, Options, Path, edges};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::manifest::Anchor;
use std::collections::BTreeMap;

/// How often a path, or a window of consecutive ones, was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactPath {
    /// The path; where windows are counted, up to [`ExactFunction::window`] of them, oldest first.
    pub path: Vec<Path>,
    /// Executions, more than 0.
    pub count: u64,
}

/// Exact counts of one function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactFunction {
    /// Its graph at the anchor.
    pub cfg: Cfg,
    /// Where the graph was taken.
    pub anchor: Anchor,
    /// What decided the numbering.
    pub options: Options,
    /// Consecutive paths counted together.
    pub window: u8,
    /// What was executed, by descending count and then by path. Empty where edges are counted.
    pub paths: Vec<ExactPath>,
    /// How often what was executed.
    pub flow: Flow,
}

/// Exact counts of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exact {
    /// By identifier and graph. A function that was counted in several ways is there several times.
    pub functions: Vec<ExactFunction>,
    /// What could not be understood. Everything else is complete.
    pub problems: Vec<ExactProblem>,
}

/// Counts of a function that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("function {function}: {what}")]
pub struct ExactProblem {
    /// Its name.
    pub function: String,
    /// What is wrong, and what follows.
    pub what: ExactProblemKind,
}

/// What is wrong with a function's counts, and what follows.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExactProblemKind {
    /// The compiler plugin numbered the paths in another way.
    #[error(
        "{found} counters, where this pleach would place {expected}: its counts are left out; use the pleach that \
         built the program"
    )]
    Numbering {
        /// How many counters it has.
        found: u64,
        /// How many it should have.
        expected: u64,
    },
    /// Counts of edges that contradict each other.
    #[error("{0}: its counts are left out; was the program killed, or is it still running?")]
    Inconsistent(#[from] Inconsistent),
    /// Numbers of windows that no execution has.
    #[error("{keys} of its counts are of no window of paths (first: {first}) and left out")]
    NoWindow {
        /// How many such counts there are.
        keys: u64,
        /// The first of them.
        first: u64,
    },
}

/// What counts are summed by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    id: FunctionId,
    hash: CfgHash,
    anchor: u8,
    window: u8,
    is_edges: bool,
    iterations: u8,
    max_paths: u64,
    hash_above: u64,
}

impl Key {
    fn new(unit: &Unit, function: &UnitFunction) -> Self {
        Self {
            id: function.cfg.id,
            hash: function.cfg.hash(),
            anchor: unit.anchor as u8,
            window: function.window,
            is_edges: unit.options.mode == Mode::Edges,
            iterations: unit.options.iterations,
            max_paths: unit.options.max_paths,
            hash_above: unit.options.hash_above,
        }
    }
}

impl Exact {
    /// Understands counts. A function compiled into several modules from the same source is summed; sums that do not fit
    /// stay at the largest number.
    pub fn of(counts: &Counts) -> Self {
        let mut exact = Self::default();
        let mut places: BTreeMap<Key, Vec<Part<'_>>> = BTreeMap::new();
        for (unit, counts) in counts.units.values() {
            for (position, function) in unit.functions.iter().enumerate() {
                places.entry(Key::new(unit, function)).or_default().push(Part {
                    unit,
                    function,
                    counts: counts.functions.get(position).map_or(&[], Vec::as_slice),
                });
            }
        }
        for parts in places.values() {
            exact.add(parts);
        }
        exact
    }

    /// One function, from all modules that have it.
    fn add(&mut self, parts: &[Part<'_>]) {
        let mut sum: Option<ExactFunction> = None;
        // Modules may know different things of one function's calls, so that its paths have different numbers there;
        // and edges may be counted in different places.
        for part in parts {
            let name = &part.function.cfg.name;
            let mut problem = |what| {
                let function = name.clone();
                self.problems.push(ExactProblem { function, what });
            };
            match (part.exact(&mut problem), &mut sum) {
                (Ok(function), None) => sum = Some(function),
                (Ok(function), Some(sum)) => sum.add(function),
                (Err(what), _) => problem(what),
            }
        }
        self.functions.extend(sum.map(ExactFunction::sorted));
    }
}

/// A function in one module.
struct Part<'a> {
    unit: &'a Unit,
    function: &'a UnitFunction,
    counts: &'a [(u64, u64)],
}

impl Part<'_> {
    /// Counts of this module alone, in no order.
    fn exact(&self, problem: &mut impl FnMut(ExactProblemKind)) -> Result<ExactFunction, ExactProblemKind> {
        let UnitFunction { cfg, window, .. } = self.function;
        let graph = PathGraph::new(cfg, &self.unit.options);
        let (paths, edge_counts) = match self.unit.options.mode {
            Mode::Edges => (Vec::new(), self.edges(&graph)?),
            Mode::Paths => self.paths(&graph, problem)?,
        };
        Ok(ExactFunction {
            cfg: cfg.clone(),
            anchor: self.unit.anchor,
            options: self.unit.options,
            window: *window,
            paths,
            flow: edges::flow(&graph, &edge_counts),
        })
    }

    fn edges(&self, graph: &PathGraph) -> Result<Vec<u64>, Inconsistent> {
        let mut dense = vec![0; self.function.chords.len()];
        for &(number, count) in self.counts {
            if let Some(place) = usize::try_from(number).ok().and_then(|n| dense.get_mut(n)) {
                *place = count;
            }
        }
        edges::solve(graph, &self.function.chords, &dense)
    }

    /// Executed paths, and counts by edge of the graph.
    fn paths(
        &self,
        graph: &PathGraph,
        problem: &mut impl FnMut(ExactProblemKind),
    ) -> Result<(Vec<ExactPath>, Vec<u64>), ExactProblemKind> {
        let UnitFunction { window, counters, .. } = *self.function;
        let numbering = |expected| ExactProblemKind::Numbering {
            found: counters,
            expected,
        };
        let expected = match window {
            0 | 1 => graph.numbers(),
            _ => graph.numbers().saturating_add(1).saturating_pow(window.into()),
        };
        if counters != expected {
            return Err(numbering(expected));
        }
        let (mut paths, mut latest, mut bad) = (Vec::new(), Vec::new(), Vec::new());
        for &(key, count) in self.counts {
            let path = match window {
                0 | 1 => graph.path(key).map(|path| vec![path]),
                _ => graph.window(key, window),
            };
            let Some(path) = path else {
                bad.push(key);
                continue;
            };
            paths.push(ExactPath { path, count });
            // A window is counted when its latest path is complete.
            latest.push(match window {
                0 | 1 => (key, count),
                _ => (key % (graph.numbers() + 1) - 1, count),
            });
        }
        if let Some(&first) = bad.first() {
            let keys = bad.len() as u64;
            problem(ExactProblemKind::NoWindow { keys, first });
        }
        let edge_counts = edges::of_paths(graph, latest).map_err(|_| numbering(expected))?;
        Ok((paths, edge_counts))
    }
}

impl ExactFunction {
    /// How often each acyclic path was executed: what [`ExactFunction::paths`] holds where no windows are counted, else
    /// the windows' latest paths, summed. In the same order.
    pub fn acyclic(&self) -> Vec<ExactPath> {
        let latest = self.paths.iter().filter_map(|ExactPath { path, count }| {
            let path = vec![path.last()?.clone()];
            Some(ExactPath { path, count: *count })
        });
        sorted(summed(latest))
    }

    /// Whether anything of it was executed.
    pub fn is_executed(&self) -> bool {
        self.flow.blocks.iter().any(|&count| count != 0)
    }

    fn add(&mut self, other: Self) {
        self.paths = summed(self.paths.drain(..).chain(other.paths));
        let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        let add_all = |sums: &mut [u64], counts: &[u64]| {
            sums.iter_mut().zip(counts).for_each(|(sum, &count)| add(sum, count));
        };
        add(&mut self.flow.entries, other.flow.entries);
        add_all(&mut self.flow.blocks, &other.flow.blocks);
        add_all(&mut self.flow.exits, &other.flow.exits);
        for (edge, count) in other.flow.edges {
            add(self.flow.edges.entry(edge).or_default(), count);
        }
    }

    fn sorted(self) -> Self {
        Self {
            paths: sorted(self.paths),
            ..self
        }
    }
}

fn summed(paths: impl Iterator<Item = ExactPath>) -> Vec<ExactPath> {
    let mut sums: BTreeMap<Vec<Path>, u64> = BTreeMap::new();
    for ExactPath { path, count } in paths {
        let sum = sums.entry(path).or_default();
        *sum = sum.saturating_add(count);
    }
    sums.into_iter()
        .map(|(path, count)| ExactPath { path, count })
        .collect()
}

fn sorted(mut paths: Vec<ExactPath>) -> Vec<ExactPath> {
    paths.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.path.cmp(&b.path)));
    paths
}
