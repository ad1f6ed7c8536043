//! Checks of the detector of phases on resampled bursts of real programs, where the truth is known.
//!
//! Bursts drawn at random, with replacement, from one recording make a program that does not change: every change is a
//! false one. Bursts drawn from the stable phases of a recording in turn make a program whose changes are known.

use anyhow::{Result, bail};
use pleach_collector::stream::Generator;
use pleach_collector::vector::VectorSet;
use pleach_harness::parallel;
use pleach_harness::table::{Cell, Section, Table};
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
        };
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
    vec![Section::new(
        "phases",
        "The detector of phases on resampled bursts",
        table,
    )]
}
