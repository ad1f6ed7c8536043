//! A small generator with a seed.

/// Steele, Lea and Flood's SplitMix64: every seed gives another, reproducible stream.
#[derive(Clone, Debug)]
pub struct Generator(u64);

/// The finaliser of SplitMix64: a permutation of all words in which every bit depends on every bit.
pub fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Generator {
    /// A generator that starts from this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A word.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0. The bias is below `bound` ÷ 2⁶⁴.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// True once in `rate` times.
    pub fn one_in(&mut self, rate: u64) -> bool {
        self.below(rate) == 0
    }
}
