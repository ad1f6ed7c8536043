//! Times of two binaries in interleaved pairs, so that load on the machine affects both alike.

use crate::build::Binary;
use crate::process::Usage;
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

/// The ratios of CPU times of `n` interleaved pairs, second ÷ first.
pub fn paired_ratios(a: &Binary, b: &Binary, invocation: &Invocation, n: usize) -> Result<Vec<f64>> {
    let seconds = pairs(a, b, invocation, n)?;
    Ok(seconds.iter().map(|(a, b)| b.cpu / a.cpu).collect())
}

/// Runs `n` interleaved pairs, A B B A A B …, so that a slow drift cancels out. Every run's checksum must be right.
pub fn paired(a: &Binary, b: &Binary, invocation: &Invocation, n: usize) -> Result<Paired> {
    let usages = pairs(a, b, invocation, n)?;
    let of = |seconds: fn(&Usage) -> f64| {
        let pairs: Vec<(f64, f64)> = usages.iter().map(|(a, b)| (seconds(a), seconds(b))).collect();
        Comparison::from_pairs(&pairs)
    };
    Ok(Paired {
        wall: of(|usage| usage.wall),
        cpu: of(|usage| usage.cpu),
    })
}

fn pairs(a: &Binary, b: &Binary, invocation: &Invocation, n: usize) -> Result<Vec<(Usage, Usage)>> {
    ensure!(n > 0, "no pairs to run");
    let measure =
        |binary: &Binary| -> Result<_> { Ok(run(binary, invocation)?.expect_checksum(binary, invocation)?.usage) };
    for binary in [a, b] {
        // Unmeasured: the first run of a binary reads it from the disk.
        measure(binary)?;
    }
    let pair = |number: usize| {
        if number.is_multiple_of(2) {
            let first = measure(a)?;
            Ok((first, measure(b)?))
        } else {
            let second = measure(b)?;
            Ok((measure(a)?, second))
        }
    };
    (0..n).map(pair).collect()
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
