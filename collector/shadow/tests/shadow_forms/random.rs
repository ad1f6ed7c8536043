//! Values as programs have them, and as they should not.

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// For a general register.
    pub fn word(&mut self) -> u64 {
        let random = self.next();
        match self.below(10) {
            0..=3 => random,
            4 | 5 => random % 70,
            6 => (random as i32 >> 16) as u64,
            7 => random as i32 as u64,
            8 => [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 0x8000_0000, 0x7fff_ffff, 0xff][random as usize % 8],
            _ => random >> (random % 64),
        }
    }

    fn f32(&mut self) -> u32 {
        const SPECIAL: [u32; 12] = [
            0,
            0x8000_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7f80_0001,
            1,
            0x807f_ffff,
            0x4f00_0000,
            0xcf00_0000,
        ];
        let random = self.next();
        if self.one_in(8) {
            return SPECIAL[random as usize % SPECIAL.len()];
        }
        let exponent = 127 - 20 + (random >> 32) as u32 % 40;
        random as u32 & 0x807f_ffff | exponent << 23
    }

    fn f64(&mut self) -> u64 {
        const SPECIAL: [u64; 12] = [
            0,
            1 << 63,
            0x3ff0_0000_0000_0000,
            0xbff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            1,
            0x800f_ffff_ffff_ffff,
            0x43e0_0000_0000_0000,
            0xc3e0_0000_0000_0000,
        ];
        let random = self.next();
        if self.one_in(8) {
            return SPECIAL[random as usize % SPECIAL.len()];
        }
        let exponent = 1023 - 40 + self.below(80);
        random & 0x800f_ffff_ffff_ffff | exponent << 52
    }

    /// For a vector register or memory.
    pub fn fill(&mut self, words: &mut [u64]) {
        let style = self.below(9);
        let constant = self.next();
        for word in words {
            *word = match style {
                0..=2 => self.next(),
                3 => u64::from(self.f32()) | u64::from(self.f32()) << 32,
                4 => self.f64(),
                5 => self.next() & 0x0101_0101_0301_0701,
                6 => self.word(),
                7 => (constant & 0xff) * 0x0101_0101_0101_0101,
                _ => [0, u64::MAX][constant as usize & 1],
            };
        }
    }

    /// An 80-bit number.
    pub fn x87(&mut self) -> [u8; 10] {
        let (mut exponent, mut mantissa) = (0x3fff - 30 + self.below(60), self.next() | 1 << 63);
        if self.one_in(3) {
            // As conversions like it.
            mantissa &= u64::MAX << 40;
        }
        match self.below(24) {
            0 => (exponent, mantissa) = (0, 0),
            1 => (exponent, mantissa) = (0x7fff, 1 << 63),
            2 => exponent = 0x7fff,
            3 => (exponent, mantissa) = (0, mantissa >> 1),
            4 => mantissa >>= 1,
            5 => exponent = 0xffff,
            6 => (exponent, mantissa) = (0x3fff, 1 << 63),
            _ => {}
        }
        exponent |= self.below(2) << 15;
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
        bytes[8..].copy_from_slice(&(exponent as u16).to_le_bytes());
        bytes
    }
}
