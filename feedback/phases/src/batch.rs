//! Bursts with the sums of their traces' shares.

use crate::signature::{Signature, TraceShare};
use pleach_collector::stream::mix;
use rustc_hash::FxHashMap;

/// Unit of the sums: they are integers, so that what is taken out leaves no error.
const UNIT: f64 = (1_u64 << 32) as f64;

/// The half that a burst goes to, 0 or 1, by its number: of two bursts in a row, one goes to each. Which one is as good
/// as random, so that a program that alternates does not show each half another part of itself.
pub(crate) fn half_of(number: u64) -> usize {
    ((number % 2) ^ (mix(number / 2) & 1)) as usize
}

/// Bursts in two halves that share no burst: what one half suggests, the other one tests.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Batch {
    halves: [Half; 2],
}

/// Half of the bursts.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Half {
    pub(crate) bursts: Vec<Signature>,
    /// Of each trace.
    sums: FxHashMap<u32, u64>,
    /// Bursts whose behaviour was measured.
    pub(crate) measured: usize,
}

impl Batch {
    /// These bursts, in two halves ([`half_of`]).
    pub fn new(bursts: impl IntoIterator<Item = Signature>) -> Self {
        let mut batch = Self::default();
        for (number, burst) in bursts.into_iter().enumerate() {
            batch.halves[half_of(number as u64)].push(burst);
        }
        batch
    }

    /// One half, 0 or 1.
    pub(crate) fn half(&self, half: usize) -> &Half {
        &self.halves[half]
    }

    /// One half, 0 or 1.
    pub(crate) fn half_mut(&mut self, half: usize) -> &mut Half {
        &mut self.halves[half]
    }

    /// Number of bursts.
    pub fn len(&self) -> usize {
        self.halves.iter().map(|half| half.bursts.len()).sum()
    }

    /// Whether there is no burst.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bursts in the order in which [`Batch::new`] got them.
    pub fn bursts(&self) -> impl DoubleEndedIterator<Item = &Signature> {
        (0..self.len()).map(|at| &self.halves[half_of(at as u64)].bursts[at / 2])
    }

    /// The bursts themselves, in that order.
    pub fn into_bursts(self) -> impl Iterator<Item = Signature> {
        let all = self.len();
        let mut halves = self.halves.map(|half| half.bursts.into_iter());
        (0..all).filter_map(move |at| halves[half_of(at as u64)].next())
    }
}

fn units(trace: &TraceShare) -> u64 {
    (f64::from(trace.share) * UNIT) as u64
}

fn is_measured(burst: &Signature) -> bool {
    burst.time_per_branch.is_some() || burst.mispredicted.is_some()
}

impl Half {
    /// Adds a burst.
    pub(crate) fn push(&mut self, burst: Signature) {
        self.count(&burst);
        self.bursts.push(burst);
    }

    fn count(&mut self, burst: &Signature) {
        for trace in &burst.traces {
            *self.sums.entry(trace.trace).or_default() += units(trace);
        }
        self.measured += usize::from(is_measured(burst));
    }

    /// Puts a burst in the place of another.
    pub(crate) fn replace(&mut self, place: usize, burst: Signature) {
        self.count(&burst);
        let replaced = std::mem::replace(&mut self.bursts[place], burst);
        for trace in &replaced.traces {
            if let Some(sum) = self.sums.get_mut(&trace.trace) {
                *sum -= units(trace);
                if *sum == 0 {
                    self.sums.remove(&trace.trace);
                }
            }
        }
        self.measured -= usize::from(is_measured(&replaced));
    }

    /// Sum of a trace's shares.
    pub(crate) fn sum(&self, trace: u32) -> f64 {
        self.sums.get(&trace).map_or(0.0, |sum| *sum as f64 / UNIT)
    }

    /// Traces with the sums of their shares.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (u32, f64)> {
        self.sums.iter().map(|(trace, sum)| (*trace, *sum as f64 / UNIT))
    }
}
