//! Words, and how often each occurs.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// FNV-1a.
#[derive(Default)]
pub struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// How often each key occurs.
pub struct Counter<K> {
    counts: HashMap<K, u64, BuildHasherDefault<Fnv>>,
}

impl<K: Hash + Eq + Clone> Counter<K> {
    pub fn new() -> Self {
        Self { counts: HashMap::default() }
    }

    pub fn add(&mut self, key: K) {
        *self.counts.entry(key).or_insert(0) += 1;
    }

    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub fn most(&self) -> u64 {
        self.counts.values().copied().max().unwrap_or(0)
    }
}

#[test]
fn every_word_is_counted() {
    let mut counter = Counter::new();
    Generator::new(5_000_000).for_each(|word| counter.add(word));
    assert_eq!(counter.total(), 5_000_000);
}

/// Words of one to four letters.
pub struct Generator {
    left: u64,
    state: u64,
}

impl Generator {
    pub fn new(count: u64) -> Self {
        Self { left: count, state: 1 }
    }
}

impl Iterator for Generator {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut bits = self.state >> 33;
        let letters = if bits % 8 == 0 { 4 } else { 1 + bits % 3 };
        let mut word = String::new();
        for _ in 0..letters {
            word.push(char::from(b'a' + (bits % 26) as u8));
            bits /= 26;
        }
        Some(word)
    }
}
