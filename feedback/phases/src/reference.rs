//! A bounded sample of a phase's bursts.

use crate::batch::{Batch, half_of};
use crate::signature::Signature;
use pleach_collector::stream::mix;

/// Bursts of each half of a sample.
pub const HALF_CAPACITY: usize = 256;

/// A uniform sample of a phase's bursts (reservoir sampling, Vitter's algorithm R, in each half).
///
/// Which bursts are kept follows from their number alone, so that equal streams have equal samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reference {
    kept: Batch,
    seen: u64,
}

impl Reference {
    /// Adds a burst.
    pub fn add(&mut self, signature: Signature) {
        let (half, before) = (half_of(self.seen), self.seen / 2);
        self.seen += 1;
        let kept = self.kept.half_mut(half);
        if kept.bursts.len() < HALF_CAPACITY {
            kept.push(signature);
            return;
        }
        let place = mix(self.seen.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % (before + 1);
        if let Ok(place @ 0..HALF_CAPACITY) = usize::try_from(place) {
            kept.replace(place, signature);
        }
    }

    /// Bursts that were added.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The sample.
    pub fn kept(&self) -> &Batch {
        &self.kept
    }
}
