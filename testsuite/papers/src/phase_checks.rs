//! Checks of the detector of phases on resampled bursts of real programs, where the truth is known.
//!
//! Bursts drawn at random, with replacement, from one recording make a program that does not change: every change is a
//! false one. Bursts drawn from the stable phases of a recording in turn make a program whose changes are known. Some of
//! the changes are to phases that are too short for an interval: code is first executed where they begin, and at as many
//! other places, too.

use anyhow::{Result, bail};
use pleach_collector::stream::Generator;
use pleach_collector::vector::VectorSet;
use pleach_harness::parallel;
use pleach_harness::table::{Cell, Section, Table};
use pleach_phases::timeline::detect;
use pleach_phases::{Detector, Event, Interval, PhaseId, Signature, Timeline};
use std::collections::BTreeMap;

/// Options of the checks.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Intervals of each program that does not change.
    pub intervals: u64,
    /// Bursts of an interval.
    pub length: usize,
    /// Changes of each program that changes.
    pub changes: u64,
    /// Of the random numbers.
    pub seed: u64,
}

/// What the detector makes of one recording's bursts.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The recording.
    pub name: String,
    /// Its bursts.
    pub bursts: usize,
    /// Intervals without a change.
    pub intervals: u64,
    /// Changes that were found in them.
    pub false_changes: u64,
    /// Phases of the recording that have enough bursts to be drawn from.
    pub phases: usize,
    /// Changes that were made.
    pub changes: u64,
    /// Changes that were not found within two intervals.
    pub missed: u64,
    /// Phases that began again and were taken for new ones, or for others.
    pub not_recognised: u64,
    /// Changes that were found but not made.
    pub additional: u64,
    /// Mean distance of the found changes from the true ones, in bursts.
    pub distance: f64,
    /// Phases that were made too short for an interval.
    pub short: u64,
    /// Those of them whose start and end were found, without and with the times of first executions.
    pub short_found: [u64; 2],
    /// Those after which the phase around them was recognised, without and with the same times.
    pub short_returned: [u64; 2],
    /// First executions where nothing changes.
    pub marks: u64,
    /// Changes that were found there.
    pub false_marks: u64,
}

/// Checks each recording, several at a time.
///
/// # Errors
/// A recording has no bursts, or no times.
pub fn check(recordings: &[(String, VectorSet)], options: &CheckOptions) -> Result<Vec<Checked>> {
    parallel::map(recordings, parallel::default_jobs(), |(name, vectors)| {
        let Some(first) = vectors.bursts.first() else {
            bail!("{name}: no burst was recorded: record longer");
        };
        let pool: Vec<Signature> = vectors.bursts.iter().map(Signature::from_burst).collect();
        let mut generator = Generator::new(options.seed ^ first.time_ns);
        let false_changes = stationary(&pool, options, &mut generator);
        let mut checked = Checked {
            name: name.clone(),
            bursts: pool.len(),
            intervals: options.intervals,
            false_changes,
            phases: 0,
            changes: 0,
            missed: 0,
            not_recognised: 0,
            additional: 0,
            distance: 0.0,
            short: 0,
            short_found: [0; 2],
            short_returned: [0; 2],
            marks: 0,
            false_marks: 0,
        };
        unchanging_marks(&pool, options, &mut generator, &mut checked);
        let timeline = Timeline::new(vectors, Interval::Fixed(options.length))?;
        let mut pools = BTreeMap::<PhaseId, Vec<&Signature>>::new();
        for (phase, signature) in timeline.phase_of.iter().zip(&pool) {
            pools.entry(*phase).or_default().push(signature);
        }
        pools.retain(|_, pool| pool.len() >= 2 * options.length);
        let pools: Vec<_> = pools.into_values().collect();
        checked.phases = pools.len();
        if pools.len() > 1 {
            changing(&pools, options, &mut generator, &mut checked);
            short_phases(&pools, options, &mut generator, &mut checked);
        }
        Ok(checked)
    })
}

/// Changes that are found where there is none.
fn stationary(pool: &[Signature], options: &CheckOptions, generator: &mut Generator) -> u64 {
    let mut detector = Detector::new(Interval::Fixed(options.length));
    let mut ended = 0;
    for _ in 0..options.intervals * options.length as u64 {
        let drawn = &pool[generator.below(pool.len() as u64) as usize];
        let events = detector.push(drawn.clone());
        ended += events
            .iter()
            .filter(|event| matches!(event, Event::Ended { .. }))
            .count() as u64;
    }
    ended
}

/// Draws from one pool after the other, for 4 to 12 intervals each; changes are anywhere in an interval.
fn changing(pools: &[Vec<&Signature>], options: &CheckOptions, generator: &mut Generator, checked: &mut Checked) {
    let (mut detector, length) = (Detector::new(Interval::Fixed(options.length)), options.length as u64);
    // What was made: the first burst and the pool; what was found: the same, and when each end was known.
    let (mut made, mut ends, mut begun) = (Vec::new(), Vec::new(), Vec::new());
    let (mut number, mut pool) = (0, 0);
    for _ in 0..=options.changes {
        made.push((number, pool));
        for _ in 0..4 * length + generator.below(8 * length) {
            let drawn = pools[pool][generator.below(pools[pool].len() as u64) as usize];
            number += 1;
            for event in detector.push(drawn.clone()) {
                match event {
                    Event::Began { phase, burst, .. } => begun.push((burst, phase)),
                    Event::Ended { burst, .. } => ends.push((burst, number)),
                    Event::Stable { .. } => {}
                }
            }
        }
        // Another pool.
        pool = (pool + 1 + generator.below(pools.len() as u64 - 1) as usize) % pools.len();
    }
    let mut names = BTreeMap::new();
    let mut used = vec![false; ends.len()];
    for &(truth, pool) in &made {
        if truth > 0 {
            checked.changes += 1;
            let near =
                |(end, known): &(u64, u64)| end + length >= truth && *known <= truth + 2 * length && *known > truth;
            match ends.iter().position(near) {
                Some(at) => {
                    used[at] = true;
                    checked.distance += ends[at].0.abs_diff(truth) as f64;
                }
                None => checked.missed += 1,
            }
        }
        // The phase that lasts two intervals after the change.
        let phase = begun
            .iter()
            .rfind(|(burst, _)| *burst <= truth + 2 * length)
            .map(|(_, phase)| *phase);
        let first = *names.entry(pool).or_insert(phase);
        checked.not_recognised += u64::from(first != phase);
    }
    checked.additional = used.iter().filter(|used| !**used).count() as u64;
    checked.distance /= (checked.changes - checked.missed).max(1) as f64;
}

/// Bursts of a made program, their times a microsecond apart.
#[derive(Default)]
struct Made {
    bursts: Vec<Signature>,
    first_hits: Vec<u64>,
}

impl Made {
    fn time(&self) -> u64 {
        1_000 * (self.bursts.len() as u64 + 1)
    }

    fn draw(&mut self, pool: &[&Signature], generator: &mut Generator) {
        let drawn = pool[generator.below(pool.len() as u64) as usize].clone();
        let time_ns = self.time();
        self.bursts.push(Signature { time_ns, ..drawn });
    }

    /// Code is executed first before the next burst.
    fn mark(&mut self) {
        self.first_hits.push(self.time() - 500);
    }

    /// Positions of the first bursts of all phases that are found, and which phases these are.
    fn begun(&self, first_hits: &[u64], length: usize) -> Vec<(u64, PhaseId)> {
        let (events, _) = detect(self.bursts.clone(), first_hits, Interval::Fixed(length));
        let begun = events.iter().filter_map(|event| match event {
            Event::Began { burst, phase, .. } => Some((*burst, *phase)),
            _ => None,
        });
        begun.collect()
    }
}

/// First executions in a program that does not change: a tenth as many as intervals.
fn unchanging_marks(pool: &[Signature], options: &CheckOptions, generator: &mut Generator, checked: &mut Checked) {
    let pool: Vec<&Signature> = pool.iter().collect();
    while checked.marks < options.intervals / 10 {
        let mut made = Made::default();
        for _ in 0..MARKED_AT_ONCE {
            for _ in 0..1 + generator.below(2 * options.length as u64) {
                made.draw(&pool, generator);
            }
            made.mark();
        }
        made.draw(&pool, generator);
        checked.marks += MARKED_AT_ONCE;
        checked.false_marks += made.begun(&made.first_hits, options.length).len() as u64 - 1;
    }
}

/// First executions of a program that does not change: fewer than the detector looks at.
const MARKED_AT_ONCE: u64 = 100;

/// A phase of a quarter to a half of an interval between two long spans of another one.
fn short_phases(pools: &[Vec<&Signature>], options: &CheckOptions, generator: &mut Generator, checked: &mut Checked) {
    let length = options.length as u64;
    for number in 0..options.changes {
        let long = (number % pools.len() as u64) as usize;
        let short = (long + 1 + generator.below(pools.len() as u64 - 1) as usize) % pools.len();
        let mut made = Made::default();
        // What is executed first without a change is so anywhere.
        let elsewhere = 1 + generator.below(3 * length);
        for at in 0..4 * length + generator.below(2 * length) {
            if at == elsewhere {
                made.mark();
            }
            made.draw(&pools[long], generator);
        }
        let start = made.bursts.len() as u64;
        made.mark();
        for _ in 0..length / 4 + generator.below(length / 4) {
            made.draw(&pools[short], generator);
        }
        let end = made.bursts.len() as u64;
        for _ in 0..4 * length {
            made.draw(&pools[long], generator);
        }
        checked.short += 1;
        let near = (end - start) / 5;
        for (is_marked, first_hits) in [&[][..], &made.first_hits].into_iter().enumerate() {
            let begun = made.begun(first_hits, options.length);
            let has = |truth: u64| begun.iter().any(|(burst, _)| burst.abs_diff(truth) <= near);
            checked.short_found[is_marked] += u64::from(has(start) && has(end));
            // A phase that was not noticed at all is no change of phase.
            let [first, last] = [begun.first(), begun.last()].map(|begun| begun.map(|(_, phase)| *phase));
            checked.short_returned[is_marked] += u64::from(first == last);
        }
    }
}

/// The table.
pub fn sections(checked: &[Checked]) -> Vec<Section> {
    let mut table = Table::new([
        ("recording", "recording"),
        ("bursts", "bursts"),
        ("intervals", "intervals without change"),
        ("false_changes", "false changes"),
        ("phases", "phases"),
        ("changes", "changes"),
        ("missed", "not within 2 intervals"),
        ("not_recognised", "not recognised"),
        ("additional", "additional"),
        ("distance", "distance, bursts"),
    ]);
    for of in checked {
        table.push([
            of.name.as_str().into(),
            (of.bursts as u64).into(),
            of.intervals.into(),
            of.false_changes.into(),
            (of.phases as u64).into(),
            of.changes.into(),
            of.missed.into(),
            of.not_recognised.into(),
            of.additional.into(),
            Cell::Number(of.distance, 1),
        ]);
    }
    let mut marks = Table::new([
        ("recording", "recording"),
        ("marks", "first executions without change"),
        ("false_marks", "false changes"),
        ("short", "short phases"),
        ("found", "found"),
        ("found_unmarked", "found without first executions"),
        ("returned", "the phase around them again"),
        ("returned_unmarked", "again without first executions"),
    ]);
    for of in checked {
        let [unmarked, marked] = of.short_found;
        let [returned_unmarked, returned] = of.short_returned;
        marks.push([
            of.name.as_str().into(),
            of.marks.into(),
            of.false_marks.into(),
            of.short.into(),
            marked.into(),
            unmarked.into(),
            returned.into(),
            returned_unmarked.into(),
        ]);
    }
    vec![
        Section::new("phases", "The detector of phases on resampled bursts", table),
        Section::new("marks", "Phases of a quarter to a half of an interval", marks),
    ]
}
