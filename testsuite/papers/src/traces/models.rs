//! The paper's four models (section 4.4).

use super::Samples;
use super::sample::{Recording, StartId, TraceId};
use rustc_hash::FxHashMap;

/// The selected trace of each start.
pub type Selected = FxHashMap<StartId, TraceId>;

/// A model of trace selection.
pub trait Model {
    /// The traces that are selected now.
    fn selected(&self) -> &Selected;

    /// Sees an interval, and may select other traces. Returns whether it does.
    fn end_interval(&mut self, recording: &Recording, interval: Samples<'_>) -> bool;
}

/// What a model takes from an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// The first interval's traces, for ever.
    FirstInterval,
    /// New starts of every interval; a start's trace never changes.
    FirstHot,
    /// The most frequent trace in the last interval of each start that is in it.
    DynamicInterval,
    /// The most frequent trace of each start so far.
    FullHistory,
}

/// One of the paper's models.
#[derive(Clone, Debug)]
pub struct Paper {
    rule: Rule,
    whole_bursts: bool,
    selected: Selected,
    counts: Counts,
}

/// How often each trace of each start was seen.
#[derive(Clone, Debug, Default)]
pub struct Counts(FxHashMap<StartId, FxHashMap<TraceId, f64>>);

impl Counts {
    /// Adds to a trace.
    pub fn add(&mut self, start: StartId, trace: TraceId, count: f64) {
        *self.0.entry(start).or_default().entry(trace).or_default() += count;
    }

    /// The most frequent trace of each start. Of equally frequent ones, the first in order of numbers: the one that was
    /// sampled first.
    pub fn most_frequent(&self) -> impl Iterator<Item = (StartId, TraceId)> {
        let starts = self.0.iter();
        starts.filter_map(|(start, traces)| {
            let most = traces.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            most.map(|(trace, _)| (*start, *trace))
        })
    }
}

impl Paper {
    fn new(rule: Rule) -> Self {
        Self {
            rule,
            whole_bursts: false,
            selected: Selected::default(),
            counts: Counts::default(),
        }
    }

    /// First Interval: selects once.
    pub fn first_interval() -> Self {
        Self::new(Rule::FirstInterval)
    }

    /// First Hot: adds starts, and never changes one.
    pub fn first_hot() -> Self {
        Self::new(Rule::FirstHot)
    }

    /// Dynamic Interval: retargets starts after each interval.
    pub fn dynamic_interval() -> Self {
        Self::new(Rule::DynamicInterval)
    }

    /// Full History: retargets starts by all samples so far.
    pub fn full_history() -> Self {
        Self::new(Rule::FullHistory)
    }

    /// Counts all traces of each burst, not only the first: what the paper's faster sampling shows.
    pub fn with_whole_bursts(self) -> Self {
        Self {
            whole_bursts: true,
            ..self
        }
    }
}

impl Model for Paper {
    fn selected(&self) -> &Selected {
        &self.selected
    }

    fn end_interval(&mut self, _: &Recording, interval: Samples<'_>) -> bool {
        if self.rule == Rule::FirstInterval && !self.selected.is_empty() {
            return false;
        }
        if self.rule != Rule::FullHistory {
            self.counts = Counts::default();
        }
        for sample in interval.samples {
            match self.whole_bursts {
                false => self.counts.add(sample.start, sample.trace, 1.0),
                true => {
                    let traces = sample.whole.iter();
                    traces.for_each(|&(start, trace, count)| self.counts.add(start, trace, f64::from(count)));
                }
            }
        }
        let mut changed = false;
        for (start, trace) in self.counts.most_frequent() {
            if self.rule == Rule::FirstHot && self.selected.contains_key(&start) {
                continue;
            }
            changed |= self.selected.insert(start, trace) != Some(trace);
        }
        changed
    }
}
