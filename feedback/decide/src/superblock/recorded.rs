//! Branch weights by what was recorded, for the graph as it is now.
//!
//! Optimisers keep weights up to date only roughly: what they thread, fold or unswitch may leave a hot block behind a branch with
//! weight 0. Where markers tell how often a branch's ways were executed, that is its weight.

use super::subject::Marker;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use pleach_annotate::cfg::{Block, Cfg, Terminator};
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// The branches whose ways are known, with the count of each slot.
///
/// `count`: how often a marker's block was executed, in any context; `None` where it is not known. `probabilities`: of each slot, in the order
/// of [`Cfg::edge_bases`]. `unseen`: executions that a way may have had without being seen at all.
pub fn weights(
    cfg: &Cfg,
    markers: &[Vec<Marker>],
    count: impl Fn(Marker) -> Option<f64>,
    probabilities: &[f64],
    unseen: f64,
) -> Vec<(BlockIndex, Vec<f64>)> {
    // Of a block that is there several times, nobody knows how often each was executed.
    let mut places: BTreeMap<Marker, u32> = BTreeMap::new();
    markers
        .iter()
        .flatten()
        .for_each(|&m| *places.entry(m).or_default() += 1);
    let known: Vec<Vec<(usize, f64)>> = markers
        .iter()
        .map(|markers| {
            let once = markers.iter().filter(|m| places[m] == 1);
            once.filter_map(|&m| Some((m.context, count(m)?))).collect()
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
        // What leads here only is executed as often as this way is taken.
        let own = |to: &BlockIndex| (entries[to.index()] == 1).then(|| &known[to.index()]);
        let ways: Vec<_> = block.successors.iter().map(own).collect();
        let mut contexts = known[number].iter().chain(ways.iter().copied().flatten().flatten());
        let counts = contexts.find_map(|&(context, _)| in_context(context, &known[number], &ways));
        let before = &probabilities[bases[number] as usize..][..block.successors.len()];
        let counts = counts.or_else(|| {
            let mut contexts = known[number].iter();
            contexts.find_map(|&(context, all)| {
                let bounds = block.successors.iter().map(|&to| most(cfg, &known, context, to));
                bounded(all, &bounds.collect::<Vec<_>>(), before)
            })
        });
        let Some(mut counts) = counts.filter(|counts| counts.iter().any(|&c| c > 0.0)) else {
            continue;
        };
        let all: f64 = counts.iter().sum();
        for (count, before) in counts.iter_mut().zip(before).filter(|(count, _)| **count == 0.0) {
            *count = unseen.min(before * all);
        }
        weighted.push((BlockIndex(number as u32), counts));
    }
    weighted
}

/// What is the matter with loops that are executed more often than their weights say: somewhere a way out of them has too much, which the optimiser
/// made up, so that nothing is known of it. Divides by `factor` how probable such ways are. `is_known`: whether a block's weights were recorded.
pub fn stay(
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
    for (number, blocks) in tarjan_scc(&graph).iter().enumerate() {
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
        let more = (1.0 - leaving / factor) / staying;
        let weigh = |(p, leaves): (&f64, &bool)| if *leaves { p / factor } else { p * more };
        changed.push((index, own.iter().zip(&leaves).map(weigh).collect()));
    }
    changed
}

/// The least probability of a way between executed blocks.
const RARE: f64 = 1e-6;

/// A way leads back to what is executed anyway where its target has this share of the branch's executions.
const REJOINS: f64 = 0.1;

/// Gives ways that were never taken, but lead back to where control goes anyway, a small probability: code generation would treat them as
/// dead, and split them off only to come back. Returns the branches that have any.
pub fn revive(cfg: &Cfg, counts: &[f64], probabilities: &mut [f64]) -> Vec<BlockIndex> {
    let bases = cfg.edge_bases();
    let mut revived = Vec::new();
    for (number, block) in cfg.blocks.iter().enumerate() {
        if !is_direct(block) || counts[number] <= 0.0 {
            continue;
        }
        let own = &mut probabilities[bases[number] as usize..][..block.successors.len()];
        let ways = own.iter_mut().zip(&block.successors);
        let rare: Vec<_> = ways
            .filter(|(p, to)| **p < RARE && counts[to.index()] >= counts[number] * REJOINS)
            .collect();
        if !rare.is_empty() {
            rare.into_iter().for_each(|(p, _)| *p = RARE);
            revived.push(BlockIndex(number as u32));
        }
    }
    revived
}

fn is_direct(block: &Block) -> bool {
    block.successors.len() > 1 && matches!(block.terminator, Terminator::Branch | Terminator::Switch)
}

/// How often each way was taken, if one activation tells: of one way at most, as the rest.
fn in_context(context: usize, from: &[(usize, f64)], ways: &[Option<&Vec<(usize, f64)>>]) -> Option<Vec<f64>> {
    let find = |known: &[(usize, f64)]| known.iter().find(|k| k.0 == context).map(|k| k.1);
    let counts: Vec<Option<f64>> = ways.iter().map(|way| find(way.as_deref()?)).collect();
    let rest = match counts.iter().filter(|c| c.is_none()).count() {
        0 => 0.0,
        1 => (find(from)? - counts.iter().flatten().sum::<f64>()).max(0.0),
        _ => return None,
    };
    Some(counts.into_iter().map(|count| count.unwrap_or(rest)).collect())
}

/// Blocks that are looked at for how often what a way leads to was executed.
const FARTHEST: usize = 8;

/// How often a block was executed at most, as far as one activation tells: no more than what it must lead to.
fn most(cfg: &Cfg, known: &[Vec<(usize, f64)>], context: usize, from: BlockIndex) -> f64 {
    let mut most = f64::INFINITY;
    let mut block = from;
    for _ in 0..FARTHEST {
        let own = known[block.index()].iter().find(|k| k.0 == context);
        most = own.map_or(most, |k| k.1.min(most));
        match cfg.blocks[block.index()].successors[..] {
            [next] => block = next,
            _ => break,
        }
    }
    most
}

/// How often each way was taken, where it cannot have been as often as its weight says, for there are bounds. What one way has too much, the
/// others share.
fn bounded(all: f64, bounds: &[f64], before: &[f64]) -> Option<Vec<f64>> {
    let mut counts: Vec<f64> = before.iter().map(|p| p * all).collect();
    let too_much: f64 = counts
        .iter()
        .zip(bounds)
        .map(|(count, bound)| (count - bound).max(0.0))
        .sum();
    if too_much <= 0.0 {
        return None;
    }
    for (count, bound) in counts.iter_mut().zip(bounds) {
        *count = count.min(*bound);
    }
    let room: Vec<f64> = counts
        .iter()
        .zip(bounds)
        .map(|(count, bound)| (bound - count).min(all))
        .collect();
    let rooms: f64 = room.iter().sum();
    if rooms < too_much {
        // The counts do not fit together: they say nothing.
        return None;
    }
    for (count, room) in counts.iter_mut().zip(&room) {
        *count += too_much * room / rooms;
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing::cfg;

    /// Each block has its own marker, once, but for those without a count.
    fn weigh(cfg: &Cfg, counts: &[Option<f64>], probabilities: &[f64]) -> Vec<(BlockIndex, Vec<f64>)> {
        let marker = |block: usize| Marker {
            context: 0,
            block: BlockIndex(block as u32),
        };
        let markers: Vec<Vec<Marker>> = (0..counts.len()).map(|b| vec![marker(b)]).collect();
        weights(cfg, &markers, |m| counts[m.block.index()], probabilities, 0.5)
    }

    #[test]
    fn both_ways_of_a_diamond_are_known() {
        let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
        let counts = [Some(10.0), Some(7.0), Some(3.0), Some(10.0)];
        assert_eq!(
            weigh(&cfg, &counts, &[0.0, 1.0, 1.0, 1.0]),
            [(BlockIndex(0), vec![7.0, 3.0])]
        );
    }

    #[test]
    fn the_way_around_is_the_rest() {
        let cfg = cfg(&[&[1, 2], &[2], &[]]);
        let rest = |block, way| weigh(&cfg, &[block, way, Some(10.0)], &[0.2, 0.8, 1.0]);
        assert_eq!(rest(Some(10.0), Some(4.0)), [(BlockIndex(0), vec![4.0, 6.0])]);
        // Unknown together, or nothing seen at all: left as it is.
        assert_eq!(rest(None, Some(4.0)), []);
        assert_eq!(rest(Some(0.0), Some(0.0)), []);
    }

    #[test]
    fn no_way_is_taken_more_often_than_what_it_leads_to() {
        // 1 and 2 go on to 3, or leave through 4 and 5.
        let cfg = cfg(&[&[1, 2], &[3, 4], &[3, 4], &[], &[5], &[]]);
        let weigh = |on, out| weigh(&cfg, &[None, Some(100.0), None, Some(on), None, Some(out)], &[0.5; 7]);
        assert_eq!(weigh(140.0, 3.0), [(BlockIndex(1), vec![97.0, 3.0])]);
        // What is said already is possible, or nothing would be.
        assert_eq!(weigh(140.0, 60.0), []);
        assert_eq!(weigh(40.0, 3.0), []);
    }

    #[test]
    fn what_was_not_seen_may_be_too_rare_to_be_seen() {
        let cfg = cfg(&[&[1, 2], &[2], &[]]);
        let rare = |before| weigh(&cfg, &[Some(10.0), Some(0.0), Some(10.0)], &[before, 1.0 - before, 1.0]);
        assert_eq!(rare(0.9), [(BlockIndex(0), vec![0.5, 10.0])]);
        assert_eq!(rare(0.01), [(BlockIndex(0), vec![0.1, 10.0])]);
        assert_eq!(rare(0.0), [(BlockIndex(0), vec![0.0, 10.0])]);
    }

    #[test]
    fn loops_are_left_less_often_than_nobody_knows_why() {
        // Around 1 and 2, each of which leads out.
        let cfg = cfg(&[&[1], &[2, 3], &[1, 3], &[]]);
        let probabilities = [1.0, 0.5, 0.5, 0.9, 0.1];
        let changed = stay(&cfg, &probabilities, |b| b == BlockIndex(2), 10.0);
        assert_eq!(changed, [(BlockIndex(1), vec![0.95, 0.05])]);
        assert_eq!(stay(&cfg, &probabilities, |_| true, 10.0), []);
    }

    #[test]
    fn ways_that_do_not_come_back_stay_dead() {
        let cfg = cfg(&[&[1, 2, 3], &[3], &[], &[]]);
        let mut probabilities = [1.0, 0.0, 0.0, 1.0];
        assert_eq!(revive(&cfg, &[5.0, 5.0, 0.4, 5.0], &mut probabilities), [BlockIndex(0)]);
        assert_eq!(probabilities, [1.0, 0.0, RARE, 1.0]);
        assert_eq!(revive(&cfg, &[5.0, 5.0, 0.4, 5.0], &mut [0.5, 0.0, 0.5, 1.0]), []);
    }

    #[test]
    fn blocks_that_are_there_twice_tell_nothing() {
        let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
        let marker = |block: u32| Marker {
            context: 0,
            block: BlockIndex(block),
        };
        let markers = [vec![marker(0)], vec![marker(1)], vec![marker(1)], vec![marker(3)]];
        assert_eq!(weights(&cfg, &markers, |_| Some(1.0), &[0.5, 0.5, 1.0, 1.0], 0.5), []);
    }
}
