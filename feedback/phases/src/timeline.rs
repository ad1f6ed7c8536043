//! The phases of a whole recording: spans of time, and the phase of each burst.

use crate::detector::{Change, Detector, Event, Interval, PhaseId};
use crate::marks;
use crate::signature::Signature;
use pleach_collector::vector::VectorSet;
use std::collections::BTreeMap;

/// Why a recording shows no phases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TimelineError {
    /// It has no bursts.
    NoBursts,
    /// Its bursts were compressed to a sample of windows, which have no times.
    Compressed,
    /// Its bursts have no times.
    NoTimes,
}

impl std::error::Error for TimelineError {}

impl std::fmt::Display for TimelineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoBursts => "no burst was recorded: record longer, or with a larger --overhead",
            Self::Compressed => {
                "the bursts were compressed to fit --max-size, and their times are lost: record with `pleach record \
                 --phases`, or without --max-size"
            }
            Self::NoTimes => {
                "the samples have no times, so that they have no order: import a recording of `perf record` that has \
                 them (its default, or --timestamp)"
            }
        })
    }
}

/// A span of time in one phase.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    /// The phase.
    pub phase: PhaseId,
    /// When its first burst began, or a change before it was, in nanoseconds of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// When the next span began; of the last span, when its last burst began.
    pub end_ns: u64,
    /// When its last burst began.
    pub last_burst_ns: u64,
    /// CPU time of the program, in seconds: estimated from the number of bursts, which ticks spread over CPU time.
    pub cpu_seconds: f64,
    /// Number of bursts.
    pub bursts: u64,
    /// Whether the phase was met before.
    pub is_known: bool,
    /// Whether the phase predicted enough intervals in this span.
    pub is_stable: bool,
    /// Why the phase began; `None` for the first one.
    pub change: Option<Change>,
}

/// A phase, over all its spans.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PhaseTime {
    /// The phase.
    pub phase: PhaseId,
    /// CPU time of the program, in seconds: estimated from the number of bursts.
    pub cpu_seconds: f64,
    /// Number of spans.
    pub spans: u64,
    /// Number of bursts.
    pub bursts: u64,
    /// Whether it was stable in some span.
    pub is_stable: bool,
}

/// The phases of a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// In order of time. Each begins where the one before ends.
    pub spans: Vec<Span>,
    /// In the order in which they were met first.
    pub phases: Vec<PhaseTime>,
    /// The phase of each burst, by its position in [`VectorSet::bursts`].
    pub phase_of: Vec<PhaseId>,
    /// Bursts of the last interval.
    pub interval: usize,
}

impl Timeline {
    /// Detects the phases of a recording. Bursts of all threads and processes together are put in order of time. Times at
    /// which breakpoints were first hit reveal phases that are too short for intervals ([`marks`]).
    ///
    /// # Errors
    /// The recording has no bursts, or they have no times.
    pub fn new(vectors: &VectorSet, interval: Interval) -> Result<Self, TimelineError> {
        if vectors.compressed.is_some() {
            return Err(TimelineError::Compressed);
        }
        let bursts = &vectors.bursts;
        if bursts.is_empty() {
            return Err(TimelineError::NoBursts);
        }
        if bursts.len() > 1 && bursts.iter().all(|burst| burst.time_ns == bursts[0].time_ns) {
            return Err(TimelineError::NoTimes);
        }
        let mut order: Vec<usize> = (0..bursts.len()).collect();
        order.sort_by_key(|&position| bursts[position].time_ns);
        let signatures = order.iter().map(|&at| Signature::from_burst(&bursts[at])).collect();
        let segments = vectors.coverage.iter().flat_map(|module| &module.segments);
        let mut first_hits: Vec<u64> = segments.filter_map(|segment| segment.first_hit_ns).collect();
        first_hits.sort_unstable();
        let (events, length) = detect(signatures, &first_hits, interval);
        Ok(Self::from_events(vectors, &order, &events, length))
    }

    fn from_events(vectors: &VectorSet, order: &[usize], events: &[Event], interval: usize) -> Self {
        let (mut spans, mut firsts) = (Vec::<Span>::new(), Vec::new());
        for event in events {
            match *event {
                Event::Began {
                    phase,
                    burst,
                    time_ns,
                    is_known,
                    change,
                } => {
                    // What seemed to be another phase is the same.
                    if spans.last().is_some_and(|span| span.phase == phase) {
                        continue;
                    }
                    firsts.push(burst as usize);
                    spans.push(Span {
                        phase,
                        start_ns: time_ns,
                        end_ns: time_ns,
                        last_burst_ns: time_ns,
                        cpu_seconds: 0.0,
                        bursts: 0,
                        is_known,
                        is_stable: false,
                        change,
                    });
                }
                Event::Stable { .. } => {
                    if let Some(span) = spans.last_mut() {
                        span.is_stable = true;
                    }
                }
                Event::Ended { .. } => {}
            }
        }
        let burst_seconds = seconds_of_bursts(vectors);
        let mut phase_of = vec![PhaseId(0); order.len()];
        for (at, span) in spans.iter_mut().enumerate() {
            let end = firsts.get(at + 1).copied().unwrap_or(order.len());
            for &position in &order[firsts[at]..end] {
                let burst = &vectors.bursts[position];
                phase_of[position] = span.phase;
                span.cpu_seconds += burst.count as f64 * burst_seconds[burst.process as usize];
                span.bursts += burst.count;
            }
            let last = order[..end].last();
            span.last_burst_ns = last.map_or(span.start_ns, |&position| vectors.bursts[position].time_ns);
        }
        for at in 0..spans.len() {
            spans[at].end_ns = spans.get(at + 1).map_or(spans[at].last_burst_ns, |next| next.start_ns);
        }
        let mut phases = BTreeMap::<PhaseId, PhaseTime>::new();
        for span in &spans {
            let phase = phases.entry(span.phase).or_insert(PhaseTime {
                phase: span.phase,
                cpu_seconds: 0.0,
                spans: 0,
                bursts: 0,
                is_stable: false,
            });
            phase.cpu_seconds += span.cpu_seconds;
            phase.spans += 1;
            phase.bursts += span.bursts;
            phase.is_stable |= span.is_stable;
        }
        Self {
            spans,
            phases: phases.into_values().collect(),
            phase_of,
            interval,
        }
    }

    /// CPU time of all phases, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.phases.iter().map(|phase| phase.cpu_seconds).sum()
    }

    /// When the first burst began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn start_ns(&self) -> u64 {
        self.spans.first().map_or(0, |span| span.start_ns)
    }

    /// Factors of bursts by which every phase has the weight that `weight` gives it, whatever its number of bursts. They
    /// are 1 on average, and all 1 if no phase has a weight.
    pub fn burst_factors(&self, weight: impl Fn(&PhaseTime) -> f64) -> Vec<f64> {
        let weights = self.phases.iter().map(|phase| (phase.phase, weight(phase)));
        let weights: BTreeMap<PhaseId, f64> = weights.collect();
        let (all, bursts) = (
            weights.values().sum::<f64>(),
            self.phases.iter().map(|phase| phase.bursts),
        );
        let bursts = bursts.sum::<u64>() as f64;
        if all <= 0.0 {
            return vec![1.0; self.phase_of.len()];
        }
        let factors = self.phases.iter().map(|phase| {
            let share = weights[&phase.phase] / all;
            (phase.phase, share * bursts / phase.bursts.max(1) as f64)
        });
        let factors: BTreeMap<PhaseId, f64> = factors.collect();
        self.phase_of.iter().map(|phase| factors[phase]).collect()
    }
}

/// The events of a whole recording, and the bursts of its last interval. `bursts`, `first_hits`: in order of time; the
/// latter reveal phases that are too short for intervals.
pub fn detect(bursts: Vec<Signature>, first_hits: &[u64], interval: Interval) -> (Vec<Event>, usize) {
    let times: Vec<u64> = bursts.iter().map(|burst| burst.time_ns).collect();
    let cuts = marks::changes(&bursts.iter().collect::<Vec<_>>(), &marks::marks(&times, first_hits));
    let mut cuts = cuts.into_iter().peekable();
    let mut detector = Detector::new(interval);
    let mut events = Vec::new();
    for (position, burst) in bursts.into_iter().enumerate() {
        if let Some(cut) = cuts.next_if(|cut| cut.burst == position) {
            events.extend(detector.cut(cut.time_ns));
        }
        events.extend(detector.push(burst));
    }
    let length = detector.interval();
    events.extend(detector.finish());
    (events, length)
}

/// CPU seconds that a burst stands for, by process.
fn seconds_of_bursts(vectors: &VectorSet) -> Vec<f64> {
    let mut bursts = vec![0_u64; vectors.processes.len()];
    for burst in &vectors.bursts {
        bursts[burst.process as usize] += burst.count;
    }
    // Sampled processes speak for those that had no burst.
    let all: f64 = vectors
        .processes
        .iter()
        .map(|process| process.program_cpu_seconds)
        .sum();
    let with_bursts = vectors.processes.iter().zip(&bursts).filter(|(_, bursts)| **bursts > 0);
    let sampled: f64 = with_bursts.map(|(process, _)| process.program_cpu_seconds).sum();
    let total = bursts.iter().sum::<u64>() as f64;
    let seconds = vectors.processes.iter().zip(&bursts);
    seconds
        .map(|(process, &bursts)| match sampled > 0.0 {
            true => process.program_cpu_seconds / bursts.max(1) as f64 * (all / sampled),
            false => all / total.max(1.0),
        })
        .collect()
}
