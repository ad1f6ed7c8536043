//! The paper's periodic sampler (§3.1), and the splitter (§3.2).

use super::event::Tuple;
use super::hash::Hasher;
use super::random::Generator;
use std::num::NonZeroU64;

/// An event and the number of events that it represents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<E> {
    /// The event.
    pub event: E,
    /// How many events it stands for; for samplers without a counter, always their rate (§3.3).
    pub weight: u64,
}

/// Something that compresses a stream of events.
pub trait Sampler<E> {
    /// Adds an event; may return a message.
    fn push(&mut self, event: E) -> Option<Message<E>>;

    /// Returns buffered messages, one per call. Remainders in counters belong to no known event and are not returned.
    fn drain(&mut self) -> Option<Message<E>> {
        None
    }
}

impl<E> Sampler<E> for Box<dyn Sampler<E>> {
    fn push(&mut self, event: E) -> Option<Message<E>> {
        (**self).push(event)
    }

    fn drain(&mut self) -> Option<Message<E>> {
        (**self).drain()
    }
}

/// The initial state of samplers' counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Zero, as in the paper: the weight that remains in counters at the end is lost.
    Zero,
    /// A state as if the sampler had always been running: no event's expected weight is changed by where the stream
    /// begins or ends.
    Stationary,
}

/// P_r: every r-th event. Between two messages there are r − 1 events, never more: k messages mean rk to rk + (r − 1)
/// events.
#[derive(Clone, Debug)]
pub struct Periodic {
    rate: NonZeroU64,
    /// Events since the last message, below the rate.
    phase: u64,
}

impl Periodic {
    /// With rate r.
    pub fn new(rate: NonZeroU64, start: Start, generator: &mut Generator) -> Self {
        let phase = match start {
            Start::Zero => 0,
            Start::Stationary => generator.below(rate.get()),
        };
        Self { rate, phase }
    }

    /// Adds `count` equal events. Returns how many of them are an r-th event.
    pub fn advance(&mut self, count: u64) -> u64 {
        let sum = u128::from(self.phase) + u128::from(count);
        let rate = u128::from(self.rate.get());
        self.phase = (sum % rate) as u64;
        (sum / rate) as u64
    }

    /// Doubles the rate: composes the sampler with a sampler P_2 of its messages, in that sampler's present state. If
    /// the P_2 began with a random phase, the result is as if the rate had been twice as high from the start.
    pub fn double(&mut self, thinning: &Self) {
        self.phase += thinning.phase * self.rate.get();
        self.rate = self.rate.saturating_mul(thinning.rate);
    }

    /// r.
    pub fn rate(&self) -> NonZeroU64 {
        self.rate
    }
}

impl<E> Sampler<E> for Periodic {
    fn push(&mut self, event: E) -> Option<Message<E>> {
        self.phase += 1;
        if self.phase < self.rate.get() {
            return None;
        }
        self.phase = 0;
        let weight = self.rate.get();
        Some(Message { event, weight })
    }
}

/// H\[X\]_n: events are hashed into n substreams, each with its own sampler X. Equal events are in the same substream,
/// so substreams are more uniform than the whole stream. In a substream of equal events, the count has an error below
/// the rate.
#[derive(Clone, Debug)]
pub struct Split<S> {
    hasher: Hasher,
    strata: Box<[S]>,
}

impl<S> Split<S> {
    /// With n = 2^`bits` samplers.
    pub fn new(bits: u32, generator: &mut Generator, mut sampler: impl FnMut(&mut Generator) -> S) -> Self {
        let hasher = Hasher::new(bits, generator);
        let strata = (0..1usize << bits).map(|_| sampler(generator)).collect();
        Self { hasher, strata }
    }

    /// The number of an event's substream.
    pub fn index(&self, event: &impl Tuple) -> usize {
        self.hasher.index(event.words())
    }

    /// The samplers of all substreams.
    pub fn strata(&self) -> &[S] {
        &self.strata
    }

    /// The samplers of all substreams.
    pub fn strata_mut(&mut self) -> &mut [S] {
        &mut self.strata
    }
}

impl<E: Tuple, S: Sampler<E>> Sampler<E> for Split<S> {
    fn push(&mut self, event: E) -> Option<Message<E>> {
        let index = self.index(&event);
        self.strata[index].push(event)
    }

    fn drain(&mut self) -> Option<Message<E>> {
        self.strata.iter_mut().find_map(Sampler::drain)
    }
}
