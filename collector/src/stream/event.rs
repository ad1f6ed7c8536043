//! What compressors take.

use crate::vector::CodeAddress;

/// What compressors take: two words are enough for every profile of the paper.
pub trait Tuple {
    /// The word that says where something happened (`pc`), and the one that says what.
    fn words(&self) -> (u64, u64);
}

impl Tuple for (u64, u64) {
    fn words(&self) -> (u64, u64) {
        *self
    }
}

impl Tuple for u64 {
    fn words(&self) -> (u64, u64) {
        (*self, 0)
    }
}

/// An address as a word: modules of one recording are few, and files shorter than 2⁴⁸ bytes.
pub fn word(address: CodeAddress) -> u64 {
    address.offset ^ u64::from(address.module.0) << 48
}
