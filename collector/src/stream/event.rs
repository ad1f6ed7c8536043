//! Events of profiles (§2.1), and how bursts are read as streams of them.

use crate::vector::{Branch, Burst, CodeAddress};

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

/// An event of one of several profiles, which may be collected at the same time by one compressor (§5.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// Edge profile: any taken branch.
    Edge(Branch),
    /// Call-target profile: a call.
    CallTarget(Branch),
    /// Load-value profile: what a load returned.
    LoadValue {
        /// The load.
        pc: CodeAddress,
        /// What it loaded, zero-extended.
        value: u64,
    },
}

impl Tuple for Event {
    fn words(&self) -> (u64, u64) {
        match self {
            Self::Edge(branch) => (word(branch.from), word(branch.to)),
            // Apart from the same branch's edge: what is in one substream disturbs each other.
            Self::CallTarget(branch) => (!word(branch.from), word(branch.to)),
            Self::LoadValue { pc, value } => (word(*pc), *value),
        }
    }
}

/// Modules of one recording are few, and files shorter than 2⁴⁸ bytes.
pub(super) fn word(address: CodeAddress) -> u64 {
    address.offset ^ u64::from(address.module.0) << 48
}

/// The edge profile's events of a burst.
pub fn edges(burst: &Burst) -> impl Iterator<Item = Event> + '_ {
    burst.branches.iter().copied().map(Event::Edge)
}

/// The call-target profile's events of a burst. `is_call` tells whether there is a call, direct or not, at an address.
pub fn calls<'a>(
    burst: &'a Burst,
    mut is_call: impl FnMut(CodeAddress) -> bool + 'a,
) -> impl Iterator<Item = Event> + 'a {
    let calls = burst
        .branches
        .iter()
        .copied()
        .filter(move |branch| is_call(branch.from));
    calls.map(Event::CallTarget)
}
