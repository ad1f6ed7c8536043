//! Bootstrap replicates (feedback/ALGORITHMS.md, Confidence): each weighs every cluster with a Poisson number of mean
//! 1.

use pleach_collector::stream::mix;

/// Number of replicates.
pub const REPLICATES: usize = 32;
/// A weighted count: of the recording, then in each replicate.
pub type Times = [f32; REPLICATES + 1];
/// A cluster's weights: 1, then in each replicate a Poisson number of mean 1.
pub fn multipliers(cluster: u64) -> Times {
    let mut state = cluster.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bf0_3635;
    std::array::from_fn(|replicate| {
        if replicate == 0 {
            return 1.0;
        }
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let uniform = (mix(state) >> 11) as f64 / (1_u64 << 53) as f64;
        poisson(uniform)
    })
}

/// The number that a Poisson variable of mean 1 does not exceed with this probability.
fn poisson(uniform: f64) -> f32 {
    let (mut number, mut term) = (0, (-1.0_f64).exp());
    let mut below = term;
    while uniform >= below && number < 20 {
        number += 1;
        term /= f64::from(number);
        below += term;
    }
    number as f32
}
