//! The paper's hash function (§3.5).

use super::random::Generator;

/// `index = xor-fold(flip(randomize(pc)) xor randomize(w))`, keyed by the random table. The tag is `xor-fold(pc xor w)`
/// (§4.1).
#[derive(Clone, Debug)]
pub struct Hasher {
    table: [u8; 256],
    bits: u32,
}

impl Hasher {
    /// A hash function with indices of `bits` bits, at most 32.
    pub fn new(bits: u32, generator: &mut Generator) -> Self {
        let mut table = [0; 256];
        table.fill_with(|| generator.word() as u8);
        Self {
            table,
            bits: bits.min(32),
        }
    }

    /// The substream or set of a tuple.
    pub fn index(&self, (pc, value): (u64, u64)) -> usize {
        let word = self.randomize(pc).swap_bytes() ^ self.randomize(value);
        fold(word, self.bits) as usize
    }

    fn randomize(&self, word: u64) -> u64 {
        u64::from_le_bytes(word.to_le_bytes().map(|byte| self.table[usize::from(byte)]))
    }
}

/// A tag of `bits` bits.
pub fn tag((pc, value): (u64, u64), bits: u32) -> u32 {
    fold(pc ^ value, bits) as u32
}

/// `xor-fold`: all pieces of `bits` bits, combined.
fn fold(mut word: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let mut folded = 0;
    while word != 0 && bits != 0 {
        folded ^= word & mask;
        word >>= bits;
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_piece_by_piece() {
        assert_eq!(fold(0x1234, 4), 4, "1 ^ 2 ^ 3 ^ 4");
        assert_eq!(fold(0x1234, 0), 0);
        assert_eq!(fold(u64::MAX, 11), 0x7ff ^ 0x1ff);
        assert_eq!(tag((0b0110, 0b0001), 2), 0b01 ^ 0b11);
    }

    #[test]
    fn neighbours_are_spread() {
        let hasher = Hasher::new(8, &mut Generator::new(1));
        let used: std::collections::HashSet<usize> =
            (0..1024).map(|i| hasher.index((0x40_1000 + 4 * i, i % 7))).collect();
        assert!(used.len() > 200, "{}", used.len());
        assert!(used.iter().all(|index| *index < 256));
    }
}
