//! Error against messages, for each compressor.

use super::error::{Selection, invariance_error};
use super::event::Event;
use super::samplers::{CountedRandom, Random};
use super::tagged::Tagged;
use pleach_collector::stream::{Accumulator, Generator, Periodic, Sampler, Split, Start};
use std::collections::HashMap;
use std::num::NonZeroU64;

/// Rates r; the paper has 256 and 512.
pub const RATES: [u64; 5] = [16, 64, 256, 512, 1024];
/// n = 2048 substreams or entries (§5.4).
const BITS: u32 = 11;
/// k of the second level (§5.6).
const ENTRIES: usize = 16;
/// Bits of a tag (§5.4).
const TAG_BITS: u32 = 2;

/// Bits of the numbers of substreams in the study of table sizes: 512 to 4096 (§5.5).
pub const TABLE_BITS: [u32; 4] = [9, 10, 11, 12];
/// r in that study.
const TABLE_RATE: u64 = 256;

/// A first-level compressor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// R_r.
    Random,
    /// P_r.
    Periodic,
    /// CR_r.
    CountedRandom,
    /// H\[R_r\]_2048.
    SplitRandom,
    /// H\[P_r\]_2048 with random phases.
    Split,
    /// H\[P_r\]_2048 whose counters begin with zero, as the paper has it.
    SplitFromZero,
    /// H\[CR_r\]_2048.
    SplitCounted,
    /// The tagged table: tags of two bits, 2048 entries, two ways.
    Tagged,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 8] = [
        Self::Random,
        Self::Periodic,
        Self::CountedRandom,
        Self::SplitRandom,
        Self::Split,
        Self::SplitFromZero,
        Self::SplitCounted,
        Self::Tagged,
    ];

    /// As the paper writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "R",
            Self::Periodic => "P",
            Self::CountedRandom => "CR",
            Self::SplitRandom => "H[R]",
            Self::Split => "H[P]",
            Self::SplitFromZero => "H[P], from 0",
            Self::SplitCounted => "H[CR]",
            Self::Tagged => "tagged",
        }
    }

    fn sampler(self, rate: NonZeroU64, generator: &mut Generator) -> Box<dyn Sampler<Event>> {
        let start = Start::Stationary;
        match self {
            Self::Random => Box::new(Random::new(rate, generator)),
            Self::Periodic => Box::new(Periodic::new(rate, start, generator)),
            Self::CountedRandom => Box::new(CountedRandom::new(rate, start, generator)),
            Self::SplitRandom => Box::new(Split::new(BITS, generator, |g| Random::new(rate, g))),
            Self::Split => Box::new(Split::new(BITS, generator, |g| Periodic::new(rate, start, g))),
            Self::SplitFromZero => Box::new(Split::new(BITS, generator, |g| Periodic::new(rate, Start::Zero, g))),
            Self::SplitCounted => Box::new(Split::new(BITS, generator, |g| CountedRandom::new(rate, start, g))),
            Self::Tagged => Box::new(Tagged::new(rate, BITS, TAG_BITS, Start::Zero, generator)),
        }
    }
}

/// The results of one compressor at one rate, averaged over all trials.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// r.
    pub rate: u64,
    /// Messages per event.
    pub messages: f64,
    /// The same behind A_16.
    pub second: f64,
    /// The paper's error (§5.3.1), a fraction; NaN where it selects no event.
    pub error: f64,
    /// Σ min of the shares of all events.
    pub overlap: f64,
}

/// Points by rate, the lowest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The compressor.
    pub kind: Kind,
    /// By rate.
    pub points: Vec<Point>,
}

impl Curve {
    /// Compresses a stream, so often.
    pub(super) fn measure(kind: Kind, events: &[Event], truth: &HashMap<Event, u64>, trials: u64) -> Self {
        let points = RATES.iter().map(|rate| {
            let runs = (0..trials).map(|seed| point(kind, *rate, events, truth, seed));
            mean(&runs.collect::<Vec<_>>())
        });
        Self {
            kind,
            points: points.collect(),
        }
    }

    /// The error at a number of messages per event, interpolated between points in logarithms of both. NaN outside.
    pub fn error_at(&self, messages: f64) -> f64 {
        let between = self.points.windows(2).find_map(|pair| {
            let (more, fewer) = (pair[0], pair[1]);
            let inside = (fewer.messages..=more.messages).contains(&messages);
            let part = (messages / more.messages).ln() / (fewer.messages / more.messages).ln();
            // An error of 0 has no logarithm.
            let log = |error: f64| if error < 1e-9 { 1e-9f64.ln() } else { error.ln() };
            inside.then(|| (log(more.error) * (1.0 - part) + log(fewer.error) * part).exp())
        });
        between.unwrap_or(f64::NAN)
    }
}

/// H\[P_256\]_n for each size of the table, as the paper has it: its counters begin with zero.
pub(super) fn table_sizes(events: &[Event], truth: &HashMap<Event, u64>, trials: u64) -> Vec<Point> {
    let sizes = TABLE_BITS.iter().map(|bits| {
        let runs = (0..trials).map(|seed| {
            let mut generator = Generator::new(seed);
            let rate = NonZeroU64::new(TABLE_RATE).unwrap_or(NonZeroU64::MIN);
            let sampler = Split::new(*bits, &mut generator, |g| Periodic::new(rate, Start::Zero, g));
            compress(Box::new(sampler), TABLE_RATE, events, truth)
        });
        mean(&runs.collect::<Vec<_>>())
    });
    sizes.collect()
}

pub(super) fn counts(events: impl Iterator<Item = (Event, u64)>) -> HashMap<Event, u64> {
    let mut counts = HashMap::new();
    for (event, weight) in events {
        *counts.entry(event).or_default() += weight;
    }
    counts
}

fn point(kind: Kind, rate: u64, events: &[Event], truth: &HashMap<Event, u64>, seed: u64) -> Point {
    let mut generator = Generator::new(seed);
    let sampler = kind.sampler(NonZeroU64::new(rate).unwrap_or(NonZeroU64::MIN), &mut generator);
    compress(sampler, rate, events, truth)
}

fn compress(mut sampler: Box<dyn Sampler<Event>>, rate: u64, events: &[Event], truth: &HashMap<Event, u64>) -> Point {
    // A counter of eight bits for messages, as in the first level: with r in each, that is r × 256.
    let mut second = Accumulator::new(ENTRIES, rate * 256);
    let (mut messages, mut merged) = (0, 0);
    let mut estimate = HashMap::new();
    for event in events {
        let Some(message) = sampler.push(*event) else { continue };
        messages += 1;
        *estimate.entry(message.event).or_default() += message.weight;
        merged += u64::from(second.merge(message).is_some());
    }
    while second.take().is_some() {
        merged += 1;
    }
    let length = events.len() as f64;
    Point {
        rate,
        messages: f64::from(messages) / length,
        second: merged as f64 / length,
        error: invariance_error(truth, &estimate, &Selection::default()).unwrap_or(f64::NAN),
        overlap: overlap(truth, &estimate),
    }
}

/// Σ min of the shares.
pub(super) fn overlap<E: Eq + std::hash::Hash>(a: &HashMap<E, u64>, b: &HashMap<E, u64>) -> f64 {
    let (of_a, of_b) = (a.values().sum::<u64>() as f64, b.values().sum::<u64>() as f64);
    let both = a.iter().filter_map(|(event, count)| Some((*count, *b.get(event)?)));
    both.map(|(a, b)| (a as f64 / of_a).min(b as f64 / of_b)).sum()
}

fn mean(points: &[Point]) -> Point {
    let of = |value: fn(&Point) -> f64| points.iter().map(value).sum::<f64>() / points.len() as f64;
    Point {
        rate: points.first().map_or(0, |point| point.rate),
        messages: of(|p| p.messages),
        second: of(|p| p.second),
        error: of(|p| p.error),
        overlap: of(|p| p.overlap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_interpolated() {
        let point = |rate: u64, error| Point {
            rate,
            messages: 1.0 / rate as f64,
            second: 0.0,
            error,
            overlap: 1.0,
        };
        let curve = Curve {
            kind: Kind::Random,
            points: vec![point(64, 0.01), point(256, 0.04)],
        };
        assert!((curve.error_at(1.0 / 128.0) - 0.02).abs() < 1e-9);
        assert!((curve.error_at(1.0 / 256.0) - 0.04).abs() < 1e-9);
        assert!(curve.error_at(0.5).is_nan());
    }

    #[test]
    fn shares_overlap() {
        let (a, b) = (HashMap::from([(1, 3), (2, 1)]), HashMap::from([(1, 1), (3, 1)]));
        assert_eq!((overlap(&a, &a), overlap(&a, &b)), (1.0, 0.5));
    }
}
