//! The order of functions: call-chain clustering.
//!
//! After Ottoni and Maher, "Optimizing Function Placement for Large-Scale Data-Center Applications" (CGO 2017), §4.
//! Each function, hottest first, is appended to the cluster of its most frequent caller, unless the merged cluster
//! would exceed a page. Clusters are then sorted by density and [packed](super::pages) so that few straddle two pages.
//! Two limits are those of lld's implementation: a merger must not reduce a cluster's density to less than an eighth,
//! and the caller must make at least a tenth of the function's calls.

use super::call_graph::{Arc, Cluster, MAX_DENSITY_DEGRADATION, Node};
use super::pages::{PAGE, hot_pages, pack};
use std::cmp::Reverse;

/// Reciprocal of the minimum share of a function's calls that its cluster's caller makes.
const MIN_CALLER_SHARE_RECIPROCAL: u64 = 10;
/// The share of all executions that is hot: LLVM's default for profile summaries.
pub(super) const HOT: f64 = 0.99;

/// Orders the functions that run. Returns indices of `nodes`, without functions that never run.
///
/// The result is deterministic: equally hot functions keep their given order. Arcs with invalid indices are ignored.
/// The given order is kept if the new one has more [hot pages](hot_pages).
pub fn order(nodes: &[Node], arcs: &[Arc]) -> Vec<usize> {
    let clusters = clusters(nodes, arcs);
    let given: Vec<usize> = (0..nodes.len()).filter(|&at| nodes[at].weight > 0).collect();
    let hot = |order: &[usize]| hot_pages(order.iter().map(|&at| nodes[at]), HOT);
    let max_hot = hot(&given);
    let no_worse = |order: &Vec<usize>| hot(order) <= max_hot;
    let flat = |clusters: Vec<Cluster>| clusters.into_iter().flat_map(|c| c.members).collect();
    Some(flat(pack(clusters.clone())))
        .filter(no_worse)
        .or_else(|| Some(flat(clusters)).filter(no_worse))
        .unwrap_or(given)
}

/// Clusters of functions that call one another, each of at most a page, densest first.
fn clusters(nodes: &[Node], arcs: &[Arc]) -> Vec<Cluster> {
    let callers = most_frequent_callers(nodes, arcs);
    let mut clusters: Vec<Option<Cluster>> = nodes.iter().enumerate().map(|(at, node)| singleton(at, node)).collect();
    let mut home: Vec<usize> = (0..nodes.len()).collect();
    let mut hottest: Vec<usize> = (0..nodes.len()).filter(|&at| nodes[at].weight > 0).collect();
    hottest.sort_by_key(|&at| Reverse(nodes[at].weight));
    for at in hottest {
        let Some(caller) = callers[at] else { continue };
        let (into, from) = (home[caller], home[at]);
        if into == from || !may_merge(clusters[into].as_ref(), clusters[from].as_ref()) {
            continue;
        }
        if let (Some(moved), Some(target)) = (clusters[from].take(), clusters[into].as_mut()) {
            for &member in &moved.members {
                home[member] = into;
            }
            target.members.extend(moved.members);
            target.size = target.size.saturating_add(moved.size);
            target.weight = target.weight.saturating_add(moved.weight);
        }
    }
    let mut clusters: Vec<Cluster> = clusters.into_iter().flatten().collect();
    clusters.sort_by(|a, b| b.density().total_cmp(&a.density()));
    clusters
}

fn singleton(at: usize, node: &Node) -> Option<Cluster> {
    (node.weight > 0).then(|| Cluster {
        members: vec![at],
        size: node.size,
        weight: node.weight,
    })
}

/// For each function, its most frequent caller other than itself, if that makes a sufficient share of its calls.
fn most_frequent_callers(nodes: &[Node], arcs: &[Arc]) -> Vec<Option<usize>> {
    let runs = |at: usize| nodes.get(at).is_some_and(|node| node.weight > 0);
    let mut sums: Vec<Arc> = arcs
        .iter()
        .copied()
        .filter(|arc| arc.caller != arc.callee && runs(arc.caller) && runs(arc.callee))
        .collect();
    sums.sort_by_key(|arc| (arc.callee, arc.caller));
    sums.dedup_by(|next, sum| {
        let same = (next.callee, next.caller) == (sum.callee, sum.caller);
        if same {
            sum.weight = sum.weight.saturating_add(next.weight);
        }
        same
    });
    let mut best: Vec<Option<Arc>> = vec![None; nodes.len()];
    for arc in sums {
        let known = &mut best[arc.callee];
        if known.is_none_or(|known| arc.weight > known.weight) {
            *known = Some(arc);
        }
    }
    let enough = |arc: Arc| arc.weight.saturating_mul(MIN_CALLER_SHARE_RECIPROCAL) > nodes[arc.callee].weight;
    best.into_iter()
        .map(|arc| arc.filter(|&arc| enough(arc)).map(|arc| arc.caller))
        .collect()
}

fn may_merge(into: Option<&Cluster>, from: Option<&Cluster>) -> bool {
    let (Some(into), Some(from)) = (into, from) else {
        return false;
    };
    let size = into.size.saturating_add(from.size);
    let density = (into.weight as f64 + from.weight as f64) / size.max(1) as f64;
    size <= PAGE && density * MAX_DENSITY_DEGRADATION >= into.density()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(size: u64, weight: u64) -> Node {
        Node { size, weight }
    }

    fn arc(caller: usize, callee: usize, weight: u64) -> Arc {
        Arc { caller, callee, weight }
    }

    #[test]
    fn a_chain_of_calls_stays_together() {
        // 0 calls 3 calls 1; 2 has no calls and a higher density than the chain.
        let nodes = [node(100, 10), node(100, 10), node(100, 1000), node(100, 10)];
        assert_eq!(order(&nodes, &[arc(0, 3, 10), arc(3, 1, 10)]), [2, 0, 3, 1]);
    }

    #[test]
    fn a_function_follows_its_most_frequent_caller() {
        let nodes = [node(10, 50), node(10, 50), node(10, 100)];
        assert_eq!(order(&nodes, &[arc(0, 2, 40), arc(1, 2, 60)]), [1, 2, 0]);
        // Several calls of one caller add up.
        let arcs = [arc(0, 2, 30), arc(1, 2, 60), arc(0, 2, 40)];
        assert_eq!(order(&nodes, &arcs), [0, 2, 1]);
    }

    #[test]
    fn a_merger_does_not_dilute_a_hot_caller() {
        let nodes = [node(4000, 1), node(10, 1000), node(10, 100)];
        // A cold caller's cluster becomes denser: the limit is on the caller's density.
        assert_eq!(order(&nodes, &[arc(0, 1, 1000)]), [2, 0, 1]);
        // A hot caller's cluster would lose density to a large cold callee.
        assert_eq!(order(&nodes, &[arc(1, 0, 1)]), [1, 2, 0]);
    }

    #[test]
    fn clusters_have_a_maximum_size() {
        let nodes = [node(PAGE, 10), node(10, 10)];
        assert_eq!(order(&nodes, &[arc(0, 1, 10)]), [1, 0]);
    }

    #[test]
    fn scattered_hot_functions_are_moved_to_one_page() {
        let mut nodes = vec![node(1000, 1); 40];
        for hot in [3, 17, 31, 39] {
            nodes[hot].weight = 10_000;
        }
        assert_eq!(hot_pages(nodes.iter().copied(), HOT), 4);
        let placed = order(&nodes, &[arc(17, 3, 10_000), arc(3, 39, 10_000)]);
        assert_eq!(placed[..4], [17, 3, 39, 31]);
        assert_eq!(hot_pages(placed.iter().map(|&at| nodes[at]), HOT), 1);
    }

    #[test]
    fn functions_that_never_run_are_left_out_and_recursion_has_no_effect() {
        let nodes = [node(10, 0), node(10, 5), node(10, 0)];
        assert_eq!(order(&nodes, &[arc(1, 1, 5), arc(0, 1, 5), arc(1, 7, 5)]), [1]);
    }

    proptest! {
        #[test]
        fn every_function_that_runs_is_placed_once(
            nodes in proptest::collection::vec((0_u64..2_000_000, 0_u64..9), 0..30),
            arcs in proptest::collection::vec((0_usize..32, 0_usize..32, any::<u64>()), 0..90),
        ) {
            let nodes: Vec<Node> = nodes.into_iter().map(|(size, weight)| node(size, weight)).collect();
            let arcs: Vec<Arc> = arcs.into_iter().map(|(a, b, w)| arc(a, b, w)).collect();
            let mut placed = order(&nodes, &arcs);
            placed.sort_unstable();
            let run: Vec<usize> = (0..nodes.len()).filter(|&at| nodes[at].weight > 0).collect();
            prop_assert_eq!(placed, run);
        }

        #[test]
        fn no_order_makes_more_pages_hot_than_the_one_given(
            nodes in proptest::collection::vec((0_u64..6000, 0_u64..1000), 0..60),
            arcs in proptest::collection::vec((0_usize..60, 0_usize..60, 0_u64..1000), 0..90),
        ) {
            let nodes: Vec<Node> = nodes.into_iter().map(|(size, weight)| node(size, weight)).collect();
            let arcs: Vec<Arc> = arcs.into_iter().map(|(a, b, w)| arc(a, b, w)).collect();
            let placed = order(&nodes, &arcs);
            let given = nodes.iter().copied().filter(|node| node.weight > 0);
            prop_assert!(hot_pages(placed.iter().map(|&at| nodes[at]), HOT) <= hot_pages(given, HOT));
            prop_assert_eq!(order(&nodes, &arcs), placed);
            // A cluster larger than a page is a single function.
            for cluster in clusters(&nodes, &arcs) {
                prop_assert!(cluster.size <= PAGE || cluster.members.len() == 1);
            }
        }
    }
}
