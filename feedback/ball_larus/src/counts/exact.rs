//! The exact profile: paths and flow of every function, summed over the modules that it was compiled in.

use super::Counts;
use super::unit::{Unit, UnitFunction};
use crate::data::{Mode, NumberingOptions, Path};
use crate::edges::{self, ExactFlow, Inconsistent};
use crate::graph::PathGraph;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::manifest::Anchor;
use std::collections::BTreeMap;

/// Exact count of a path, or of a window of consecutive paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactPath {
    /// The path. If windows are counted: up to [`ExactFunction::window`] paths, oldest first.
    pub path: Vec<Path>,
    /// Executions, more than 0.
    pub count: u64,
}

/// Exact counts of one function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactFunction {
    /// Its graph at the anchor.
    pub cfg: Cfg,
    /// The anchor of the graph.
    pub anchor: Anchor,
    /// Options of the numbering.
    pub options: NumberingOptions,
    /// Number of consecutive paths counted together.
    pub window: u8,
    /// Executed paths, by descending count and then by path. Empty if edges were counted.
    pub paths: Vec<ExactPath>,
    /// Counts of blocks and edges.
    pub flow: ExactFlow,
}

/// Exact counts of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExactProfile {
    /// Ordered by identifier and graph. A function that was counted with different options is listed several times.
    pub functions: Vec<ExactFunction>,
    /// Counts that could not be interpreted. Everything else is complete.
    pub problems: Vec<ExactProblem>,
}

/// Counts of a function that cannot be interpreted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("function {function}: {what}")]
pub struct ExactProblem {
    /// The function's name.
    pub function: String,
    /// What is wrong, and which counts are left out.
    pub what: ExactProblemKind,
}

/// What is wrong with a function's counts, and which of them are left out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExactProblemKind {
    /// The compiler plugin numbered the paths differently.
    #[error(
        "{found} counters, where this pleach would place {expected}: its counts are left out; use the pleach that \
         built the program"
    )]
    Numbering {
        /// Number of counters of the program.
        found: u64,
        /// Number of counters that this build would place.
        expected: u64,
    },
    /// Counts of edges that contradict each other.
    #[error("{0}: its counts are left out; was the program killed, or is it still running?")]
    Inconsistent(#[from] Inconsistent),
    /// Keys that no window of paths has.
    #[error("{keys} of its counts belong to no window of paths (first: {first}) and are left out")]
    NoWindow {
        /// Number of such counts.
        keys: u64,
        /// The first such key.
        first: u64,
    },
}

/// Counts of functions with equal keys are summed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SumKey {
    id: FunctionId,
    hash: CfgHash,
    anchor: u8,
    window: u8,
    is_edges: bool,
    iterations: u8,
    max_paths: u64,
    hash_above: u64,
}

impl SumKey {
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

impl ExactProfile {
    /// Turns counters into paths and flow. The counts of a function that was compiled into several modules from the
    /// same source are summed; sums saturate. Counts that cannot be interpreted become [`ExactProfile::problems`].
    pub fn from_counts(counts: &Counts) -> Self {
        let mut exact = Self::default();
        let mut parts: BTreeMap<SumKey, Vec<Part<'_>>> = BTreeMap::new();
        for (unit, counts) in counts.units.values() {
            for (position, function) in unit.functions.iter().enumerate() {
                parts.entry(SumKey::new(unit, function)).or_default().push(Part {
                    unit,
                    function,
                    counts: counts.functions.get(position).map_or(&[], Vec::as_slice),
                });
            }
        }
        for parts in parts.values() {
            exact.add(parts);
        }
        exact
    }

    /// Adds one function, from all modules that have it.
    fn add(&mut self, parts: &[Part<'_>]) {
        let mut sum: Option<ExactFunction> = None;
        // Paths and edges are summed, not counters: modules may differ in what they know about a function's calls, and
        // then number its paths or place its counters differently.
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

/// Counts of a function in one module.
struct PathCounts {
    /// Executed paths.
    paths: Vec<ExactPath>,
    /// Counts of the graph's edges, by [`EdgeIndex`](crate::graph::EdgeIndex).
    edges: Vec<u64>,
}

/// A function in one module.
struct Part<'a> {
    unit: &'a Unit,
    function: &'a UnitFunction,
    counts: &'a [(u64, u64)],
}

impl Part<'_> {
    /// The counts of this module, unordered.
    fn exact(&self, problem: &mut impl FnMut(ExactProblemKind)) -> Result<ExactFunction, ExactProblemKind> {
        let UnitFunction { cfg, window, .. } = self.function;
        let graph = PathGraph::new(cfg, &self.unit.options);
        let counts = match self.unit.options.mode {
            Mode::Edges => PathCounts {
                paths: Vec::new(),
                edges: self.edges(&graph)?,
            },
            Mode::Paths => self.paths(&graph, problem)?,
        };
        Ok(ExactFunction {
            cfg: cfg.clone(),
            anchor: self.unit.anchor,
            options: self.unit.options,
            window: *window,
            paths: counts.paths,
            flow: edges::flow(&graph, &counts.edges),
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

    fn paths(
        &self,
        graph: &PathGraph,
        problem: &mut impl FnMut(ExactProblemKind),
    ) -> Result<PathCounts, ExactProblemKind> {
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
        let (mut paths, mut latest, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for &(key, count) in self.counts {
            let path = match window {
                0 | 1 => graph.path(key).map(|path| vec![path]),
                _ => graph.window(key, window),
            };
            let Some(path) = path else {
                unknown.push(key);
                continue;
            };
            paths.push(ExactPath { path, count });
            // A window is counted when its latest path is complete.
            latest.push(match window {
                0 | 1 => (key, count),
                _ => (key % (graph.numbers() + 1) - 1, count),
            });
        }
        if let Some(&first) = unknown.first() {
            let keys = unknown.len() as u64;
            problem(ExactProblemKind::NoWindow { keys, first });
        }
        let edges = edges::counts_of_paths(graph, latest).map_err(|_| numbering(expected))?;
        Ok(PathCounts { paths, edges })
    }
}

impl ExactFunction {
    /// Counts of acyclic paths: [`ExactFunction::paths`] itself, or sums over the latest paths of windows. In the same
    /// order.
    pub fn acyclic(&self) -> Vec<ExactPath> {
        let latest = self.paths.iter().filter_map(|ExactPath { path, count }| {
            let path = vec![path.last()?.clone()];
            Some(ExactPath { path, count: *count })
        });
        sorted(summed(latest))
    }

    /// Whether any block was executed.
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
