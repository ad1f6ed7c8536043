//! Recorded branch weights for the current graph.
//!
//! Transformations keep weights up to date only roughly: jump threading, folding or unswitching may leave a hot block
//! behind an edge of weight 0. Markers have the counts of the recorded blocks, from which weights are restored.

use super::subject::Marker;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use pleach_annotate::cfg::{Block, Cfg, Terminator};
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// Restores branch weights from the counts of markers. Returns each branch whose directions are known, with the count
/// of each slot.
///
/// `count`: executions of a marker's block, summed over inline instances; `None` if unknown. `probabilities`: current
/// probability of each slot, in the order of [`Cfg::edge_bases`]. `max_unseen`: executions that an edge may have had
/// without being sampled.
pub fn restore_branch_weights(
    cfg: &Cfg,
    markers: &[Vec<Marker>],
    count: impl Fn(Marker) -> Option<f64>,
    probabilities: &[f64],
    max_unseen: f64,
) -> Vec<(BlockIndex, Vec<f64>)> {
    // The count of a block that was duplicated cannot be divided among its copies.
    let mut places: BTreeMap<Marker, u32> = BTreeMap::new();
    markers
        .iter()
        .flatten()
        .for_each(|&m| *places.entry(m).or_default() += 1);
    let known: Vec<Vec<(usize, f64)>> = markers
        .iter()
        .map(|markers| {
            let once = markers.iter().filter(|m| places[m] == 1);
            once.filter_map(|&m| Some((m.instance, count(m)?))).collect()
        })
        .collect();
    let mut entries = vec![0u32; cfg.blocks.len()];
    let slots = cfg.blocks.iter().flat_map(|b| &b.successors);
    slots.for_each(|to| entries[to.index()] += 1);

    let bases = cfg.edge_bases();
    let mut weighted = Vec::new();
    for (number, block) in cfg.blocks.iter().enumerate() {
        if !is_direct(block) {
            continue;
        }
        // A successor with a single predecessor is executed as often as the edge is taken.
        let own = |to: &BlockIndex| (entries[to.index()] == 1).then(|| &known[to.index()]);
        let targets: Vec<_> = block.successors.iter().map(own).collect();
        let mut instances = known[number].iter().chain(targets.iter().copied().flatten().flatten());
        let counts = instances.find_map(|&(instance, _)| counts_by_instance(instance, &known[number], &targets));
        let before = &probabilities[bases[number] as usize..][..block.successors.len()];
        let counts = counts.or_else(|| {
            let mut instances = known[number].iter();
            instances.find_map(|&(instance, all)| {
                let bounds = block.successors.iter().map(|&to| max_count(cfg, &known, instance, to));
                clamp_counts(all, &bounds.collect::<Vec<_>>(), before)
            })
        });
        let Some(mut counts) = counts.filter(|counts| counts.iter().any(|&c| c > 0.0)) else {
            continue;
        };
        let all: f64 = counts.iter().sum();
        for (count, before) in counts.iter_mut().zip(before).filter(|(count, _)| **count == 0.0) {
            *count = max_unseen.min(before * all);
        }
        weighted.push((BlockIndex(number as u32), counts));
    }
    weighted
}

/// Divides the probability of loop exits by `factor`, where the exit's weight was not recorded (`is_known` of the
/// exiting block is false). Returns the changed branches with the probability of each slot.
///
/// A loop hotter than its weights imply has an exit weight that the optimiser invented.
pub fn scale_loop_exits(
    cfg: &Cfg,
    probabilities: &[f64],
    is_known: impl Fn(BlockIndex) -> bool,
    factor: f64,
) -> Vec<(BlockIndex, Vec<f64>)> {
    let mut graph = DiGraph::<(), ()>::new();
    for _ in &cfg.blocks {
        graph.add_node(());
    }
    for (from, block) in cfg.blocks.iter().enumerate() {
        for to in &block.successors {
            graph.add_edge(NodeIndex::new(from), NodeIndex::new(to.index()), ());
        }
    }
    let mut component = vec![0; cfg.blocks.len()];
    for (number, blocks) in kosaraju_scc(&graph).iter().enumerate() {
        blocks.iter().for_each(|block| component[block.index()] = number);
    }
    let bases = cfg.edge_bases();
    let mut changed = Vec::new();
    for (number, block) in cfg.blocks.iter().enumerate() {
        let index = BlockIndex(number as u32);
        if !is_direct(block) || is_known(index) {
            continue;
        }
        let leaves: Vec<bool> = block
            .successors
            .iter()
            .map(|to| component[to.index()] != component[number])
            .collect();
        let own = &probabilities[bases[number] as usize..][..block.successors.len()];
        let staying: f64 = own
            .iter()
            .zip(&leaves)
            .filter(|(_, leaves)| !**leaves)
            .map(|(p, _)| p)
            .sum();
        let leaving = 1.0 - staying;
        if staying <= 0.0 || leaving <= 0.0 {
            continue;
        }
        let staying_factor = (1.0 - leaving / factor) / staying;
        let scale = |(p, leaves): (&f64, &bool)| if *leaves { p / factor } else { p * staying_factor };
        changed.push((index, own.iter().zip(&leaves).map(scale).collect()));
    }
    changed
}

/// The floor of the probability of an edge between executed blocks.
const MIN_PROBABILITY: f64 = 1e-6;

/// An edge rejoins executed code if its target has this share of the branch's executions.
const MIN_REJOINING_SHARE: f64 = 0.1;

/// Raises the probability of edges that were never taken but rejoin executed code to [`MIN_PROBABILITY`]. Returns the
/// branches that have any.
///
/// With probability 0, code generation would split such an edge off into the cold section, only to jump back.
pub fn floor_edge_probability(cfg: &Cfg, counts: &[f64], probabilities: &mut [f64]) -> Vec<BlockIndex> {
    let bases = cfg.edge_bases();
    let mut changed = Vec::new();
    for (number, block) in cfg.blocks.iter().enumerate() {
        if !is_direct(block) || counts[number] <= 0.0 {
            continue;
        }
        let own = &mut probabilities[bases[number] as usize..][..block.successors.len()];
        let edges = own.iter_mut().zip(&block.successors);
        let rare: Vec<_> = edges
            .filter(|(p, to)| **p < MIN_PROBABILITY && counts[to.index()] >= counts[number] * MIN_REJOINING_SHARE)
            .collect();
        if !rare.is_empty() {
            rare.into_iter().for_each(|(p, _)| *p = MIN_PROBABILITY);
            changed.push(BlockIndex(number as u32));
        }
    }
    changed
}

fn is_direct(block: &Block) -> bool {
    block.successors.len() > 1 && matches!(block.terminator, Terminator::Branch | Terminator::Switch)
}

/// The count of each edge of a branch, from the counts of one inline instance. `from`: known counts of the branch's
/// block, by instance. `targets`: those of each successor. One unknown edge gets the remainder; `None` if several are
/// unknown.
fn counts_by_instance(
    instance: usize,
    from: &[(usize, f64)],
    targets: &[Option<&Vec<(usize, f64)>>],
) -> Option<Vec<f64>> {
    let find = |known: &[(usize, f64)]| known.iter().find(|k| k.0 == instance).map(|k| k.1);
    let counts: Vec<Option<f64>> = targets.iter().map(|target| find(target.as_deref()?)).collect();
    let rest = match counts.iter().filter(|c| c.is_none()).count() {
        0 => 0.0,
        1 => (find(from)? - counts.iter().flatten().sum::<f64>()).max(0.0),
        _ => return None,
    };
    Some(counts.into_iter().map(|count| count.unwrap_or(rest)).collect())
}

/// Blocks with a single successor that are followed for an upper bound.
const MAX_CHAIN: usize = 8;

/// Upper bound of a block's executions, from the counts of one inline instance: the minimum over the chain of single
/// successors from the block on.
fn max_count(cfg: &Cfg, known: &[Vec<(usize, f64)>], instance: usize, from: BlockIndex) -> f64 {
    let mut bound = f64::INFINITY;
    let mut block = from;
    for _ in 0..MAX_CHAIN {
        let own = known[block.index()].iter().find(|k| k.0 == instance);
        bound = own.map_or(bound, |k| k.1.min(bound));
        match cfg.blocks[block.index()].successors[..] {
            [next] => block = next,
            _ => break,
        }
    }
    bound
}

/// Clamps the counts of a branch's edges to upper bounds, and distributes the excess to edges below their bound. `all`:
/// executions of the branch; `before`: probability of each edge. `None` if no count exceeds its bound, or if the bounds
/// contradict `all`.
fn clamp_counts(all: f64, bounds: &[f64], before: &[f64]) -> Option<Vec<f64>> {
    let mut counts: Vec<f64> = before.iter().map(|p| p * all).collect();
    let excess: f64 = counts
        .iter()
        .zip(bounds)
        .map(|(count, bound)| (count - bound).max(0.0))
        .sum();
    if excess <= 0.0 {
        return None;
    }
    for (count, bound) in counts.iter_mut().zip(bounds) {
        *count = count.min(*bound);
    }
    let slack: Vec<f64> = counts
        .iter()
        .zip(bounds)
        .map(|(count, bound)| (bound - count).min(all))
        .collect();
    let total_slack: f64 = slack.iter().sum();
    if total_slack < excess {
        return None;
    }
    for (count, slack) in counts.iter_mut().zip(&slack) {
        *count += excess * slack / total_slack;
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing::cfg;

    /// Each block has one marker; `None` is an unknown count.
    fn weigh(cfg: &Cfg, counts: &[Option<f64>], probabilities: &[f64]) -> Vec<(BlockIndex, Vec<f64>)> {
        let marker = |block: usize| Marker {
            instance: 0,
            block: BlockIndex(block as u32),
        };
        let markers: Vec<Vec<Marker>> = (0..counts.len()).map(|b| vec![marker(b)]).collect();
        restore_branch_weights(cfg, &markers, |m| counts[m.block.index()], probabilities, 0.5)
    }

    #[test]
    fn both_arms_of_a_diamond_are_known() {
        let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
        let counts = [Some(10.0), Some(7.0), Some(3.0), Some(10.0)];
        assert_eq!(
            weigh(&cfg, &counts, &[0.0, 1.0, 1.0, 1.0]),
            [(BlockIndex(0), vec![7.0, 3.0])]
        );
    }

    #[test]
    fn the_edge_around_an_arm_gets_the_remainder() {
        let cfg = cfg(&[&[1, 2], &[2], &[]]);
        let rest = |block, arm| weigh(&cfg, &[block, arm, Some(10.0)], &[0.2, 0.8, 1.0]);
        assert_eq!(rest(Some(10.0), Some(4.0)), [(BlockIndex(0), vec![4.0, 6.0])]);
        // An unknown sum, or no counts: unchanged.
        assert_eq!(rest(None, Some(4.0)), []);
        assert_eq!(rest(Some(0.0), Some(0.0)), []);
    }

    #[test]
    fn no_edge_is_taken_more_often_than_its_target_is_executed() {
        // Blocks 1 and 2 lead to 3, or to the exit through 4 and 5.
        let cfg = cfg(&[&[1, 2], &[3, 4], &[3, 4], &[], &[5], &[]]);
        let weigh = |on, out| weigh(&cfg, &[None, Some(100.0), None, Some(on), None, Some(out)], &[0.5; 7]);
        assert_eq!(weigh(140.0, 3.0), [(BlockIndex(1), vec![97.0, 3.0])]);
        // The current weights respect the bounds, or no weights do.
        assert_eq!(weigh(140.0, 60.0), []);
        assert_eq!(weigh(40.0, 3.0), []);
    }

    #[test]
    fn an_unsampled_edge_keeps_a_small_weight() {
        let cfg = cfg(&[&[1, 2], &[2], &[]]);
        let rare = |before| weigh(&cfg, &[Some(10.0), Some(0.0), Some(10.0)], &[before, 1.0 - before, 1.0]);
        assert_eq!(rare(0.9), [(BlockIndex(0), vec![0.5, 10.0])]);
        assert_eq!(rare(0.01), [(BlockIndex(0), vec![0.1, 10.0])]);
        assert_eq!(rare(0.0), [(BlockIndex(0), vec![0.0, 10.0])]);
    }

    #[test]
    fn only_exits_with_unknown_weights_are_scaled() {
        // A loop of 1 and 2, each of which has an exit.
        let cfg = cfg(&[&[1], &[2, 3], &[1, 3], &[]]);
        let probabilities = [1.0, 0.5, 0.5, 0.9, 0.1];
        let changed = scale_loop_exits(&cfg, &probabilities, |b| b == BlockIndex(2), 10.0);
        assert_eq!(changed, [(BlockIndex(1), vec![0.95, 0.05])]);
        assert_eq!(scale_loop_exits(&cfg, &probabilities, |_| true, 10.0), []);
    }

    #[test]
    fn functions_of_any_length_need_little_stack() {
        let next: Vec<[u32; 1]> = (1..=300_000).map(|block| [block % 300_000]).collect();
        let cfg = cfg(&next.iter().map(|next| &next[..]).collect::<Vec<_>>());
        assert_eq!(scale_loop_exits(&cfg, &vec![1.0; 300_000], |_| false, 10.0), []);
    }

    #[test]
    fn edges_that_do_not_rejoin_keep_probability_0() {
        let cfg = cfg(&[&[1, 2, 3], &[3], &[], &[]]);
        let mut probabilities = [1.0, 0.0, 0.0, 1.0];
        let counts = [5.0, 5.0, 0.4, 5.0];
        assert_eq!(
            floor_edge_probability(&cfg, &counts, &mut probabilities),
            [BlockIndex(0)]
        );
        assert_eq!(probabilities, [1.0, 0.0, MIN_PROBABILITY, 1.0]);
        assert_eq!(floor_edge_probability(&cfg, &counts, &mut [0.5, 0.0, 0.5, 1.0]), []);
    }

    #[test]
    fn duplicated_blocks_have_no_known_count() {
        let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
        let marker = |block: u32| Marker {
            instance: 0,
            block: BlockIndex(block),
        };
        let markers = [vec![marker(0)], vec![marker(1)], vec![marker(1)], vec![marker(3)]];
        let probabilities = [0.5, 0.5, 1.0, 1.0];
        assert_eq!(
            restore_branch_weights(&cfg, &markers, |_| Some(1.0), &probabilities, 0.5),
            []
        );
    }
}
