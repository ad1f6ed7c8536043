//! The events of a stream.

use crate::vector::CodeAddress;

/// An event. Two words are enough for every profile of the paper.
pub trait Tuple {
    /// The word for the place of the event (`pc`), and the word for its value.
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

/// An address as one word. A recording has few modules, and files are shorter than 2⁴⁸ bytes.
pub fn word(address: CodeAddress) -> u64 {
    address.offset ^ u64::from(address.module.0) << 48
}
