//! Uncertainty of estimates from unknown speeds of phases.
//!
//! Bursts that timer ticks began show phases in proportion to their time. A phase's share of the taken branches depends
//! on its time for a branch, which bursts do not show. It is modelled as a random factor, the same for all bursts of a
//! phase, log-normal around 1: each bootstrap replicate draws one factor for each phase, which widens the intervals.

use crate::replicates::{REPLICATES, Times};
use pleach_collector::stream::mix;
use pleach_collector::vector::{Branch, Engine};

/// Standard deviation of the logarithm of a phase's time for a branch relative to the program's: two phases in three
/// are within a factor of two.
const SPREAD: f64 = std::f64::consts::LN_2;

/// The factors of a burst's phase: 1, then one for each replicate. Hardware records have factors of 1, because events
/// of the program trigger them.
pub(super) fn factors(engine: Engine, branches: &[Branch]) -> Times {
    if !matches!(engine, Engine::Step | Engine::RunAhead) {
        return [1.0; REPLICATES + 1];
    }
    let phase = place(branches);
    std::array::from_fn(|replicate| match replicate {
        0 => 1.0,
        _ => (SPREAD * normal(phase ^ (replicate as u64) << 48)).exp() as f32,
    })
}

/// The page of code that the majority of branches come from, if there is one (Boyer and Moore's majority vote).
fn place(branches: &[Branch]) -> u64 {
    let (mut place, mut votes) = (0, 0_usize);
    for branch in branches {
        let page = u64::from(branch.from.module.0) << 32 | (branch.from.offset >> 12 & 0xffff_ffff);
        if votes == 0 {
            place = page;
        }
        if page == place {
            votes += 1;
        } else {
            votes -= 1;
        }
    }
    place
}

/// A number of a standard normal distribution for each seed (Box and Muller).
fn normal(seed: u64) -> f64 {
    let uniform = |salt: u64| {
        // SplitMix64's finaliser, twice: neighbouring seeds must not give neighbouring numbers.
        let z = mix(mix(seed.wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        ((z >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    (-2.0 * uniform(1).ln()).sqrt() * (std::f64::consts::TAU * uniform(2)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_collector::vector::{CodeAddress, ModuleId};

    #[test]
    fn numbers_are_normal() {
        let numbers: Vec<f64> = (0..20_000).map(|seed| normal(seed << 3)).collect();
        let mean = numbers.iter().sum::<f64>() / 2e4;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e4;
        let beyond = numbers.iter().filter(|x| x.abs() > 1.645).count() as f64 / 2e4;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.04, "{mean} {variance}");
        assert!((beyond - 0.1).abs() < 0.01, "{beyond}");
    }

    #[test]
    fn one_phase_has_one_factor_and_hardware_has_none() {
        let at = |offset| CodeAddress {
            module: ModuleId(1),
            offset,
        };
        let branch = |offset| Branch {
            from: at(offset),
            to: at(0),
        };
        let (a, b) = ([branch(0x1010), branch(0x1ff0), branch(0x5000)], [branch(0x1500)]);
        let [fa, fb] = [&a[..], &b[..]].map(|branches| factors(Engine::RunAhead, branches));
        assert_eq!((fa, fa[0]), (fb, 1.0));
        assert_ne!(fa, factors(Engine::RunAhead, &[branch(0x5000)]));
        assert_eq!(factors(Engine::Lbr, &a), [1.0; REPLICATES + 1]);
    }
}
