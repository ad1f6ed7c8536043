//! Compressed bursts: counts are unbiased, exact while r is 1, and memory is bounded.

use pleach_collector::stream::{Compressor, Generator, WINDOW};
use pleach_collector::vector::{Branch, Burst, CodeAddress, Compressed, EndReason, Engine, ModuleId};
use proptest::prelude::*;
use std::collections::HashMap;

fn at(offset: u64) -> CodeAddress {
    CodeAddress {
        module: ModuleId(0),
        offset,
    }
}

/// A loop of a number of branches, entered anywhere and repeated until the burst ends.
fn burst(length: usize, period: u64, start: u64, time_ns: u64) -> Burst {
    let branch = |i: u64| Branch {
        from: at(period * 1000 + (start + i) % period),
        to: at(period * 1000 + 500 + (start + i) % period),
    };
    Burst {
        process: 0,
        thread: 1,
        time_ns,
        engine: Engine::RunAhead,
        start: None,
        branches: (0..length as u64).map(branch).collect(),
        end: Some(at(7)),
        end_reason: EndReason::Budget,
        instructions: 5 * length as u32,
        count: 1,
        proved: true,
        system_call: None,
        hardware: None,
        values: Vec::new(),
        timing: None,
    }
}

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let one = (0usize..200, 1u64..9, 0u64..9);
    prop::collection::vec(one, 1..60).prop_map(|list| {
        let made = list.into_iter().enumerate();
        made.map(|(i, (length, period, start))| burst(length, period, start, i as u64))
            .collect()
    })
}

/// Compresses, with r doubled after each burst whose number is in `coarser`.
fn compressed(bursts: &[Burst], seed: u64, coarser: &[usize]) -> Compressed {
    let mut compressor = Compressor::new(Generator::new(seed));
    for (i, burst) in bursts.iter().enumerate() {
        compressor.push(burst);
        coarser.iter().filter(|at| **at == i).for_each(|_| compressor.coarsen());
    }
    compressor.finish()
}

fn counts<'a>(windows: impl Iterator<Item = (&'a [Branch], u64)>) -> HashMap<Branch, u64> {
    let mut counts = HashMap::new();
    for (branches, weight) in windows {
        for branch in branches {
            *counts.entry(*branch).or_default() += weight;
        }
    }
    counts
}

fn estimate(compressed: &Compressed) -> HashMap<Branch, u64> {
    counts(compressed.windows.iter().map(|w| (&w.branches[..], w.weight)))
}

proptest! {
    /// As long as r is 1 every branch is counted, once, and so is every burst.
    #[test]
    fn at_first_nothing_is_lost(bursts in bursts(), seed: u64) {
        let all = compressed(&bursts, seed, &[]);
        prop_assert_eq!(estimate(&all), counts(bursts.iter().map(|b| (&b.branches[..], 1))));
        let [epoch] = &all.epochs[..] else { panic!("{:?}", all.epochs) };
        prop_assert_eq!(epoch.bursts, bursts.len() as u64);
        prop_assert_eq!(epoch.branches, bursts.iter().map(|b| b.branches.len() as u64).sum::<u64>());
        prop_assert_eq!(epoch.windows, all.windows.iter().map(|w| w.weight).sum::<u64>());
        let ends: u64 = all.windows.iter().filter(|w| w.last).map(|w| w.weight).sum();
        prop_assert_eq!(ends, epoch.bursts - epoch.empty_bursts);
        let leads: u64 = all.windows.iter().filter(|w| w.lead.is_none()).map(|w| w.weight).sum();
        prop_assert_eq!(leads, ends, "each burst has a first window");
    }

    /// However often and whenever r grew: each weight is a multiple of it, and all weights together are off by less
    /// than r for each substream that is in use. With one beginning, there is one substream.
    #[test]
    fn a_pure_stratum_errs_by_less_than_the_rate(
        times in 0usize..400,
        seed: u64,
        coarser in prop::collection::vec(0usize..400, 0..6),
    ) {
        let bursts: Vec<Burst> = (0..times).map(|i| burst(WINDOW, 5, 0, i as u64)).collect();
        let all = compressed(&bursts, seed, &coarser);
        let sum: u64 = all.windows.iter().map(|w| w.weight).sum();
        prop_assert!(sum.abs_diff(times as u64) < all.rate, "{} for {}, r {}", sum, times, all.rate);
        prop_assert!(all.windows.iter().all(|w| w.weight % all.rate == 0 && w.weight > 0));
        let doubled = coarser.iter().filter(|at| **at < times).count();
        prop_assert_eq!(all.rate, 1 << doubled);
        prop_assert_eq!(all.epochs.iter().map(|e| e.bursts).sum::<u64>(), times as u64);
        prop_assert!(all.epochs.is_sorted_by(|a, b| a.rate < b.rate && a.last_ns <= b.first_ns || b.bursts == 0));
    }

    /// Doubling r bounds the memory for any input.
    #[test]
    fn what_does_not_fit_is_thinned(bursts in bursts(), seed: u64, capacity in 300u64..3000) {
        let mut compressor = Compressor::new(Generator::new(seed));
        for burst in &bursts {
            compressor.push(burst);
            while compressor.bytes() > capacity {
                compressor.coarsen();
            }
            prop_assert!(compressor.bytes() <= capacity);
        }
        prop_assert!(compressor.rate().get() <= 1 << 12, "{}", compressor.rate());
    }
}

/// Cutting time into epochs does not matter: in the mean over random phases every branch has its count, at any
/// schedule.
#[test]
fn weights_are_right_on_average() {
    let bursts: Vec<Burst> = (0..60)
        .map(|i| burst(20 + 37 * i % 150, 1 + i as u64 % 7, i as u64, i as u64))
        .collect();
    let truth = counts(bursts.iter().map(|b| (&b.branches[..], 1)));
    let trials = 4000;
    for coarser in [&[0usize, 0, 0][..], &[10, 30, 50], &[59, 59, 59]] {
        let mut sums: HashMap<Branch, u64> = HashMap::new();
        for seed in 0..trials {
            for (branch, count) in estimate(&compressed(&bursts, seed, coarser)) {
                *sums.entry(branch).or_default() += count;
            }
        }
        for (branch, count) in &truth {
            let mean = sums[branch] as f64 / trials as f64;
            // A window weighs at most 8 and holds a branch at most 32 times: four standard errors.
            let error = (8.0 * 32.0 * *count as f64 / trials as f64).sqrt() * 4.0;
            assert!(
                (mean - *count as f64).abs() < error,
                "{mean} for {count} ± {error} ({coarser:?})"
            );
        }
    }
}

/// The same windows in the same order give the same result: hash tables are not asked for their order.
#[test]
fn the_seed_decides() {
    let bursts: Vec<Burst> = (0..300).map(|i| burst(100, 1 + i % 8, i, i)).collect();
    let once = compressed(&bursts, 5, &[20, 40, 60]);
    assert_eq!(once, compressed(&bursts, 5, &[20, 40, 60]));
    assert_ne!(once, compressed(&bursts, 6, &[20, 40, 60]));
}
