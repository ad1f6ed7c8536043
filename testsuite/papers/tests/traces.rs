//! The models of trace selection on streams that are made by hand.

use pleach_collector::vector::{Branch, Burst, CodeAddress, EndReason, Engine, ModuleId, Process, VectorSet};
use pleach_papers::phase_checks::{CheckOptions, check};
use pleach_papers::traces::confident::Confident;
use pleach_papers::traces::models::{Model, Paper};
use pleach_papers::traces::sample::Recording;
use pleach_papers::traces::stitch::Stitched;
use pleach_papers::traces::{Outcome, figures, run};

/// A burst through these blocks, one after the other.
fn burst(number: usize, blocks: &[u64]) -> Burst {
    let at = |offset: u64| CodeAddress {
        module: ModuleId(0),
        offset,
    };
    let branches = blocks.windows(2).map(|pair| Branch {
        from: at(pair[0]),
        to: at(pair[1]),
    });
    Burst {
        process: 0,
        thread: 1,
        time_ns: number as u64 * 1000,
        engine: Engine::RunAhead,
        start: None,
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

fn vectors(bursts: &[&[u64]]) -> VectorSet {
    let bursts = bursts.iter().enumerate();
    let process = Process {
        pid: 1,
        parent: None,
        command: "made".to_owned(),
        program_cpu_seconds: 1.0,
        own_cpu_seconds: 0.0,
        lost: 0,
        declined: 0,
        undisturbed: true,
    };
    VectorSet {
        processes: vec![process],
        bursts: bursts.map(|(number, blocks)| burst(number, blocks)).collect(),
        ..VectorSet::default()
    }
}

/// Two ways on from block 1, and another start.
const A: &[u64] = &[1, 2, 3, 4, 5];
const B: &[u64] = &[1, 2, 3, 4, 6];
const C: &[u64] = &[7, 8, 9, 10, 11];

fn outcome(bursts: &[&[u64]], length: usize, mut model: impl Model) -> Outcome {
    run(&Recording::new(&vectors(bursts)), length, &mut model)
}

#[test]
fn each_model_selects_as_the_paper_says() {
    // Intervals of four: A; then B three times of four, and C; then the same again.
    let bursts = [A, A, A, A, B, B, A, C, B, B, B, C];
    let covered = |model: Paper| {
        let outcome = outcome(&bursts, 4, model);
        (
            (outcome.covered * 12.0).round() as u64,
            outcome.selections,
            outcome.traces,
        )
    };
    // A is covered once in the second interval.
    assert_eq!(covered(Paper::first_interval()), (1, 1, 1));
    // C is added, and covered in the third.
    assert_eq!(covered(Paper::first_hot()), (2, 2, 2));
    // B takes A's place: all of the third interval is covered.
    assert_eq!(covered(Paper::dynamic_interval()), (5, 2, 2));
    // A was seen five times, B as often at the end.
    assert_eq!(covered(Paper::full_history()), (2, 2, 2));
}

#[test]
fn overlapping_traces_are_joined() {
    // The first trace of the second burst begins at the last branch of the first one's.
    let bursts: [&[u64]; 2] = [&[1, 2, 3, 4, 5], &[4, 5, 6, 7, 8, 9]];
    let recording = Recording::new(&vectors(&[bursts[0], bursts[1], &[2, 3, 4, 5, 6], &[5, 6, 7, 8, 9]]));
    let mut model = Paper::full_history();
    let first = recording.samples[..2].to_vec();
    let interval = pleach_papers::traces::Samples {
        samples: &first,
        phase: None,
    };
    assert!(model.end_interval(&recording, interval));
    let joined = Stitched::new(&recording, model.selected());
    let lies = |sample: usize| joined.contains(recording.samples[sample].trace);
    // 2→…→6 lies across the two; what follows 8 was not selected.
    assert_eq!([lies(0), lies(1), lies(2), lies(3)], [true, true, true, false]);
}

#[test]
fn distributions_count_paths() {
    let bursts = [A, A, A, B, C, C];
    let found = figures("made", &vectors(&bursts), &[2]);
    let slow = found.slow;
    assert_eq!(
        (slow.samples, slow.starts, slow.traces, slow.half, slow.most),
        (6, 2, 3, 1, 3)
    );
    assert_eq!(slow.hottest, [3.0 / 6.0, 5.0 / 6.0, 1.0, 1.0]);
    assert_eq!(found.fast, slow);
    // A burst of eight branches has two traces one after the other.
    let long: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 8, 9];
    let found = figures("made", &vectors(&[long, long]), &[2]);
    assert_eq!((found.slow.samples, found.fast.samples), (2, 4));
}

#[test]
fn ours_learns_from_whole_bursts_and_follows_phases() {
    // A phase goes from 1 on, or from 101 on, or back to the first; its bursts begin anywhere in a loop of 40 blocks.
    let looped = |base: u64, turn: u64| -> Vec<u64> { (0..30).map(|i| base + (turn * 7 + i) % 40).collect() };
    let phases = [(0, 600), (100, 600), (0, 600)];
    let bursts: Vec<Vec<u64>> = phases
        .iter()
        .flat_map(|&(base, number)| (0..number).map(move |turn| looped(base, turn)))
        .collect();
    let bursts: Vec<&[u64]> = bursts.iter().map(Vec::as_slice).collect();
    let ours = outcome(&bursts, 100, Confident::default());
    // Nothing covers the first interval of a phase; after it, every start is known.
    assert!((ours.covered - 16.0 / 18.0).abs() < 0.01, "{ours:?}");
    assert!(ours.selections <= 3, "{ours:?}");
    let history = outcome(&bursts, 100, Paper::full_history());
    assert!(ours.covered >= history.covered, "{ours:?} {history:?}");
}

#[test]
fn checks_of_the_detector_tell_right_from_wrong() {
    let looped = |base: u64, turn: u64| -> Vec<u64> { (0..30).map(|i| base + (turn * 7 + i) % 40).collect() };
    let bursts: Vec<Vec<u64>> = [0, 100]
        .iter()
        .flat_map(|&base| (0..500).map(move |turn| looped(base, turn)))
        .collect();
    let bursts: Vec<&[u64]> = bursts.iter().map(Vec::as_slice).collect();
    let options = CheckOptions {
        intervals: 2000,
        length: 100,
        changes: 100,
        seed: 3,
    };
    let checked = check(&[("made".to_owned(), vectors(&bursts))], &options).expect("checked");
    let of = &checked[0];
    assert_eq!(
        (of.false_changes, of.phases, of.changes, of.missed),
        (0, 2, 100, 0),
        "{of:?}"
    );
    assert_eq!((of.not_recognised, of.additional), (0, 0), "{of:?}");
    // First executions show the ends of short phases, and nothing where nothing changes. Intervals show some ends, and
    // what follows unless the program ends before four of them.
    assert_eq!(
        (of.short, of.short_found[1], of.short_returned[1]),
        (100, 100, 100),
        "{of:?}"
    );
    assert!(of.short_found[0] > 0 && of.short_returned[0] >= 95, "{of:?}");
    assert_eq!((of.marks, of.false_marks), (200, 0), "{of:?}");
    assert!(check(&[("empty".to_owned(), VectorSet::default())], &options).is_err());
}
