//! Decodes a recording once, for all observers (feedback/ALGORITHMS.md, Decode).
//!
//! Each burst, and each window of a compressed recording, is decoded once. Every event goes to all observers: block
//! counts, partial paths, predictions and coverage. Nothing of a burst is kept after its end, so memory is bounded by
//! the program.

use crate::decode::{DecodeReport, Decoder, Event, Position};
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_collector::vector::{Branch, Burst, Compressed, VectorSet, Window};

/// Consecutive branches that are decoded together.
#[derive(Clone, Copy, Debug)]
pub enum ReplayUnit<'r> {
    /// A burst.
    Burst(&'r Burst),
    /// A window of a compressed recording.
    Window(&'r Window),
}

impl<'r> ReplayUnit<'r> {
    /// The branches, without a window's lead.
    pub fn branches(self) -> &'r [Branch] {
        match self {
            Self::Burst(burst) => &burst.branches,
            Self::Window(window) => &window.branches,
        }
    }
}

/// The burst or window that is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Run<'r> {
    /// Bursts, then windows, are numbered from 0 on. Each is a cluster of its own.
    pub number: usize,
    /// The branches.
    pub source: ReplayUnit<'r>,
}

impl Run<'_> {
    /// The branch that an event follows.
    pub fn branch(self, position: Position) -> Option<Branch> {
        match position {
            Position::Branch(branch) => self.source.branches().get(branch).copied(),
            Position::Interrupted | Position::Lead => None,
        }
    }

    /// The weight of an event; `None` if it is evidence of execution only.
    pub fn weight(self, position: Position, weights: &Weights) -> Option<f64> {
        match (self.source, position) {
            (_, Position::Interrupted) => None,
            (_, Position::Lead) => Some(0.0),
            (ReplayUnit::Burst(burst), Position::Branch(branch)) => {
                Some(burst.count as f64 * weights.get(self.number, branch))
            }
            (ReplayUnit::Window(window), Position::Branch(_)) => Some(window.weight as f64),
        }
    }
}

/// Receives decoded events.
pub trait Observer {
    /// A burst or window begins.
    fn begin(&mut self, _run: Run<'_>) {}
    /// An event, in execution order.
    fn event(&mut self, run: Run<'_>, position: Position, event: Event);
    /// A burst or window ended, and with it all of its activations.
    fn end(&mut self, _run: Run<'_>) {}
}

/// Two observers of the same replay.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn begin(&mut self, run: Run<'_>) {
        self.0.begin(run);
        self.1.begin(run);
    }

    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        self.0.event(run, position, event);
        self.1.event(run, position, event);
    }

    fn end(&mut self, run: Run<'_>) {
        self.0.end(run);
        self.1.end(run);
    }
}

impl<T: Observer> Observer for &mut T {
    fn begin(&mut self, run: Run<'_>) {
        (**self).begin(run);
    }

    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        (**self).event(run, position, event);
    }

    fn end(&mut self, run: Run<'_>) {
        (**self).end(run);
    }
}

/// Replays bursts, one at a time.
pub struct Replay<'p> {
    decoder: Decoder<'p>,
    /// Bursts and windows so far.
    number: usize,
    /// Taken branches of each burst that are decoded.
    max_branches: usize,
}

impl<'p> Replay<'p> {
    /// A replay of a program's bursts.
    pub fn new(program: &'p Program) -> Self {
        Self::with_max_branches(program, usize::MAX)
    }

    /// Decodes only the first `max_branches` taken branches of each burst, and what the last one leads to.
    pub fn with_max_branches(program: &'p Program, max_branches: usize) -> Self {
        Self {
            decoder: Decoder::new(program),
            number: 0,
            max_branches,
        }
    }

    /// Replays a burst.
    pub fn burst(&mut self, burst: &Burst, observer: &mut impl Observer) {
        let run = Run {
            number: self.number,
            source: ReplayUnit::Burst(burst),
        };
        observer.begin(run);
        self.decoder
            .whole_burst(burst, self.max_branches, &mut |position, event| {
                observer.event(run, position, event);
            });
        observer.end(run);
        self.number += 1;
    }

    /// Gives the next burst or window this number.
    pub(crate) fn continue_at(&mut self, number: usize) {
        self.number = number;
    }

    /// Replays the windows of a compressed recording.
    pub fn compressed(&mut self, compressed: &Compressed, observer: &mut impl Observer) {
        self.decoder.note_compressed(compressed);
        for window in &compressed.windows {
            let run = Run {
                number: self.number,
                source: ReplayUnit::Window(window),
            };
            observer.begin(run);
            self.decoder
                .window(window, &mut |position, event| observer.event(run, position, event));
            observer.end(run);
            self.number += 1;
        }
    }

    /// Replays a whole recording.
    pub fn recording(&mut self, vectors: &VectorSet, observer: &mut impl Observer) {
        for burst in &vectors.bursts {
            self.burst(burst, observer);
        }
        if let Some(compressed) = &vectors.compressed {
            self.compressed(compressed, observer);
        }
    }

    /// What the address maps explained so far.
    pub fn report(&self) -> DecodeReport {
        self.decoder.report
    }
}
