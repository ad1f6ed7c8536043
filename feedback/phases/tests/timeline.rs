//! Timelines of whole recordings.

use pleach_collector::vector::{
    Branch, BranchFacts, Burst, CodeAddress, Compressed, EndReason, Engine, EventId, HardwareSample, ModuleId,
    Prediction, Process, VectorSet,
};
use pleach_phases::signature::MAX_TRACES;
use pleach_phases::{Interval, PhaseId, Signature, Timeline, TimelineError};
use proptest::prelude::*;

/// A burst in a loop of 20 blocks from `base` on.
fn burst(base: u64, turn: u64, time_ns: u64) -> Burst {
    let at = |offset: u64| CodeAddress {
        module: ModuleId(0),
        offset: base + offset % 20,
    };
    let branches = (turn..turn + 16).map(|place| Branch {
        from: at(place * 7),
        to: at(place * 7 + 7),
    });
    Burst {
        process: (turn % 2) as u32,
        thread: 1,
        time_ns,
        engine: Engine::RunAhead,
        start: Some(at(0)),
        branches: branches.collect(),
        values: Vec::new(),
        end: None,
        end_reason: EndReason::Budget,
        instructions: 0,
        count: 1,
        proved: true,
        system_call: None,
        hardware: None,
        timing: None,
    }
}

/// A recording of two processes, in phases of these loops and numbers of bursts.
fn recording(phases: &[(u64, u64)]) -> VectorSet {
    let turns = phases
        .iter()
        .flat_map(|&(base, bursts)| (0..bursts).map(move |turn| (base, turn)));
    let process = |seconds| Process {
        pid: 1,
        parent: None,
        command: "app".to_owned(),
        program_cpu_seconds: seconds,
        own_cpu_seconds: 0.0,
        lost: 0,
        declined: 0,
        undisturbed: true,
    };
    VectorSet {
        processes: vec![process(3.0), process(1.0)],
        bursts: turns
            .enumerate()
            .map(|(number, (base, turn))| burst(base, turn, 1000 + number as u64 * 10))
            .collect(),
        ..VectorSet::default()
    }
}

fn timeline(vectors: &VectorSet) -> Timeline {
    Timeline::new(vectors, Interval::Fixed(100)).expect("a timeline")
}

#[test]
fn spans_cover_the_recording() {
    let mut vectors = recording(&[(0, 600), (1000, 400), (0, 500)]);
    let found = timeline(&vectors);
    let spans: Vec<_> = found
        .spans
        .iter()
        .map(|s| (s.phase.0, s.start_ns, s.end_ns, s.bursts, s.is_known))
        .collect();
    let last = 1000 + 1499 * 10;
    assert_eq!(
        spans,
        [
            (1, 1000, 7000, 600, false),
            (2, 7000, 11000, 400, false),
            (1, 11000, last, 500, true)
        ]
    );
    assert!((found.cpu_seconds() - 4.0).abs() < 1e-9);
    // Bursts of the second process stand for a third of the time of the first one's.
    assert!((found.phases[1].cpu_seconds - 4.0 * 400.0 / 1500.0).abs() < 1e-9);
    assert_eq!(found.phases[0].spans, 2);
    // The order in which bursts are stored does not matter.
    vectors.bursts.reverse();
    let reversed = timeline(&vectors);
    assert_eq!(reversed.spans, found.spans);
    assert!(reversed.phase_of.iter().eq(found.phase_of.iter().rev()));
}

#[test]
fn recordings_without_times_have_none() {
    let error = |vectors: &VectorSet| Timeline::new(vectors, Interval::Adaptive).expect_err("no timeline");
    assert_eq!(error(&VectorSet::default()), TimelineError::NoBursts);
    let mut vectors = recording(&[(0, 10)]);
    vectors.bursts.iter_mut().for_each(|burst| burst.time_ns = 0);
    assert_eq!(error(&vectors), TimelineError::NoTimes);
    vectors.compressed = Some(Compressed::default());
    assert_eq!(error(&vectors), TimelineError::Compressed);
}

#[test]
fn few_bursts_are_one_phase() {
    let found = timeline(&recording(&[(0, 7)]));
    assert_eq!(
        (found.spans.len(), found.phases[0].bursts, found.phases[0].is_stable),
        (1, 7, false)
    );
}

#[test]
fn signatures_show_what_the_hardware_says() {
    let mut sampled = burst(0, 0, 0);
    let plain = Signature::from_burst(&sampled);
    let fact = |prediction, cycles| BranchFacts { prediction, cycles };
    let facts = [
        fact(Prediction::Mispredicted, 10),
        fact(Prediction::Predicted, 0),
        fact(Prediction::Unknown, 20),
        fact(Prediction::Predicted, 30),
    ];
    sampled.hardware = Some(Box::new(HardwareSample {
        event: EventId(0),
        ip: sampled.branches[0].from,
        facts: facts.repeat(4).into(),
    }));
    let found = Signature::from_burst(&sampled);
    assert_eq!(
        (found.time_per_branch, found.mispredicted),
        (Some(20.0), Some(1.0 / 3.0))
    );
    // Traces that lead to an event are other traces.
    assert!(
        found
            .traces
            .iter()
            .all(|trace| plain.traces.iter().all(|other| other.trace != trace.trace))
    );
    // Without a branch there is the interrupted code.
    sampled.branches.clear();
    assert_eq!(Signature::from_burst(&sampled).traces.len(), 1);
    sampled.start = None;
    assert_eq!(Signature::from_burst(&sampled).traces.len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_phase_has_the_weight_that_is_asked_for(lengths in prop::collection::vec(300..900_u64, 2..5)) {
        let phases: Vec<_> = lengths.iter().enumerate().map(|(at, bursts)| (at as u64 * 1000, *bursts)).collect();
        let found = timeline(&recording(&phases));
        prop_assert_eq!(found.phases.len(), phases.len());
        let weight = |phase: PhaseId| f64::from(phase.0);
        let factors = found.burst_factors(|of| weight(of.phase));
        let all: f64 = factors.iter().sum();
        prop_assert!((all / factors.len() as f64 - 1.0).abs() < 1e-9);
        let weights: f64 = found.phases.iter().map(|of| weight(of.phase)).sum();
        for of in &found.phases {
            let of_phase = found.phase_of.iter().zip(&factors).filter(|(phase, _)| **phase == of.phase);
            let sum: f64 = of_phase.map(|(_, factor)| factor).sum();
            prop_assert!((sum / all - weight(of.phase) / weights).abs() < 1e-9);
        }
        prop_assert!(found.burst_factors(|_| 0.0).iter().all(|factor| *factor == 1.0));
    }

    #[test]
    fn shares_of_a_burst_add_up(length in 0..5000_usize, base in any::<u32>()) {
        let mut long = burst(u64::from(base), 0, 0);
        let branches = long.branches.clone();
        long.branches = branches.into_iter().cycle().take(length).collect();
        let signature = Signature::from_burst(&long);
        let sum: f32 = signature.traces.iter().map(|trace| trace.share).sum();
        prop_assert!((sum - 1.0).abs() < 1e-5);
        prop_assert!(signature.traces.len() <= MAX_TRACES);
        prop_assert!(signature.traces.is_sorted_by(|a, b| a.trace < b.trace));
    }
}
