//! k-iteration paths: windows of consecutive acyclic paths of one activation, kept in a prefix forest (ALGORITHMS 5.1).
//!
//! A window begins at each path that was seen whole and goes on for as long as the paths after it were seen, k at most. Along
//! the forest counts never grow. A burst that ends cuts windows short, long ones more often than short ones: a window of k
//! has k − 1 places more where a burst's end can cut it. So each node also counts how often what followed was not seen, and
//! the estimate takes each step with the probability that it has where the next path was seen (the product-limit estimator;
//! it takes what is cut off to be like what is not):
//!
//! n(p₁…p_k) = n(p₁) · Π c(p₁…p_j) ÷ (c(p₁…p_{j−1}) − cut(p₁…p_{j−1}))

use crate::partial_path::PartialPath;
use pleach_ball_larus::counts::exact::ExactPath;
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{End, Path, Start};
use std::collections::BTreeMap;

/// Consecutive whole paths of one activation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Their numbers, oldest first, at least one.
    pub paths: Vec<u64>,
    /// No path followed in this activation. Otherwise something did that was not seen, or not as a whole.
    pub complete: bool,
}

/// The runs in consecutive pieces of one activation. A graph numbers the paths; one that has no number ends a run.
pub fn runs(graph: &PathGraph, pieces: &[PartialPath]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut last: Option<Path> = None;
    for piece in pieces {
        let whole = piece.whole();
        let number = whole.as_ref().and_then(|path| graph.number_of(path));
        if let Some(number) = number {
            let goes_on = last.as_ref().is_some_and(|last| follows(last, piece));
            match runs.last_mut().filter(|_| goes_on) {
                Some(run) => run.paths.push(number),
                None => runs.push(Run {
                    paths: vec![number],
                    complete: false,
                }),
            }
            if let (Some(run), Some(End::Exit | End::Call)) = (runs.last_mut(), piece.end) {
                run.complete = true;
            }
        }
        last = whole.filter(|_| number.is_some());
    }
    runs
}

/// Whether a piece begins where a path ended.
fn follows(path: &Path, piece: &PartialPath) -> bool {
    match path.end {
        End::Back(to) | End::Cut(to) => piece.start == Some(Start::Inside) && piece.blocks.first() == Some(&to),
        End::Exit | End::Call => false,
    }
}

/// What was seen of windows with one beginning.
#[derive(Clone, PartialEq, Debug, Default)]
struct Node {
    count: f64,
    /// How often what followed was not seen.
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

    /// The windows of `length` paths, as often as they were seen, in the order of their paths.
    pub fn seen(&self, length: usize) -> Vec<Window> {
        let root = |_: u64, node: &Node| node.count;
        self.windows(length, &root, &|_, _, node| node.count)
    }

    /// The windows of `length` paths, as often as they would have been seen had no burst ended, in the order of their paths.
    /// `first` may say better than the whole paths seen do how often a path was executed.
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

    /// How likely a path is after a history of paths, oldest first, where what followed was seen; `None` for a history that
    /// was never seen with what followed.
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

    /// How many different beginnings of windows there are.
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
