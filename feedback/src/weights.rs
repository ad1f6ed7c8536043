//! What a function's counts mean to the optimiser: entry count, branch weights, coldness.
//!
//! Counts are estimates from samples. An edge that was never sampled is not known to be dead, so every edge out of a
//! sampled block gets the Krichevsky–Trofimov estimator's half a sample on top, and an entry that was never sampled
//! half a sample. The two fit together: in a loop sampled n times whose entry and exit were not, the estimated trip count
//! 2n times half an entry gives back the n.

use crate::profile::FunctionProfile;
use pleach_annotate::cfg::{Cfg, Terminator};
use pleach_annotate::id::BlockIndex;

/// Samples added to every ordinary edge (Krichevsky–Trofimov).
const PRIOR_SAMPLES: f64 = 0.5;
/// Samples added to an edge that leads to exception handling or a trap: nobody expects those to be taken.
const UNLIKELY_PRIOR_SAMPLES: f64 = 0.001;
/// Sampled block entries from which on a function that was never sampled counts as cold: with this many, a function
/// with more than 3/100 000 of all block entries would have been seen with 95 % probability.
pub const ENOUGH_SAMPLES: f64 = 100_000.0;

/// What to tell the optimiser about a function.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Sampled: these counts.
    Sampled {
        /// Estimated calls, at least 1.
        entry_count: u64,
        /// Largest block count.
        max_count: u64,
        /// For each block with two successors or more that was sampled: a weight for each successor slot.
        branch_weights: Vec<(BlockIndex, Vec<u64>)>,
    },
    /// Never sampled, by a profile large enough to say that it hardly runs.
    Cold,
    /// Never sampled, by a profile too small to say anything.
    Unknown,
}

/// Decides what a profile says about a function.
///
/// `scale` is the profile's factor from samples to counts, `samples` its number of sampled block entries.
pub fn verdict(cfg: &Cfg, profile: &FunctionProfile, scale: f64, samples: f64) -> Verdict {
    let max_count = profile.blocks.iter().copied().max().unwrap_or(0);
    if max_count == 0 {
        return if samples >= ENOUGH_SAMPLES {
            Verdict::Cold
        } else {
            Verdict::Unknown
        };
    }
    let half = (scale * PRIOR_SAMPLES).max(1.0) as u64;
    let bases = cfg.edge_bases();
    let branch_weights = cfg
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block.successors.len() > 1)
        .filter_map(|(index, block)| {
            let base = bases[index] as usize;
            let counts = profile.edges.get(base..base + block.successors.len())?;
            let weights = block_weights(cfg, &block.successors, counts, scale)?;
            Some((BlockIndex(index as u32), weights))
        })
        .collect();
    let entry_count = profile.blocks.first().copied().unwrap_or(0).max(half);
    Verdict::Sampled {
        entry_count,
        max_count,
        branch_weights,
    }
}

/// Weights of a block's successor slots; `None` where it was never sampled.
fn block_weights(cfg: &Cfg, successors: &[BlockIndex], counts: &[u64], scale: f64) -> Option<Vec<u64>> {
    if counts.iter().all(|&c| c == 0) {
        return None;
    }
    let unlikely = |b: BlockIndex| {
        let block = &cfg.blocks[b.index()];
        block.is_eh_pad || block.terminator == Terminator::Unreachable
    };
    let prior = |b| {
        scale
            * if unlikely(b) {
                UNLIKELY_PRIOR_SAMPLES
            } else {
                PRIOR_SAMPLES
            }
    };
    Some(
        counts
            .iter()
            .zip(successors)
            .map(|(&c, &s)| c.saturating_add(prior(s) as u64))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::Block;
    use pleach_annotate::id::{FunctionGuid, FunctionId, ModuleHash};

    fn block(successors: &[u32], terminator: Terminator) -> Block {
        Block {
            successors: successors.iter().map(|&s| BlockIndex(s)).collect(),
            terminator,
            is_eh_pad: false,
            instructions: 1,
            line: 0,
        }
    }

    fn diamond() -> Cfg {
        Cfg {
            id: FunctionId {
                guid: FunctionGuid(1),
                module: ModuleHash(0),
            },
            module: ModuleHash(1),
            name: "f".into(),
            source_file: "f.c".into(),
            blocks: vec![
                block(&[1, 2], Terminator::Branch),
                block(&[3], Terminator::Branch),
                block(&[], Terminator::Unreachable),
                block(&[], Terminator::Return),
            ],
            calls: vec![],
        }
    }

    fn profile(blocks: &[u64], edges: &[u64]) -> FunctionProfile {
        let cfg = diamond();
        FunctionProfile {
            id: cfg.id,
            cfg_hash: cfg.hash(),
            name: cfg.name,
            samples: 0,
            blocks: blocks.to_vec(),
            edges: edges.to_vec(),
            call_targets: vec![],
        }
    }

    #[test]
    fn a_trap_gets_next_to_nothing() {
        let verdict = verdict(
            &diamond(),
            &profile(&[5000, 5000, 0, 5000], &[5000, 0, 5000]),
            1000.0,
            1e6,
        );
        assert_eq!(
            verdict,
            Verdict::Sampled {
                entry_count: 5000,
                max_count: 5000,
                branch_weights: vec![(BlockIndex(0), vec![5500, 1])]
            }
        );
    }

    #[test]
    fn never_sampled_is_cold_only_where_the_profile_is_large() {
        let never = profile(&[0; 4], &[0; 3]);
        assert_eq!(verdict(&diamond(), &never, 1000.0, ENOUGH_SAMPLES), Verdict::Cold);
        assert_eq!(
            verdict(&diamond(), &never, 1000.0, ENOUGH_SAMPLES / 2.0),
            Verdict::Unknown
        );
    }
}
