//! The paper's Monte-Carlo experiment (§3.3, figure 4): how long a stream must be for a sampler to be accurate.

use super::samplers::{CountedRandom, Random};
use pleach_collector::stream::Generator;
use pleach_collector::stream::{Periodic, Sampler, Split, Start};
use std::num::NonZeroU64;

/// The paper does not say into how many substreams it splits. Four make its 4600 events: see [`mean_error`].
pub const STRATA_BITS: u32 = 2;
const TUPLE: u64 = 0;

/// One of the paper's six samplers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// R_r.
    Random,
    /// P_r.
    Periodic,
    /// CR_r.
    CountedRandom,
    /// H\[R_r\]_n.
    SplitRandom,
    /// H\[P_r\]_n.
    SplitPeriodic,
    /// H\[CR_r\]_n.
    SplitCountedRandom,
}

impl Kind {
    /// All, in the paper's order.
    pub const ALL: [Self; 6] = [
        Self::Periodic,
        Self::Random,
        Self::CountedRandom,
        Self::SplitPeriodic,
        Self::SplitRandom,
        Self::SplitCountedRandom,
    ];

    fn sampler(self, rate: NonZeroU64, generator: &mut Generator) -> Box<dyn Sampler<u64>> {
        let start = Start::Stationary;
        match self {
            Self::Random => Box::new(Random::new(rate, generator)),
            Self::Periodic => Box::new(Periodic::new(rate, start, generator)),
            Self::CountedRandom => Box::new(CountedRandom::new(rate, start, generator)),
            Self::SplitRandom => Box::new(Split::new(STRATA_BITS, generator, |g| Random::new(rate, g))),
            Self::SplitPeriodic => Box::new(Split::new(STRATA_BITS, generator, |g| Periodic::new(rate, start, g))),
            Self::SplitCountedRandom => Box::new(Split::new(STRATA_BITS, generator, |g| {
                CountedRandom::new(rate, start, g)
            })),
        }
    }
}

/// Mean of |100 (t − EST) ÷ EST| over random permutations of `length` events, t = 30 % of which are one tuple; the
/// others are all different. Trials that never report the tuple are left out: they have no finite error.
///
/// In a substream of which that tuple is a share q, the variance of EST ÷ t is (r − 1)(1 − q) ÷ t. The paper's 4 % at
/// 4600 events needs q ≈ 0.62, which is what four substreams give.
///
/// One thing does not come out: the paper finds CR_r as good as P_r. A message of CR_r weighs the distance from the one
/// before, which is r on average but varies by as much, so that its estimate of t varies about twice as much as that of
/// P_r, and more than R_r's.
pub fn mean_error(kind: Kind, rate: NonZeroU64, length: u64, trials: u64, generator: &mut Generator) -> f64 {
    let copies = length * 3 / 10;
    let (mut sum, mut finite) = (0.0, 0.0);
    for _ in 0..trials {
        let mut sampler = kind.sampler(rate, generator);
        let (mut left, mut estimate) = (copies, 0);
        for remaining in (1..=length).rev() {
            let event = if generator.below(remaining) < left {
                left -= 1;
                TUPLE
            } else {
                generator.word() | 1
            };
            let message = sampler.push(event).filter(|message| message.event == TUPLE);
            estimate += message.map_or(0, |message| message.weight);
        }
        if estimate > 0 {
            sum += 100.0 * copies.abs_diff(estimate) as f64 / estimate as f64;
            finite += 1.0;
        }
    }
    sum / finite
}
