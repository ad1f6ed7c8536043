//! The stopping rule of `--repeat auto`, from the convergence of the taken branches of several runs.

use crate::vector::{Branch, Burst};
use rustc_hash::FxHashMap;

/// The stopping rule: the recording ends when it has enough bursts and has converged, or after a number of runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StoppingRule {
    /// Minimum of bursts.
    pub bursts: u64,
    /// Maximum of [`Convergence::expected_change`].
    pub change: f64,
    /// Maximum of runs.
    pub runs: u32,
}

/// How often to run a command.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Repeat {
    /// This number of times.
    Times(u32),
    /// Until the stopping rule holds.
    Until(StoppingRule),
}

/// The distribution of taken branches in two halves of a recording: in the runs of even and of odd number.
///
/// Runs are divided rather than bursts, because a program may behave differently in each run.
#[derive(Clone, Debug, Default)]
pub struct Convergence {
    branches: FxHashMap<Branch, [u64; 2]>,
    total: [u64; 2],
    bursts: u64,
    half: usize,
}

impl Convergence {
    /// Must be called at the start of each run; `run` counts from 0.
    pub fn begin_run(&mut self, run: u32) {
        self.half = run as usize % 2;
    }

    /// Counts a burst of the current run.
    pub fn add(&mut self, burst: &Burst) {
        for branch in &burst.branches {
            self.branches.entry(*branch).or_default()[self.half] += 1;
        }
        self.total[self.half] += burst.branches.len() as u64;
        self.bursts += 1;
    }

    /// Number of bursts so far.
    pub fn bursts(&self) -> u64 {
        self.bursts
    }

    /// The share of taken branches in which another recording of the same length would differ: half of the absolute
    /// differences of shares. `None` before both halves have branches.
    ///
    /// The model: differences of shares are sampling errors, which fall with the square root of the length. A half has
    /// half of the length, so halves differ by √2 times as much.
    pub fn expected_change(&self) -> Option<f64> {
        let [first, second] = self.total.map(|total| total as f64);
        if first == 0.0 || second == 0.0 {
            return None;
        }
        let difference = |counts: &[u64; 2]| (counts[0] as f64 / first - counts[1] as f64 / second).abs();
        let halves: f64 = self.branches.values().map(difference).sum::<f64>() / 2.0;
        Some(halves / std::f64::consts::SQRT_2)
    }

    /// Whether the stopping rule holds after `runs` runs.
    pub fn is_met(&self, runs: u32, enough: &StoppingRule) -> bool {
        let is_stable = self.bursts >= enough.bursts && self.expected_change().is_some_and(|c| c <= enough.change);
        runs >= enough.runs || is_stable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{CodeAddress, EndReason, Engine, ModuleId};
    use proptest::prelude::*;

    const STOP: StoppingRule = StoppingRule {
        bursts: 4,
        change: 0.1,
        runs: 100,
    };

    fn burst(branches: &[u64]) -> Burst {
        let at = |offset| CodeAddress {
            module: ModuleId(0),
            offset,
        };
        let branch = |&from: &u64| Branch {
            from: at(from),
            to: at(0),
        };
        Burst {
            process: 0,
            thread: 1,
            time_ns: 0,
            engine: Engine::RunAhead,
            start: None,
            branches: branches.iter().map(branch).collect(),
            end: None,
            end_reason: EndReason::Budget,
            instructions: 0,
            count: 1,
            proved: true,
            system_call: None,
            hardware: None,
            values: Vec::new(),
            timing: None,
        }
    }

    fn recorded(runs: &[&[&[u64]]]) -> Convergence {
        let mut convergence = Convergence::default();
        for (run, bursts) in runs.iter().enumerate() {
            convergence.begin_run(run as u32);
            bursts.iter().for_each(|branches| convergence.add(&burst(branches)));
        }
        convergence
    }

    #[test]
    fn equal_runs_are_enough_once_there_are_bursts() {
        let run: &[&[u64]] = &[&[1, 2, 3]];
        assert_eq!(recorded(&[run]).expected_change(), None);
        assert_eq!(recorded(&[run, run]).expected_change(), Some(0.0));
        assert!(!recorded(&[run, run]).is_met(2, &STOP));
        assert!(recorded(&[run, run, run, run]).is_met(4, &STOP));
    }

    #[test]
    fn runs_that_do_different_things_are_not() {
        let (one, other): (&[&[u64]], &[&[u64]]) = (&[&[1, 2], &[1, 2]], &[&[3, 4], &[3, 4]]);
        let different = recorded(&[one, other, one, other]);
        assert!((different.expected_change().unwrap() - 0.5_f64.sqrt()).abs() < 1e-12);
        assert!(!different.is_met(4, &STOP) && different.is_met(100, &STOP));
    }

    proptest! {
        #[test]
        fn the_change_is_a_share_and_repetition_does_not_raise_it(
            runs in prop::collection::vec(prop::collection::vec(0..5_u64, 1..20), 2..6),
        ) {
            let once: Vec<&[u64]> = runs.iter().map(Vec::as_slice).collect();
            let once: Vec<&[&[u64]]> = once.iter().map(std::slice::from_ref).collect();
            let change = recorded(&once).expected_change().unwrap();
            prop_assert!((0.0..=1.0).contains(&change));
            // Each run twice, once in each half.
            let twice: Vec<&[&[u64]]> = once.iter().flat_map(|&run| [run, run]).collect();
            prop_assert!(recorded(&twice).expected_change().unwrap() <= 1e-12);
        }
    }
}
