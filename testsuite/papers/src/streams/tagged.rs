//! The tagged table (§4): less aliasing than H\[P_r\]_n, for more messages.

use pleach_collector::stream::Generator;
use pleach_collector::stream::Tuple;
use pleach_collector::stream::{Hasher, tag};
use pleach_collector::stream::{Message, Sampler, Start};
use std::num::NonZeroU64;

/// Entries in a set, as in the paper's experiments (§5.4).
const WAYS: usize = 2;
/// Where the miss counter of three bits saturates (§4.2).
const MAX_MISSES: u64 = 7;

/// The state of an entry (figure 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nobody's. Hits that it holds go to whoever comes next.
    Empty,
    /// A tuple's.
    Valid,
    /// To be given out when its tuple comes again: only then is the whole tuple at hand.
    Evict,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    owned: bool,
    tag: u32,
    hits: u64,
    misses: u64,
}

impl Entry {
    /// The evict state is a miss counter that is not zero (§4.2).
    fn state(&self) -> State {
        match (self.owned, self.misses) {
            (false, _) => State::Empty,
            (true, 0) => State::Valid,
            (true, _) => State::Evict,
        }
    }

    /// The tuple of this entry. Gives a weight that must be sent with it.
    fn hit(&mut self, threshold: u64) -> Option<u64> {
        self.hits += 1;
        let weight = self.hits;
        match self.state() {
            // E2; else E3.
            State::Empty | State::Valid if weight >= threshold => self.hits = 0,
            // E6: the next tuple gets the misses; else E6a.
            State::Evict if weight >= threshold / 4 && self.misses * weight >= threshold => self.hits = self.misses,
            _ => return None,
        }
        (self.owned, self.misses) = (false, 0);
        Some(weight)
    }

    /// Another tuple. Whether it owns the entry now.
    fn miss(&mut self, tag: u32) -> bool {
        let replace = match self.state() {
            State::Empty => true,  // E1
            State::Valid => false, // E4
            // Should-Replace.
            State::Evict => self.misses >= MAX_MISSES || self.hits == 1 || self.hits < 2 * self.misses,
        };
        if replace {
            // E5: the stream's length is kept, though some of it belongs to others.
            let hits = self.hits + self.misses;
            (self.owned, self.tag, self.hits, self.misses) = (true, tag, hits, 0);
        } else {
            self.misses += 1; // E4, E5a
        }
        replace
    }
}

/// A two-way set-associative table of counters with partial tags, and the state machine of figure 6.
///
/// The paper leaves two things open. An event that replaces another counts as a hit of its own, so that no event is
/// lost. A miss goes to the entry with fewer hits of the set.
#[derive(Clone, Debug)]
pub struct Tagged {
    hasher: Hasher,
    tag_bits: u32,
    threshold: NonZeroU64,
    entries: Box<[[Entry; WAYS]]>,
}

impl Tagged {
    /// With 2^`bits` entries (at least two), tags of `tag_bits` bits, and messages when a hit counter reaches the
    /// threshold.
    pub fn new(threshold: NonZeroU64, bits: u32, tag_bits: u32, start: Start, generator: &mut Generator) -> Self {
        let sets = bits.saturating_sub(1);
        let hasher = Hasher::new(sets, generator);
        let mut entry = || Entry {
            owned: false,
            tag: 0,
            hits: match start {
                Start::Zero => 0,
                Start::Stationary => generator.below(threshold.get()),
            },
            misses: 0,
        };
        Self {
            hasher,
            tag_bits,
            threshold,
            entries: (0..1usize << sets).map(|_| std::array::from_fn(|_| entry())).collect(),
        }
    }

    /// All events that are counted and not yet given out.
    pub fn held(&self) -> u64 {
        self.entries
            .iter()
            .flatten()
            .map(|entry| entry.hits + entry.misses)
            .sum()
    }
}

impl<E: Tuple> Sampler<E> for Tagged {
    fn push(&mut self, event: E) -> Option<Message<E>> {
        let words = event.words();
        let tag = tag(words, self.tag_bits);
        let set = &mut self.entries[self.hasher.index(words)];
        let owned = set.iter().position(|entry| entry.owned && entry.tag == tag);
        let chosen = match owned {
            Some(owned) => &mut set[owned],
            None => {
                let least = set.iter_mut().min_by_key(|entry| (entry.owned, entry.hits))?;
                if !least.miss(tag) {
                    return None;
                }
                least
            }
        };
        let weight = chosen.hit(self.threshold.get())?;
        Some(Message { event, weight })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(hits: u64, misses: u64) -> Entry {
        Entry {
            owned: true,
            tag: 1,
            hits,
            misses,
        }
    }

    #[test]
    fn a_full_counter_is_sent_and_the_entry_is_empty() {
        let mut full = entry(254, 0);
        assert_eq!(full.hit(256), None);
        assert_eq!(full.hit(256), Some(256));
        assert_eq!((full.state(), full.hits), (State::Empty, 0));
    }

    #[test]
    fn an_entry_waits_for_its_tuple_to_be_evicted() {
        let mut waiting = entry(70, 0);
        assert!(!waiting.miss(2));
        assert_eq!(waiting.state(), State::Evict);
        assert_eq!(waiting.hit(256), None, "71 hits need four misses");
        assert!((0..3).all(|_| !waiting.miss(2)));
        assert_eq!(waiting.hit(256), Some(72));
        assert_eq!(
            (waiting.state(), waiting.hits),
            (State::Empty, 4),
            "the next one gets the misses"
        );
    }

    #[test]
    fn few_hits_are_replaced() {
        let mut rare = entry(3, 0);
        assert!(!rare.miss(2) && !rare.miss(2));
        assert!(rare.miss(2), "3 hits < 2 × 2 misses");
        assert_eq!((rare.state(), rare.tag, rare.hits), (State::Valid, 2, 5));
        let mut frequent = entry(60, MAX_MISSES);
        assert!(frequent.miss(2), "the miss counter is full");
        assert_eq!(frequent.hits, 67);
    }
}
