//! Random numbers: xorshift64*, a generator without allocation, locks or thread-local storage.

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
