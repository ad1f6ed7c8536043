//! Random numbers: xorshift64*, a generator without allocation, locks or thread-local storage; random intervals.

/// A sequence of random numbers.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed and a number, such as that of a thread in its process.
    #[inline]
    pub fn from_seed(seed: u64, ordinal: u32) -> Self {
        // Mixes the seed, so that similar seeds give unrelated sequences.
        let mut seed = seed.wrapping_add(u64::from(ordinal).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        seed = (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((seed ^ seed >> 31) | 1)
    }

    /// Uniform in 0..1.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// An exponentially distributed interval, from its mean and a number that is uniform in 0..1.
pub fn interval(mean: f64, uniform: f64) -> f64 {
    -mean * logarithm(1.0 - uniform)
}

/// The natural logarithm of a number above 0 and at most 1. The mathematical library is not used, because it would have
/// to be loaded into every process.
fn logarithm(x: f64) -> f64 {
    const BIAS: i64 = 1023;
    let bits = x.max(f64::MIN_POSITIVE).to_bits();
    let exponent = (bits >> 52) as i64 - BIAS;
    // In 1..2.
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | (BIAS as u64) << 52);
    // Twice the inverse hyperbolic tangent of at most a third: ten terms are exact to ten digits.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..10)
        .rev()
        .fold(0.0, |sum, term| sum * t * t + 1.0 / f64::from(2 * term + 1));
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * t * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_memoryless() {
        let mean = (0..1000).map(|i| interval(5.0, f64::from(i) / 1000.0)).sum::<f64>() / 1000.0;
        assert!((mean - 5.0).abs() < 0.05, "{mean}");
        assert_eq!(interval(5.0, 0.0), 0.0);
        for x in [1.0, 0.999, 0.75, 0.5, 0.3, 1e-3, 1e-16] {
            assert!((logarithm(x) - x.ln()).abs() < 1e-9, "{x}");
        }
    }
}
