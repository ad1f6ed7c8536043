//! A stream of bursts → begins and ends of phases, in bounded memory.
//!
//! ```text
//!            ┌── same ──┐                     ┌─ known ──► that phase again
//!            ▼          │                     │
//! interval ─► in a phase ── differs ─► apart ─┤
//!                       (cut at the change)   └─ unknown ► a new phase; stable after three more intervals
//! ```
//!
//! An interval is a constant number of bursts (section 4.3). Each is the outcome that the phase so far predicted. If it
//! differs by more than chance explains ([`crate::compare`]), the phase has ended: at the burst that divides the interval
//! best (least squares). What follows is collected until it fills an interval of its own, and is then either a phase
//! that was met before or a new one. A difference that one interval cannot prove may show in several: the last 2, 4 and
//! 8 intervals of a phase are compared with what came before them, too.
//!
//! A known phase is recognised only if its share of time is close, not merely if a difference is unproved.
//!
//! The first interval of a phase may be a mixture: of what took less than an interval, and of what followed. So a new
//! phase is compared with the known ones once more before it is stable, without its first interval. If it is one of them,
//! it is that phase again, from the burst on that divides the first interval best.
//!
//! Memory: [`MAX_PHASES`] samples of at most 512 bursts, eight intervals, and a burst has at most 256 traces of 12
//! bytes, which are summed by trace once more. That is some 200 MB at most, for a recording of any length; programs with
//! loops take a hundredth.

use crate::batch::Batch;
use crate::compare::{Cause, Comparison, MIN_DIFFERENCE, Risen, Sample, cause};
use crate::reference::Reference;
use crate::signature::Signature;
use std::collections::VecDeque;

/// Bursts of an interval, unless a user chooses (section 5.5 compares 100 and 1000).
pub const DEFAULT_INTERVAL: usize = 100;
/// Least bursts of an interval. Fewer prove only that all of a program's time is spent otherwise.
pub const MIN_INTERVAL: usize = 50;
/// Largest interval that adapting chooses.
pub const MAX_ADAPTIVE_INTERVAL: usize = 1600;
/// Maximum of phases that can be recognised. Beyond it, the one with the fewest bursts is forgotten.
pub const MAX_PHASES: usize = 32;
/// Intervals that a phase must predict before it is stable (section 4.3: "if the predictions continue to perform well").
pub const STABLE_AFTER: u64 = 3;
/// Largest difference of a phase that is recognised.
const MAX_RETURN_DIFFERENCE: f64 = 0.2;
/// Largest difference of a new phase whose further intervals are of a known one: half of what makes a phase, so that
/// the error of the estimate hardly takes one for the other.
const MAX_MIXTURE_DIFFERENCE: f64 = MIN_DIFFERENCE / 2.0;
/// Most intervals that are compared together.
const MAX_WINDOW: usize = 8;
/// Phases that end before they are stable, one after the other, after which adapting doubles the interval.
const UNSTABLE_LIMIT: u32 = 6;

/// Identifies a phase of a recording: 1, 2, … in the order in which they were met first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PhaseId(pub u32);

/// The number of bursts of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interval {
    /// This number.
    Fixed(usize),
    /// From [`DEFAULT_INTERVAL`] on; doubled, up to [`MAX_ADAPTIVE_INTERVAL`], where phases end before they are stable.
    Adaptive,
}

/// Why a phase began.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// What is different from the phase before.
    pub cause: Cause,
    /// Share of time in the traces that became more frequent, in the phase before: an unbiased estimate.
    pub before: f64,
    /// The same since then.
    pub after: f64,
}

/// What a burst completed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// A phase has begun.
    Began {
        /// The phase.
        phase: PhaseId,
        /// Number of its first burst, from 0 on.
        burst: u64,
        /// When that burst began, or a change before it was, in nanoseconds of `CLOCK_MONOTONIC`.
        time_ns: u64,
        /// Whether the phase was met before.
        is_known: bool,
        /// Why; `None` for the first phase.
        change: Option<Change>,
    },
    /// A phase has ended.
    Ended {
        /// The phase.
        phase: PhaseId,
        /// Number of the first burst that is not of it.
        burst: u64,
        /// When that burst began, in nanoseconds of `CLOCK_MONOTONIC`.
        time_ns: u64,
    },
    /// A phase has predicted [`STABLE_AFTER`] intervals in a row.
    Stable {
        /// The phase.
        phase: PhaseId,
    },
}

/// A phase that can be recognised.
#[derive(Clone, PartialEq, Debug)]
struct Known {
    id: PhaseId,
    bursts: Reference,
}

/// The phase that lasts.
#[derive(Clone, PartialEq, Debug)]
struct Current {
    /// Number of its first burst in this visit.
    first: u64,
    /// Position in the known phases.
    known: usize,
    /// Whether it was not met before this visit.
    is_new: bool,
    /// Its last intervals, not yet in its sample.
    recent: VecDeque<Batch>,
    /// Intervals of this visit.
    intervals: u64,
    /// Whether it has predicted enough intervals.
    is_stable: bool,
}

/// Detects phases. Equal streams of bursts give equal events.
#[derive(Clone, Debug)]
pub struct Detector {
    interval: Interval,
    /// Bursts of an interval at present.
    length: usize,
    /// Bursts that fill no interval yet.
    pending: Vec<Signature>,
    /// Number of the first pending burst.
    first: u64,
    known: Vec<Known>,
    phases: u32,
    current: Option<Current>,
    /// The phase that ended, until the next one begins.
    before: Option<Known>,
    /// Phases in a row that ended before they were stable.
    unstable: u32,
    /// When the phase that begins next began, if that is known.
    begins_ns: Option<u64>,
}

impl Detector {
    /// A detector that has seen no burst. Intervals of fewer than [`MIN_INTERVAL`] bursts are made that long.
    pub fn new(interval: Interval) -> Self {
        let length = match interval {
            Interval::Fixed(bursts) => bursts.max(MIN_INTERVAL),
            Interval::Adaptive => DEFAULT_INTERVAL,
        };
        Self {
            interval,
            length,
            pending: Vec::new(),
            first: 0,
            known: Vec::new(),
            phases: 0,
            current: None,
            before: None,
            unstable: 0,
            begins_ns: None,
        }
    }

    /// Bursts of an interval at present.
    pub fn interval(&self) -> usize {
        self.length
    }

    /// Phases that can be recognised, at most [`MAX_PHASES`].
    pub fn known_phases(&self) -> usize {
        self.known.len()
    }

    /// Adds a burst; bursts come in the order of their times. Most complete nothing.
    pub fn push(&mut self, signature: Signature) -> Vec<Event> {
        self.pending.push(signature);
        let mut events = Vec::new();
        // Ends: a phase either takes the pending bursts, or ends and leaves them to the next one, which takes them.
        while self.pending.len() >= self.length {
            self.end_interval(&mut events);
        }
        events
    }

    /// Says that the next burst is of another phase than the last one, which began at `time_ns`: something else has proved
    /// that ([`crate::marks`]). What is pending is the end of the phase that lasts, or a phase of its own.
    pub fn cut(&mut self, time_ns: u64) -> Vec<Event> {
        let mut events = Vec::new();
        if self.current.is_none() && !self.pending.is_empty() {
            self.identify(&mut events);
        }
        let Some(current) = self.current.take() else {
            return events;
        };
        let known = &mut self.known[current.known];
        self.first += self.pending.len() as u64;
        let bursts = current.recent.into_iter().flat_map(Batch::into_bursts);
        bursts
            .chain(self.pending.drain(..))
            .for_each(|burst| known.bursts.add(burst));
        self.before = Some(known.clone());
        self.begins_ns = Some(time_ns);
        events.push(Event::Ended {
            phase: known.id,
            burst: self.first,
            time_ns,
        });
        events
    }

    /// Ends the stream: what is pending is the end of the last phase, or a phase of its own.
    pub fn finish(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while self.pending.len() >= MIN_INTERVAL {
            self.end_interval(&mut events);
        }
        if self.current.is_none() && !self.pending.is_empty() {
            self.identify(&mut events);
        }
        events
    }

    /// Ends an interval: the pending bursts belong to the phase, or end it.
    fn end_interval(&mut self, events: &mut Vec<Event>) {
        let Some(current) = &mut self.current else {
            return self.identify(events);
        };
        let number = self.pending.len() as u64;
        current.recent.push_back(Batch::new(std::mem::take(&mut self.pending)));
        current.intervals += 1;
        let sample = &self.known[current.known].bursts;
        let Some(changed) = change_in(sample, current) else {
            self.first += number;
            if current.recent.len() > MAX_WINDOW {
                let oldest = current.recent.pop_front().unwrap_or_default();
                let known = &mut self.known[current.known].bursts;
                oldest.into_bursts().for_each(|burst| known.add(burst));
            }
            // The first interval is the one that predicts.
            if !current.is_stable && current.intervals > STABLE_AFTER {
                self.settle(events);
            }
            return;
        };
        self.leave(changed, number, events);
    }

    /// The current phase has predicted enough intervals: it is stable, or a known phase whose first interval held
    /// something else.
    fn settle(&mut self, events: &mut Vec<Event>) {
        if let Some(apart) = self.known_after_mixture() {
            self.leave(apart, 0, events);
            self.identify(events);
        }
        let Some(current) = &mut self.current else { return };
        current.is_stable = true;
        current.intervals = current.intervals.max(STABLE_AFTER + 1);
        self.unstable = 0;
        let phase = self.known[current.known].id;
        events.push(Event::Stable { phase });
    }

    /// The number of bursts at the end of a new phase that are of a known one, if its further intervals are.
    fn known_after_mixture(&self) -> Option<usize> {
        let current = self.current.as_ref().filter(|current| current.is_new)?;
        let later = Sample::new(current.recent.range(1..));
        let closest = (0..self.known.len())
            .filter(|position| *position != current.known)
            .filter_map(|position| {
                let comparison = Comparison::new(&Sample::new([self.known[position].bursts.kept()]), &later);
                let is_close = comparison.difference() < MAX_MIXTURE_DIFFERENCE && !comparison.is_significant();
                is_close.then(|| (comparison.difference(), position))
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))?;
        let (known, first) = (
            Sample::new([self.known[closest.1].bursts.kept()]),
            current.recent.front()?,
        );
        let mixture = Sample::new([first]);
        Some(mixture.len() - last_apart(&known, &mixture) + later.len())
    }

    /// Ends the current phase `apart` bursts before the last one, of which the last `number` are not counted yet.
    fn leave(&mut self, apart: usize, number: u64, events: &mut Vec<Event>) {
        let Some(current) = self.current.take() else { return };
        let end = self.first + number;
        // A phase that was recognised by mistake may differ in all of its bursts.
        let apart = apart.min((end - current.first) as usize - 1);
        let mut bursts: Vec<Signature> = current.recent.into_iter().flat_map(Batch::into_bursts).collect();
        self.pending = bursts.split_off(bursts.len() - apart);
        self.first = end - apart as u64;
        let known = &mut self.known[current.known];
        bursts.into_iter().for_each(|burst| known.bursts.add(burst));
        self.before = Some(known.clone());
        events.push(Event::Ended {
            phase: known.id,
            burst: self.first,
            time_ns: self.pending.first().map_or(0, |burst| burst.time_ns),
        });
        if current.is_stable {
            return;
        }
        self.unstable += 1;
        if self.interval == Interval::Adaptive && self.unstable >= UNSTABLE_LIMIT {
            self.length = (self.length * 2).min(MAX_ADAPTIVE_INTERVAL);
            self.unstable = 0;
        }
    }

    /// Takes the pending bursts for a phase: one that was met before, or a new one.
    fn identify(&mut self, events: &mut Vec<Event>) {
        let (number, batch) = (self.pending.len() as u64, Batch::new(std::mem::take(&mut self.pending)));
        let first_ns = batch.bursts().next().map_or(0, |burst| burst.time_ns);
        let time_ns = self.begins_ns.take().unwrap_or(first_ns);
        let later = Sample::new([&batch]);
        let mut closest: Option<(f64, usize)> = None;
        for (position, known) in self.known.iter().enumerate() {
            let comparison = Comparison::new(&Sample::new([known.bursts.kept()]), &later);
            let difference = comparison.difference();
            // The phase that has just ended differs, proved by more bursts than are compared here.
            let has_ended = self.before.as_ref().is_some_and(|before| before.id == known.id);
            let limit = if has_ended {
                MIN_DIFFERENCE
            } else {
                MAX_RETURN_DIFFERENCE
            };
            let is_close = difference < limit && !comparison.is_significant();
            if is_close && closest.is_none_or(|(least, _)| difference < least) {
                closest = Some((difference, position));
            }
        }
        let change = self.before.take().map(|before| {
            let before = Sample::new([before.bursts.kept()]);
            let comparison = Comparison::new(&before, &later);
            Change {
                cause: cause(&before, &later, &comparison),
                before: comparison.before,
                after: comparison.after,
            }
        });
        let burst = self.first;
        self.first += number;
        let known = match closest {
            Some((_, position)) => position,
            None => {
                self.forget_one();
                self.phases += 1;
                self.known.push(Known {
                    id: PhaseId(self.phases),
                    bursts: Reference::default(),
                });
                self.known.len() - 1
            }
        };
        events.push(Event::Began {
            phase: self.known[known].id,
            burst,
            time_ns,
            is_known: closest.is_some(),
            change,
        });
        self.current = Some(Current {
            first: burst,
            known,
            is_new: closest.is_none(),
            recent: VecDeque::from([batch]),
            intervals: 1,
            is_stable: false,
        });
    }

    /// Makes room for a phase.
    fn forget_one(&mut self) {
        if self.known.len() < MAX_PHASES {
            return;
        }
        let fewest = self
            .known
            .iter()
            .enumerate()
            .min_by_key(|(_, known)| known.bursts.seen());
        if let Some(position) = fewest.map(|(position, _)| position) {
            self.known.remove(position);
        }
    }
}

/// Whether the last interval, or the last 2, 4 or 8 together, differ from the phase before them: then the number of
/// bursts at the end that are not of the phase, at least 1.
fn change_in(sample: &Reference, current: &Current) -> Option<usize> {
    let recent = &current.recent;
    let mut window = 1;
    while window <= MAX_WINDOW && window <= recent.len() {
        // Every interval would be compared with `window` others; each once is enough, and keeps the cost within twice
        // that of one window.
        if current.intervals.is_multiple_of(window as u64) {
            let older = recent.len() - window;
            let earlier = Sample::new([sample.kept()].into_iter().chain(recent.range(..older)));
            let later = Sample::new(recent.range(older..));
            let comparison = Comparison::new(&earlier, &later);
            if comparison.is_significant() {
                if comparison.is_behaviour {
                    return Some(later.len());
                }
                // The interval before may have been too little apart to be noticed.
                let from = older.saturating_sub(window);
                let last: Vec<&Signature> = recent.range(from..).flat_map(Batch::bursts).collect();
                return Some(last.len() - first_apart(&earlier, &later, &last));
            }
        }
        window *= 2;
    }
    None
}

/// The position in `bursts` at which the share of time in the traces that became more frequent changes: the best
/// division by least squares, where the mean before it is the earlier sample's.
fn first_apart(earlier: &Sample<'_>, later: &Sample<'_>, bursts: &[&Signature]) -> usize {
    bursts.len()
        - division(
            earlier,
            &Risen::of_samples(earlier, later),
            bursts.iter().rev().copied(),
        )
}

/// The number of bursts at the start of a mixture that are not of a known phase.
fn last_apart(known: &Sample<'_>, mixture: &Sample<'_>) -> usize {
    division(known, &Risen::of_samples(known, mixture), mixture.bursts())
}

/// How many of the first bursts have more of the traces that became more frequent than an earlier sample has: the best
/// division by least squares.
fn division<'s>(earlier: &Sample<'_>, risen: &Risen, bursts: impl Iterator<Item = &'s Signature>) -> usize {
    let before = earlier.bursts().map(|burst| risen.share_of(burst)).sum::<f64>() / earlier.len() as f64;
    let (mut best, mut at, mut sum) = (f64::NEG_INFINITY, 0, 0.0);
    for (number, burst) in (1_usize..).zip(bursts) {
        sum += risen.share_of(burst) - before;
        let gain = sum.max(0.0).powi(2) / number as f64;
        if gain >= best {
            (best, at) = (gain, number);
        }
    }
    at
}
