//! k-iteration paths: windows of consecutive acyclic paths of one activation, in a prefix forest
//! (feedback/ALGORITHMS.md, Path crediting).
//!
//! A window begins at each whole path and extends over the observed paths after it, k at most. Counts never increase
//! along the forest. The end of a burst cuts windows short, and long windows more often than short ones: a window of k
//! paths has k − 1 more places where it can be cut. So each node also counts how often the next path was not observed,
//! and the estimate takes each step with its probability where the next path was observed (the product-limit estimator,
//! which assumes that cut windows continue like the others):
//!
//! n(p₁…p_k) = n(p₁) · Π c(p₁…p_j) ÷ (c(p₁…p_{j−1}) − cut(p₁…p_{j−1}))

use crate::partial_path::PartialPath;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::counts::exact::ExactPath;
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{End, Start};
use std::collections::BTreeMap;

/// Consecutive whole paths of one activation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Their numbers, oldest first, at least one.
    pub paths: Vec<u64>,
    /// Whether no path followed in this activation. Otherwise one did that was not observed, or not whole.
    pub complete: bool,
}

/// The properties of a partial path that windows depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassedPath {
    /// How it begins, if that was observed.
    pub start: Option<Start>,
    /// Its first block.
    pub first: BlockIndex,
    /// How it ends, if that was observed.
    pub end: Option<End>,
    /// The path's number, if it is whole and its graph numbers it.
    pub number: Option<u64>,
}

impl PassedPath {
    /// A partial path, numbered by its function's graph.
    pub fn new(graph: &PathGraph, path: &PartialPath) -> Self {
        Self {
            start: path.start,
            first: path.blocks[0],
            end: path.end,
            number: path.whole().and_then(|whole| graph.number_of(&whole)),
        }
    }

    /// Whether it begins where a path ended.
    fn follows(&self, end: Option<End>) -> bool {
        match end {
            Some(End::Back(to) | End::Cut(to)) => self.start == Some(Start::Inside) && self.first == to,
            Some(End::Exit | End::Call) | None => false,
        }
    }
}

/// The runs in consecutive partial paths of one activation, numbered by `graph`. A path without a number ends a run.
pub fn runs(graph: &PathGraph, paths: &[PartialPath]) -> Vec<Run> {
    let passed: Vec<PassedPath> = paths.iter().map(|path| PassedPath::new(graph, path)).collect();
    runs_of_passed(&passed)
}

/// The runs in consecutive paths of one activation.
pub fn runs_of_passed(passed: &[PassedPath]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    // The end of the path before, if that has a number.
    let mut last_end = None;
    for path in passed {
        if let Some(number) = path.number {
            match runs.last_mut().filter(|_| path.follows(last_end)) {
                Some(run) => run.paths.push(number),
                None => runs.push(Run {
                    paths: vec![number],
                    complete: false,
                }),
            }
            if let (Some(run), Some(End::Exit | End::Call)) = (runs.last_mut(), path.end) {
                run.complete = true;
            }
        }
        last_end = path.end.filter(|_| path.number.is_some());
    }
    runs
}

/// A node of the prefix forest: windows with the same beginning.
#[derive(Clone, PartialEq, Debug, Default)]
struct Node {
    count: f64,
    /// How often the next path was not observed.
    cut: f64,
    next: BTreeMap<u64, Node>,
}

/// Counts of windows of one function's consecutive paths.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Forest {
    longest: usize,
    roots: BTreeMap<u64, Node>,
}

/// A window, and how often it was executed.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// Numbers of its paths, oldest first.
    pub paths: Vec<u64>,
    /// Executions, seen or estimated.
    pub count: f64,
}

impl Forest {
    /// A forest for windows of up to `longest` paths, which is at least 1.
    pub fn new(longest: usize) -> Self {
        Self {
            longest: longest.max(1),
            roots: BTreeMap::new(),
        }
    }

    /// The exact counts of an instrumented build: windows of `longest` paths, and shorter ones from the beginning of
    /// activations, which begin no window of that length and are left out. The graph has the options of the counts.
    pub fn exact(graph: &PathGraph, windows: &[ExactPath], longest: usize) -> Self {
        let mut forest = Self::new(longest);
        for window in windows.iter().filter(|window| window.path.len() == longest) {
            let numbers: Option<Vec<u64>> = window.path.iter().map(|path| graph.number_of(path)).collect();
            forest.insert(&numbers.unwrap_or_default(), window.count as f64, false);
        }
        forest
    }

    /// Adds the windows that begin in a run, seen `weight` times.
    pub fn add(&mut self, run: &Run, weight: f64) {
        for first in 0..run.paths.len() {
            let window = &run.paths[first..(first + self.longest).min(run.paths.len())];
            self.insert(window, weight, !run.complete);
        }
    }

    /// Adds all windows of another forest of the same function.
    pub fn merge(&mut self, other: &Self) {
        fn add(nodes: &mut BTreeMap<u64, Node>, others: &BTreeMap<u64, Node>) {
            for (&path, other) in others {
                let node = nodes.entry(path).or_default();
                node.count += other.count;
                node.cut += other.cut;
                add(&mut node.next, &other.next);
            }
        }
        self.longest = self.longest.max(other.longest);
        add(&mut self.roots, &other.roots);
    }

    fn insert(&mut self, window: &[u64], weight: f64, is_cut: bool) {
        let mut nodes = &mut self.roots;
        for (position, &path) in window.iter().enumerate() {
            let node = nodes.entry(path).or_default();
            node.count += weight;
            let is_last = position + 1 == window.len();
            if is_cut && is_last && window.len() < self.longest {
                node.cut += weight;
            }
            nodes = &mut node.next;
        }
    }

    /// The windows of `length` paths with their observed counts, sorted by their paths.
    pub fn seen(&self, length: usize) -> Vec<Window> {
        let root = |_: u64, node: &Node| node.count;
        self.windows(length, &root, &|_, _, node| node.count)
    }

    /// The windows of `length` paths with their estimated counts if no burst ended, sorted by their paths. `first`: a
    /// better estimate of the executions of a path than the count of whole ones, if there is any.
    pub fn estimated(&self, length: usize, first: impl Fn(u64) -> Option<f64>) -> Vec<Window> {
        let root = |path: u64, node: &Node| first(path).unwrap_or(node.count);
        let step = |above: f64, parent: &Node, node: &Node| above * (node.count / (parent.count - parent.cut)).min(1.0);
        self.windows(length, &root, &step)
    }

    fn windows(
        &self,
        length: usize,
        root: &dyn Fn(u64, &Node) -> f64,
        step: &dyn Fn(f64, &Node, &Node) -> f64,
    ) -> Vec<Window> {
        let mut out = Vec::new();
        let mut stack: Vec<(Vec<u64>, f64, &Node)> = Vec::new();
        for (&path, node) in self.roots.iter().rev() {
            stack.push((vec![path], root(path, node), node));
        }
        while let Some((paths, count, node)) = stack.pop() {
            if paths.len() == length {
                out.push(Window { paths, count });
                continue;
            }
            for (&path, next) in node.next.iter().rev() {
                let mut paths = paths.clone();
                paths.push(path);
                stack.push((paths, step(count, node, next), next));
            }
        }
        out
    }

    /// The probability of a path after a history of paths, oldest first; `None` if the path after that history was
    /// never observed.
    pub fn next(&self, history: &[u64], path: u64) -> Option<f64> {
        let (&first, rest) = history.split_first()?;
        let mut node = self.roots.get(&first)?;
        for path in rest {
            node = node.next.get(path)?;
        }
        let seen = node.count - node.cut;
        let next = node.next.get(&path).map_or(0.0, |next| next.count);
        (seen > 0.0).then_some(next / seen)
    }

    /// The number of distinct beginnings of windows.
    pub fn len(&self) -> usize {
        let mut stack: Vec<&Node> = self.roots.values().collect();
        let mut nodes = 0;
        while let Some(node) = stack.pop() {
            nodes += 1;
            stack.extend(node.next.values());
        }
        nodes
    }

    /// Whether no path was added.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }
}

/// Σ min of two lists' shares, each in the order of paths: 1 for equal distributions, 0 where either is empty.
pub fn overlap(a: &[Window], b: &[Window]) -> f64 {
    let sum = |windows: &[Window]| windows.iter().map(|w| w.count).sum::<f64>();
    let (sum_a, sum_b) = (sum(a), sum(b));
    if sum_a == 0.0 || sum_b == 0.0 {
        return 0.0;
    }
    let other: BTreeMap<&[u64], f64> = b.iter().map(|w| (w.paths.as_slice(), w.count)).collect();
    let common = |w: &Window| (w.count / sum_a).min(other.get(w.paths.as_slice()).map_or(0.0, |c| c / sum_b));
    a.iter().map(common).sum()
}
