//! Where a loop spends its iterations, by history: the k-iteration paths of a profile as a tree for each loop head.

use super::Function;
use super::detail::MAX_PATHS;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of loops of a function that are listed.
const MAX_LOOPS: usize = 20;
/// Children with a smaller share of their parent's executions are left out.
const MIN_SHARE: f64 = 0.01;

/// A loop with windows of consecutive iterations.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Loop {
    /// The block that back edges lead to.
    pub head: BlockIndex,
    /// Executions of paths that end at a back edge to the head.
    pub iterations: f64,
    /// Paths that end at the head, most frequent first, each with those that follow it.
    pub windows: Vec<Window>,
}

/// A path in a window, after the paths above it in the tree.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Window {
    /// Position among the function's paths.
    pub path: usize,
    /// Executions of the window that ends here.
    pub count: f64,
    /// Its share of the executions of the window without this path.
    pub share: f64,
    /// Paths that follow, most frequent first.
    pub next: Vec<Window>,
}

/// A node of the prefix tree: windows by their next path.
#[derive(Default)]
struct Node {
    count: f64,
    next: BTreeMap<usize, Node>,
}

/// The loops of a function, hottest first.
pub(super) fn loops(function: &Function<'_>) -> Vec<Loop> {
    let position = |path: &Path| function.paths.iter().take(MAX_PATHS).position(|p| p.path == *path);
    let mut roots: BTreeMap<BlockIndex, Node> = BTreeMap::new();
    for window in &function.profile.windows {
        let positions: Option<Vec<usize>> = window.paths.iter().map(position).collect();
        let head = window.paths.first().map(|path| path.end);
        let (Some(positions), Some(End::Back(head))) = (positions, head) else {
            continue;
        };
        let root = roots.entry(head).or_default();
        let node = positions
            .into_iter()
            .fold(root, |node, path| node.next.entry(path).or_default());
        node.count += window.count;
    }
    let mut loops: Vec<Loop> = roots
        .into_iter()
        .map(|(head, root)| of_head(function, head, root))
        .collect();
    loops.sort_by(|a, b| b.iterations.total_cmp(&a.iterations));
    loops.truncate(MAX_LOOPS);
    loops
}

fn of_head(function: &Function<'_>, head: BlockIndex, mut root: Node) -> Loop {
    let ends_here = |end| end == End::Back(head);
    let iterations = function
        .paths
        .iter()
        .filter(|p| ends_here(p.path.end))
        .map(|p| p.count)
        .sum();
    // A window of one path is the path itself.
    for (&path, node) in &mut root.next {
        node.count = function.paths[path].count;
    }
    Loop {
        head,
        iterations,
        windows: windows(root, iterations),
    }
}

fn windows(node: Node, whole: f64) -> Vec<Window> {
    let window = |(path, node): (usize, Node)| Window {
        path,
        count: node.count,
        share: super::share(node.count, whole).min(1.0),
        next: {
            let count = node.count;
            windows(node, count)
        },
    };
    let mut all: Vec<Window> = node
        .next
        .into_iter()
        .map(window)
        .filter(|w| w.share >= MIN_SHARE)
        .collect();
    all.sort_by(|a, b| b.count.total_cmp(&a.count));
    all
}
