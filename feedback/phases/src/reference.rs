//! A bounded sample of a phase's bursts.

use crate::signature::Signature;
use pleach_collector::stream::mix;

/// Bursts of each half of a sample.
pub const HALF_CAPACITY: usize = 256;

/// A uniform sample of a phase's bursts (reservoir sampling, Vitter's algorithm R), in two halves that share no burst:
/// what one half suggests, the other one tests.
///
/// Which bursts are kept follows from their number alone, so that equal streams have equal samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reference {
    halves: [Vec<Signature>; 2],
    seen: u64,
}

impl Reference {
    /// Adds a burst.
    pub fn add(&mut self, signature: Signature) {
        let (half, before) = ((self.seen % 2) as usize, self.seen / 2);
        self.seen += 1;
        let kept = &mut self.halves[half];
        if kept.len() < HALF_CAPACITY {
            kept.push(signature);
            return;
        }
        let place = mix(self.seen.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % (before + 1);
        if let Some(replaced) = usize::try_from(place).ok().and_then(|place| kept.get_mut(place)) {
            *replaced = signature;
        }
    }

    /// Bursts that were added.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The bursts of one half, 0 or 1.
    pub fn half(&self, half: usize) -> &[Signature] {
        &self.halves[half]
    }
}
