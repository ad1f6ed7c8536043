//! Our model: traces of whole bursts for each phase, selected again only for a gain that is certain.
//!
//! Three things are different from Full History. All traces of a burst count, not only the first. They count for the
//! phase that the detector sees ([`pleach_phases`]), so that a phase that returns gets its traces back. And another set is
//! selected only if a phase begins, or if the set that the counts suggest has covered more: on samples that were not
//! yet counted, by a difference whose lower bound is above [`MIN_GAIN`].

use super::Samples;
use super::models::{Counts, Model, Selected};
use super::sample::{Recording, Sample};
use pleach_phases::PhaseId;
use rustc_hash::FxHashMap;

/// Least share of the samples that another set must cover in addition.
const MIN_GAIN: f64 = 0.002;
/// Standard errors of the lower bound: exceeded by chance once in 40 times.
const STANDARD_ERRORS: f64 = 1.96;

/// Our model.
#[derive(Clone, Debug, Default)]
pub struct Confident {
    selected: Selected,
    phases: FxHashMap<PhaseId, OfPhase>,
    /// The phase that the selected traces are of.
    phase: Option<PhaseId>,
    /// Samples of no known phase yet.
    waiting: Vec<Sample>,
}

/// What is known of a phase.
#[derive(Clone, Debug, Default)]
struct OfPhase {
    counts: Counts,
    /// What the counts suggest.
    suggested: Selected,
    /// Of samples since the last selection: how many more the suggested set covers, summed with its squares.
    gain: Gain,
}

#[derive(Clone, Copy, Debug, Default)]
struct Gain {
    samples: f64,
    sum: f64,
    squares: f64,
}

impl Gain {
    fn add(&mut self, difference: f64) {
        self.samples += 1.0;
        self.sum += difference;
        self.squares += difference * difference;
    }

    /// Whether the mean is certainly above [`MIN_GAIN`].
    fn is_certain(self) -> bool {
        if self.samples < 2.0 {
            return false;
        }
        let mean = self.sum / self.samples;
        let variance = (self.squares / self.samples - mean * mean).max(0.0);
        mean - STANDARD_ERRORS * (variance / self.samples).sqrt() > MIN_GAIN
    }
}

fn covers(selected: &Selected, sample: &Sample) -> f64 {
    f64::from(u8::from(selected.get(&sample.start) == Some(&sample.trace)))
}

impl Model for Confident {
    fn selected(&self) -> &Selected {
        &self.selected
    }

    fn end_interval(&mut self, _: &Recording, interval: Samples<'_>) -> bool {
        self.waiting.extend_from_slice(interval.samples);
        let Some(phase) = interval.phase else { return false };
        let of = self.phases.entry(phase).or_default();
        for sample in &self.waiting {
            of.gain
                .add(covers(&of.suggested, sample) - covers(&self.selected, sample));
        }
        for sample in self.waiting.drain(..) {
            let traces = sample.whole.iter();
            traces.for_each(|&(start, trace, count)| of.counts.add(start, trace, f64::from(count)));
        }
        of.suggested.extend(of.counts.most_frequent());
        let begins = self.phase != Some(phase);
        if !begins && !of.gain.is_certain() {
            return false;
        }
        self.phase = Some(phase);
        of.gain = Gain::default();
        // Traces of other phases stay where this one has none.
        let mut changed = false;
        for (start, trace) in &of.suggested {
            changed |= self.selected.insert(*start, *trace) != Some(*trace);
        }
        changed
    }
}
