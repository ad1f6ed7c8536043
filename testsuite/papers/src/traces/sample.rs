//! Bursts → samples: one trace of four taken branches for each interrupt, as the paper's trace buffer gives it.
//!
//! A burst goes on after its interrupt. Its further branches are what a sampling rate some hundred times as high would
//! have shown (section 5.2), at no further interrupt.

use pleach_collector::vector::{Branch, CodeAddress, VectorSet};
use pleach_phases::signature::TRACE_LENGTH;
use pleach_phases::{Detector, Event, Interval, PhaseId, Signature};
use rustc_hash::FxHashMap;

/// Number of a trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TraceId(pub u32);

/// Number of the address of a trace's first branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StartId(pub u32);

/// A sample.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The first branch after the interrupt.
    pub start: StartId,
    /// It and the three after it.
    pub trace: TraceId,
    /// The traces that begin at each branch of the burst, with their starts and numbers.
    pub whole: Box<[(StartId, TraceId, u32)]>,
}

/// Numbers of hottest paths whose share is told (figure 2).
pub const HOTTEST: [usize; 4] = [1, 2, 5, 10];

/// How samples are spread over paths (tables 1 and 2, figure 2).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Distribution {
    /// Samples.
    pub samples: u64,
    /// Different starts.
    pub starts: u64,
    /// Different traces.
    pub traces: u64,
    /// Number of the most frequent traces that have half of the samples.
    pub half: u64,
    /// Number of those that have nine tenths.
    pub most: u64,
    /// The share of the hottest traces in the samples, for each number in [`HOTTEST`].
    pub hottest: [f64; HOTTEST.len()],
}

/// The samples of a recording, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Bursts of at least four branches.
    pub samples: Vec<Sample>,
    /// The branches of each trace.
    pub traces: Vec<[Branch; TRACE_LENGTH]>,
    ids: FxHashMap<[Branch; TRACE_LENGTH], TraceId>,
    starts: FxHashMap<CodeAddress, StartId>,
    /// What the detector of phases sees of the samples' bursts.
    signatures: Vec<Signature>,
    fast: FxHashMap<TraceId, u64>,
}

impl Recording {
    /// Takes the first trace of each burst that has one, and counts the others.
    pub fn new(vectors: &VectorSet) -> Self {
        let mut recording = Self::default();
        let mut bursts: Vec<_> = vectors.bursts.iter().collect();
        bursts.sort_by_key(|burst| burst.time_ns);
        for burst in bursts {
            let whole: Vec<_> = burst
                .branches
                .windows(TRACE_LENGTH)
                .filter_map(|branches| branches.try_into().ok())
                .map(|branches| recording.trace(branches))
                .collect();
            let Some(&(start, trace)) = whole.first() else { continue };
            for (_, trace) in whole.iter().step_by(TRACE_LENGTH) {
                *recording.fast.entry(*trace).or_default() += 1;
            }
            let mut sorted = whole;
            sorted.sort_unstable();
            let same = sorted.chunk_by(|a, b| a == b);
            let counted = same.map(|same| (same[0].0, same[0].1, same.len() as u32));
            recording.samples.push(Sample {
                start,
                trace,
                whole: counted.collect(),
            });
            recording.signatures.push(Signature::from_burst(burst));
        }
        recording
    }

    /// The numbers of a trace and of its start.
    fn trace(&mut self, branches: [Branch; TRACE_LENGTH]) -> (StartId, TraceId) {
        let next = StartId(self.starts.len() as u32);
        let start = *self.starts.entry(branches[0].from).or_insert(next);
        let next = TraceId(self.ids.len() as u32);
        let trace = *self.ids.entry(branches).or_insert(next);
        if trace == next {
            self.traces.push(branches);
        }
        (start, trace)
    }

    /// The number of a trace, if it was sampled.
    pub fn id(&self, branches: &[Branch; TRACE_LENGTH]) -> Option<TraceId> {
        self.ids.get(branches).copied()
    }

    /// The number of a start, if it was sampled.
    pub fn start(&self, address: CodeAddress) -> Option<StartId> {
        self.starts.get(&address).copied()
    }

    /// After each sample, the phase as far as it was known then.
    pub fn phases(&self, interval: Interval) -> Vec<Option<PhaseId>> {
        let (mut detector, mut phase) = (Detector::new(interval), None);
        let signatures = self.signatures.iter().cloned();
        let phases = signatures.map(|signature| {
            for event in detector.push(signature) {
                match event {
                    Event::Began { phase: begun, .. } => phase = Some(begun),
                    Event::Ended { .. } => phase = None,
                    Event::Stable { .. } => {}
                }
            }
            phase
        });
        phases.collect()
    }

    /// One trace for each burst.
    pub fn slow(&self) -> Distribution {
        let mut counts = FxHashMap::<TraceId, u64>::default();
        for sample in &self.samples {
            *counts.entry(sample.trace).or_default() += 1;
        }
        self.distribution(&counts)
    }

    /// All traces of all bursts, one after the other.
    pub fn fast(&self) -> Distribution {
        self.distribution(&self.fast)
    }

    fn distribution(&self, counts: &FxHashMap<TraceId, u64>) -> Distribution {
        let samples = counts.values().sum::<u64>();
        let mut starts: Vec<_> = counts
            .keys()
            .map(|trace| self.traces[trace.0 as usize][0].from)
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let mut sorted: Vec<u64> = counts.values().copied().collect();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let number = |share: f64| {
            let mut left = share * samples as f64;
            let needed = sorted.iter().take_while(|count| {
                let is_needed = left > 0.0;
                left -= **count as f64;
                is_needed
            });
            needed.count() as u64
        };
        Distribution {
            samples,
            starts: starts.len() as u64,
            traces: counts.len() as u64,
            half: number(0.5),
            most: number(0.9),
            hottest: HOTTEST.map(|paths| sorted.iter().take(paths).sum::<u64>() as f64 / samples as f64),
        }
    }
}
