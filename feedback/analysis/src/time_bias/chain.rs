//! Bursts as the path of a Markov chain.

use pleach_collector::vector::{Burst, CodeAddress, EndReason};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hash::Hash;

/// Maximum distance in bytes from the end of a burst to the program's next taken branch.
const LONGEST_STRETCH: u64 = 4096;

/// Observed states and transitions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Chain {
    /// By burst and branch: the state after it.
    pub states: Vec<Vec<u32>>,
    /// Visits by state.
    pub visits: Vec<f64>,
    /// Transitions as (from, to, times), ordered by where they lead, without repetition. Sources beyond `visits` are
    /// places where bursts ended; their visits are not known.
    pub transitions: Vec<(u32, u32, f64)>,
}

/// Gives things numbers, in the order in which they come.
fn intern<K: Hash + Eq>(numbers: &mut FxHashMap<K, u32>, key: K) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(key).or_insert(next)
}

impl Chain {
    /// Reads bursts, with the last `order` branches as state.
    pub fn from_bursts(bursts: &[Burst], order: usize) -> Self {
        let (states, count) = states(bursts, order);
        let mut visits = vec![0.0; count];
        let mut times: FxHashMap<(u32, u32), f64> = FxHashMap::default();
        let mut branches: BTreeMap<CodeAddress, Vec<u32>> = BTreeMap::new();
        for (burst, states) in bursts.iter().zip(&states) {
            let weight = burst.count as f64;
            for (branch, &state) in burst.branches.iter().zip(states) {
                if visits[state as usize] == 0.0 {
                    branches.entry(branch.from).or_default().push(state);
                }
                visits[state as usize] += weight;
            }
            for pair in states.windows(2) {
                *times.entry((pair[0], pair[1])).or_default() += weight;
            }
        }
        let mut ends: FxHashMap<CodeAddress, u32> = FxHashMap::default();
        for (burst, states) in bursts.iter().zip(&states) {
            if let (Some(end), Some(&last)) = (cut_short_at(burst), states.last()) {
                let number = count as u32 + intern(&mut ends, end);
                *times.entry((last, number)).or_default() += burst.count as f64;
            }
        }
        for (&end, &number) in &ends {
            for &next in continuation(&branches, end) {
                *times.entry((count as u32 + number, next)).or_default() += visits[next as usize];
            }
        }
        let mut transitions: Vec<(u32, u32, f64)> = times.into_iter().map(|((a, b), times)| (a, b, times)).collect();
        transitions.sort_unstable_by_key(|&(from, to, _)| (to, from));
        Self {
            states,
            visits,
            transitions,
        }
    }
}

/// The states of all bursts, and how many there are. The first branches of a burst have less history than `order`.
fn states(bursts: &[Burst], order: usize) -> (Vec<Vec<u32>>, usize) {
    let mut numbers = FxHashMap::default();
    let single: Vec<Vec<u32>> = bursts
        .iter()
        .map(|burst| burst.branches.iter().map(|&b| intern(&mut numbers, b)).collect())
        .collect();
    let (mut states, mut count) = (single.clone(), numbers.len());
    for _ in 1..order {
        let mut numbers = FxHashMap::default();
        for (states, single) in states.iter_mut().zip(&single) {
            let mut before = None;
            for (state, &branch) in states.iter_mut().zip(single) {
                let longer = intern(&mut numbers, (before, branch));
                before = Some(std::mem::replace(state, longer));
            }
        }
        count = numbers.len();
    }
    (states, count)
}

/// Transitions at the ends of bursts. A burst of full length ended at a branch whose successor other bursts show.
fn cut_short_at(burst: &Burst) -> Option<CodeAddress> {
    match burst.end_reason {
        EndReason::Budget | EndReason::Exit => None,
        _ => burst.end,
    }
}

/// The next branch after a place where bursts ended: the nearest behind it that any burst saw taken.
fn continuation(branches: &BTreeMap<CodeAddress, Vec<u32>>, end: CodeAddress) -> &[u32] {
    let next = branches.range(end..).next();
    let near = |from: &CodeAddress| from.module == end.module && from.offset - end.offset < LONGEST_STRETCH;
    next.filter(|(from, _)| near(from)).map_or(&[], |(_, states)| states)
}
