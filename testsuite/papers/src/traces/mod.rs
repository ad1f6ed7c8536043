//! The four models of trace selection of Chen et al. (2003), section 4.4, on recorded samples, and ours beside them.
//!
//! In the order of the data: [`sample`]: bursts → samples, one trace for each; [`models`]: the paper's four;
//! [`confident`]: ours; [`stitch`]: overlapping traces joined; [`report`]: the paper's tables.
//!
//! A model has one trace for each start, because a branch can only be patched to lead to one. At the end of each interval
//! it may select other ones, and the next interval shows what share of its samples they cover. The first interval is
//! covered by nothing.

pub mod confident;
pub mod models;
pub mod report;
pub mod sample;
pub mod stitch;

use confident::Confident;
use models::{Model, Paper};
use pleach_collector::vector::VectorSet;
use pleach_phases::{Interval, PhaseId};
use sample::{Recording, Sample};
use stitch::Stitched;

/// What a model covers of a recording, and how often it selects.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Share of the samples whose trace is the selected one of its start, 0…1.
    pub covered: f64,
    /// Share of the samples that lie in a selected trace or in several that are joined ([`stitch`]), 0…1.
    pub stitched: f64,
    /// Number of intervals after which another set of traces was selected: calls of the optimiser.
    pub selections: u64,
    /// Traces at the end.
    pub traces: u64,
}

/// The samples of an interval.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// In order of time.
    pub samples: &'a [Sample],
    /// The phase at the end of the interval, as far as it is known then.
    pub phase: Option<PhaseId>,
}

/// Lets a model select after each interval of `length` samples, and measures what it covers of the next.
pub fn run(recording: &Recording, length: usize, model: &mut dyn Model) -> Outcome {
    let (mut covered, mut stitched, mut selections) = (0_u64, 0_u64, 0);
    let mut joined = Stitched::default();
    let phases = recording.phases(Interval::Fixed(length));
    for (number, samples) in recording.samples.chunks(length).enumerate() {
        for sample in samples {
            covered += u64::from(model.selected().get(&sample.start) == Some(&sample.trace));
            stitched += u64::from(joined.contains(sample.trace));
        }
        let end = number * length + samples.len();
        let phase = phases.get(end - 1).copied().flatten();
        if model.end_interval(recording, Samples { samples, phase }) {
            selections += 1;
            joined = Stitched::new(recording, model.selected());
        }
    }
    let all = recording.samples.len().max(1) as f64;
    Outcome {
        covered: covered as f64 / all,
        stitched: stitched as f64 / all,
        selections,
        traces: model.selected().len() as u64,
    }
}

/// All models with the names that the paper gives them; ours last.
pub fn models() -> Vec<(&'static str, Box<dyn Model>)> {
    vec![
        ("First Interval", Box::new(Paper::first_interval())),
        ("First Hot", Box::new(Paper::first_hot())),
        ("Dynamic Interval", Box::new(Paper::dynamic_interval())),
        ("Full History", Box::new(Paper::full_history())),
        (
            "Full History, whole bursts",
            Box::new(Paper::full_history().with_whole_bursts()),
        ),
        ("ours", Box::new(Confident::default())),
    ]
}

/// What one program's recording gives.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The program.
    pub program: String,
    /// Paths of one trace a burst.
    pub slow: sample::Distribution,
    /// Paths of all traces of all bursts.
    pub fast: sample::Distribution,
    /// By length of the interval, then by model.
    pub outcomes: Vec<(usize, Vec<(&'static str, Outcome)>)>,
}

/// Runs all models on a recording.
pub fn figures(program: &str, vectors: &VectorSet, intervals: &[usize]) -> Figures {
    let recording = Recording::new(vectors);
    let outcomes = intervals.iter().map(|&length| {
        let models = models().into_iter();
        let outcomes = models.map(|(name, mut model)| (name, run(&recording, length, model.as_mut())));
        (length, outcomes.collect())
    });
    Figures {
        program: program.to_owned(),
        slow: recording.slow(),
        fast: recording.fast(),
        outcomes: outcomes.collect(),
    }
}
