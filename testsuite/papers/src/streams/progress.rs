//! Error and messages while a stream goes on (§5.4, figure 7): how long a program must run until its profile is right.

use super::error::{Selection, invariance_error};
use super::event::Event;
use super::samplers::Random;
use super::tagged::Tagged;
use pleach_collector::stream::{Generator, Periodic, Sampler, Split, Start};
use std::collections::HashMap;
use std::num::NonZeroU64;

/// n = 2048 substreams or entries, tags of two bits (§5.4).
const BITS: u32 = 11;
const TAG_BITS: u32 = 2;
/// The first checkpoint, in events; each further one is a quarter later.
const FIRST: f64 = 10_000.0;
const STEP: f64 = 1.25;

/// The five compressors of figure 7. Counters begin with zero, as the paper has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// R_256.
    Random,
    /// P_256.
    Periodic,
    /// H\[P_256\]_2048.
    Split,
    /// H\[P_512\]_2048.
    SplitHalf,
    /// The tagged table.
    Tagged,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 5] = [Self::Random, Self::Periodic, Self::Split, Self::SplitHalf, Self::Tagged];

    /// As the paper writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "R256",
            Self::Periodic => "P256",
            Self::Split => "H[P256]",
            Self::SplitHalf => "H[P512]",
            Self::Tagged => "tagged",
        }
    }

    fn sampler(self, generator: &mut Generator) -> Box<dyn Sampler<Event>> {
        let rate = |r| NonZeroU64::new(r).unwrap_or(NonZeroU64::MIN);
        let split = |r, generator: &mut Generator| {
            Box::new(Split::new(BITS, generator, |g| Periodic::new(rate(r), Start::Zero, g)))
        };
        match self {
            Self::Random => Box::new(Random::new(rate(256), generator)),
            Self::Periodic => Box::new(Periodic::new(rate(256), Start::Zero, generator)),
            Self::Split => split(256, generator),
            Self::SplitHalf => split(512, generator),
            Self::Tagged => Box::new(Tagged::new(rate(256), BITS, TAG_BITS, Start::Zero, generator)),
        }
    }
}

/// What is known after some events of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Checkpoint {
    /// Events so far.
    pub events: usize,
    /// The paper's error (§5.3.1) of the profile so far, a fraction; NaN where it selects no event.
    pub error: f64,
    /// Messages so far.
    pub messages: f64,
}

/// The checkpoints of one compressor, means over all trials.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// The compressor.
    pub kind: Kind,
    /// In order.
    pub checkpoints: Vec<Checkpoint>,
}

impl Progress {
    /// Events until the error was first at most this.
    pub fn first_within(&self, error: f64) -> Option<usize> {
        let first = self.checkpoints.iter().find(|point| point.error <= error);
        first.map(|point| point.events)
    }

    /// Events from which on the error was at most this.
    pub fn remains_within(&self, error: f64) -> Option<usize> {
        let within = self.checkpoints.iter().rev().take_while(|point| point.error <= error);
        within.last().map(|point| point.events)
    }

    /// The last checkpoint.
    pub fn last(&self) -> Option<&Checkpoint> {
        self.checkpoints.last()
    }
}

/// Compresses a stream with each compressor, so often.
pub fn progress(events: &[Event], trials: u64) -> Vec<Progress> {
    let ends = ends(events.len());
    // For each compressor and trial, its sampler, its profile, and how many messages it sent.
    let mut running: Vec<_> = (Kind::ALL.into_iter())
        .flat_map(|kind| (0..trials).map(move |seed| (kind, seed)))
        .map(|(kind, seed)| {
            let sampler = kind.sampler(&mut Generator::new(seed));
            (kind, sampler, HashMap::<Event, u64>::new(), 0_u64)
        })
        .collect();
    let mut all: Vec<Progress> = (Kind::ALL.into_iter())
        .map(|kind| Progress {
            kind,
            checkpoints: Vec::new(),
        })
        .collect();
    let mut truth = HashMap::new();
    let mut start = 0;
    for end in ends {
        for event in &events[start..end] {
            *truth.entry(*event).or_default() += 1;
        }
        for (_, sampler, profile, messages) in &mut running {
            for message in events[start..end].iter().filter_map(|event| sampler.push(*event)) {
                *profile.entry(message.event).or_default() += message.weight;
                *messages += 1;
            }
        }
        for of in &mut all {
            let of_kind = running.iter().filter(|(kind, ..)| *kind == of.kind);
            let (mut error, mut messages) = (0.0, 0.0);
            for (_, _, profile, sent) in of_kind {
                error += invariance_error(&truth, profile, &Selection::default()).unwrap_or(f64::NAN);
                messages += *sent as f64;
            }
            of.checkpoints.push(Checkpoint {
                events: end,
                error: error / trials as f64,
                messages: messages / trials as f64,
            });
        }
        start = end;
    }
    all
}

/// The events of each checkpoint; the last is the whole stream.
fn ends(events: usize) -> Vec<usize> {
    let before = std::iter::successors(Some(FIRST), |end| Some(end * STEP)).map(|end| end as usize);
    let mut ends: Vec<usize> = before.take_while(|&end| end < events).collect();
    ends.push(events);
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_collector::vector::{CodeAddress, ModuleId};

    fn load(pc: u64, value: u64) -> Event {
        let module = ModuleId(0);
        Event::LoadValue {
            pc: CodeAddress { module, offset: pc },
            value,
        }
    }

    #[test]
    fn profiles_converge_and_strata_send_less_at_first() {
        let mut generator = Generator::new(3);
        let events: Vec<Event> = (0..400_000)
            .map(|_| load(generator.below(10), generator.below(4)))
            .collect();
        let all = progress(&events, 2);
        let of = |kind| all.iter().find(|of| of.kind == kind).expect("each kind");
        for progress in &all {
            let (first, last) = (progress.checkpoints[3], progress.last().expect("a checkpoint"));
            assert_eq!(
                (last.events, last.error < first.error / 2.0),
                (400_000, true),
                "{progress:?}"
            );
        }
        let (random, split) = (of(Kind::Random), of(Kind::Split));
        assert!(
            split.first_within(0.05) < random.first_within(0.05),
            "{split:?} {random:?}"
        );
        assert!(split.checkpoints[3].messages < random.checkpoints[3].messages);
        let half = of(Kind::SplitHalf).last().expect("a checkpoint").messages;
        assert!(half < 0.6 * split.last().expect("a checkpoint").messages, "{half}");
    }

    #[test]
    fn thresholds_are_found() {
        let errors = [f64::NAN, 0.2, 0.04, 0.06, 0.05, 0.01];
        let progress = Progress {
            kind: Kind::Random,
            checkpoints: (1..)
                .zip(errors)
                .map(|(events, error)| Checkpoint {
                    events,
                    error,
                    messages: 0.0,
                })
                .collect(),
        };
        assert_eq!(
            (progress.first_within(0.05), progress.remains_within(0.05)),
            (Some(3), Some(5))
        );
        assert_eq!(
            (progress.first_within(0.001), progress.remains_within(0.001)),
            (None, None)
        );
    }

    #[test]
    fn the_last_checkpoint_is_the_whole_stream() {
        assert_eq!(ends(9_000), [9_000]);
        assert_eq!(ends(10_000), [10_000]);
        assert_eq!(ends(13_000), [10_000, 12_500, 13_000]);
    }
}
