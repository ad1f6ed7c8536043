//! The paper's other basic samplers (§3.1), and a sampler with an accumulator behind it (§3.4).

use pleach_collector::stream::{Accumulator, Generator, Message, Sampler, Start};
use std::num::NonZeroU64;

/// R_r: each event with probability 1/r, whatever the others.
#[derive(Clone, Debug)]
pub struct Random {
    rate: NonZeroU64,
    generator: Generator,
}

impl Random {
    /// With rate r.
    pub fn new(rate: NonZeroU64, generator: &mut Generator) -> Self {
        Self {
            rate,
            generator: Generator::new(generator.word()),
        }
    }
}

impl<E> Sampler<E> for Random {
    fn push(&mut self, event: E) -> Option<Message<E>> {
        let weight = self.rate.get();
        self.generator.one_in(weight).then_some(Message { event, weight })
    }
}

/// CR_r: R_r with a counter C. A message's weight is the number of events since the last one, so that the stream's
/// length is known as exactly as with P_r (§3.1).
#[derive(Clone, Debug)]
pub struct CountedRandom {
    random: Random,
    count: u64,
}

impl CountedRandom {
    /// With rate r.
    pub fn new(rate: NonZeroU64, start: Start, generator: &mut Generator) -> Self {
        let mut random = Random::new(rate, generator);
        let mut count = 0;
        // The time since the last message is geometric at any moment.
        while start == Start::Stationary && !random.generator.one_in(rate.get()) {
            count += 1;
        }
        Self { random, count }
    }
}

impl<E> Sampler<E> for CountedRandom {
    fn push(&mut self, event: E) -> Option<Message<E>> {
        self.count += 1;
        let chosen = self.random.push(event)?;
        let weight = std::mem::take(&mut self.count);
        Some(Message { weight, ..chosen })
    }
}

/// The random sampler of ProfileMe and DCPI (§3.1): a counter is loaded with a number from the open interval (1, 2r),
/// or 1, and the event at which it has run down is chosen. The mean distance is r, but choices are not independent.
#[derive(Clone, Debug)]
pub struct Countdown {
    rate: NonZeroU64,
    left: u64,
    generator: Generator,
}

impl Countdown {
    /// With mean rate r.
    pub fn new(rate: NonZeroU64, start: Start, generator: &mut Generator) -> Self {
        let mut generator = Generator::new(generator.word());
        let distances = 2 * rate.get() - 1;
        let left = match start {
            Start::Zero => 1 + generator.below(distances),
            // A stream meets long distances more often, in proportion to their length, and anywhere inside.
            Start::Stationary => loop {
                let distance = 1 + generator.below(distances);
                if generator.below(distances) < distance {
                    break 1 + generator.below(distance);
                }
            },
        };
        Self { rate, left, generator }
    }
}

impl<E> Sampler<E> for Countdown {
    fn push(&mut self, event: E) -> Option<Message<E>> {
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        let weight = self.rate.get();
        self.left = 1 + self.generator.below(2 * weight - 1);
        Some(Message { event, weight })
    }
}

/// X + A_k: a sampler with an accumulator behind it.
#[derive(Clone, Debug)]
pub struct Accumulated<S, E> {
    sampler: S,
    accumulator: Accumulator<E>,
}

impl<S, E> Accumulated<S, E> {
    /// Puts the accumulator behind the sampler.
    pub fn new(sampler: S, accumulator: Accumulator<E>) -> Self {
        Self { sampler, accumulator }
    }
}

impl<E: Eq, S: Sampler<E>> Sampler<E> for Accumulated<S, E> {
    fn push(&mut self, event: E) -> Option<Message<E>> {
        let message = self.sampler.push(event)?;
        self.accumulator.merge(message)
    }

    fn drain(&mut self) -> Option<Message<E>> {
        while let Some(message) = self.sampler.drain() {
            if let Some(leaving) = self.accumulator.merge(message) {
                return Some(leaving);
            }
        }
        self.accumulator.take()
    }
}
