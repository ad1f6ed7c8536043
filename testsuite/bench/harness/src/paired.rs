//! Times of two binaries in interleaved pairs, so that load on the machine affects both alike.

use crate::build::Binary;
use crate::run::{Invocation, run};
use crate::stats::{Interval, Spread, bootstrap_median};
use anyhow::{Result, ensure};
use serde::Serialize;

/// Two binaries' times on one input.
#[derive(Clone, Debug, Serialize)]
pub struct Paired {
    /// Elapsed time.
    pub wall: Comparison,
    /// User and system CPU time.
    pub cpu: Comparison,
}

/// Seconds of both, and the ratio of the second to the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The first binary's seconds.
    pub a: Spread,
    /// The second binary's seconds.
    pub b: Spread,
    /// Median over pairs of second ÷ first: below one, the second is faster.
    pub ratio: Interval,
}

impl Comparison {
    /// From the seconds of each pair.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Self {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let ratios: Vec<f64> = pairs.iter().map(|(a, b)| b / a).collect();
        Self {
            a: Spread::from_values(&a),
            b: Spread::from_values(&b),
            ratio: bootstrap_median(&ratios),
        }
    }
}

/// Runs `n` interleaved pairs, A B B A A B …, so that a slow drift cancels out. Every run's checksum must be right.
pub fn paired(a: &Binary, b: &Binary, invocation: &Invocation, n: usize) -> Result<Paired> {
    ensure!(n > 0, "no pairs to run");
    for binary in [a, b] {
        // Unmeasured: the first run of a binary reads it from the disk.
        run(binary, invocation)?.expect_checksum(binary, invocation)?;
    }
    let (mut wall, mut cpu) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for pair in 0..n {
        let measure =
            |binary: &Binary| -> Result<_> { Ok(run(binary, invocation)?.expect_checksum(binary, invocation)?.usage) };
        let (first, second) = if pair % 2 == 0 {
            let first = measure(a)?;
            (first, measure(b)?)
        } else {
            let second = measure(b)?;
            (measure(a)?, second)
        };
        wall.push((first.wall, second.wall));
        cpu.push((first.cpu, second.cpu));
    }
    Ok(Paired {
        wall: Comparison::from_pairs(&wall),
        cpu: Comparison::from_pairs(&cpu),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_pair_by_pair() {
        // The machine slows down between pairs; each pair still says that B takes half as long.
        let comparison = Comparison::from_pairs(&[(1.0, 0.5), (2.0, 1.0), (8.0, 4.0)]);
        assert_eq!(comparison.ratio.value, 0.5);
        assert_eq!(comparison.ratio.low, 0.5);
        assert_eq!(comparison.a.median, 2.0);
        assert_eq!(comparison.b.max, 4.0);
    }
}
