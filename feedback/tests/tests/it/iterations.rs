//! Windows of consecutive paths: the forest against exact windows, and the correction for bursts that end.

use pleach_feedback_tests::support;

use pleach_analysis::iterations::{Forest, Run, Window, overlap, runs};
use pleach_analysis::partial_path::PartialPath;
use pleach_ball_larus::counts::exact::ExactPath;
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{End, NumberingOptions, Path};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::Random;
use support::activation::{split, walk, wild};

fn pieces(paths: &[Path]) -> Vec<PartialPath> {
    let piece = |p: &Path| PartialPath {
        start: Some(p.start),
        blocks: p.blocks.clone(),
        end: Some(p.end),
    };
    paths.iter().map(piece).collect()
}

fn run(paths: &[u64], complete: bool) -> Run {
    Run {
        paths: paths.to_vec(),
        complete,
    }
}

fn tally(windows: &[Window]) -> BTreeMap<Vec<u64>, f64> {
    windows.iter().map(|w| (w.paths.clone(), w.count)).collect()
}

#[test]
fn a_cut_is_not_taken_for_an_end() {
    let mut forest = Forest::new(3);
    // Path 1 is always followed by 2, and 2 by 1; one burst saw the activation's end.
    forest.add(&run(&[1, 2, 1, 2], false), 10.0);
    forest.add(&run(&[1, 2], true), 10.0);
    assert_eq!(
        tally(&forest.seen(1)),
        BTreeMap::from([(vec![1], 30.0), (vec![2], 30.0)])
    );
    assert_eq!(
        tally(&forest.seen(2)),
        BTreeMap::from([(vec![1, 2], 30.0), (vec![2, 1], 10.0)])
    );
    // Where what followed 2 was seen, it was 1 or the end, equally often.
    let estimated = tally(&forest.estimated(2, |_| None));
    assert_eq!(estimated, BTreeMap::from([(vec![1, 2], 30.0), (vec![2, 1], 15.0)]));
    assert_eq!(forest.next(&[2], 1), Some(0.5));
    assert_eq!(forest.next(&[1], 2), Some(1.0));
    assert_eq!(forest.next(&[2, 1], 2), Some(1.0));
    assert_eq!(forest.next(&[2], 9), Some(0.0));
    assert_eq!((forest.next(&[9], 1), forest.next(&[], 1)), (None, None));
    // The counts of single paths may come from elsewhere.
    let scaled = tally(&forest.estimated(2, |path| (path == 2).then_some(100.0)));
    assert_eq!(scaled[&vec![2, 1]], 50.0);
    assert_eq!((forest.len(), forest.is_empty()), (6, false));
}

#[test]
fn only_what_follows_makes_a_run() {
    let random = &mut Random(3);
    let options = NumberingOptions {
        iterations: 2,
        ..NumberingOptions::default()
    };
    let (graph, paths) = loop {
        let cfg = wild(random);
        let graph = PathGraph::new(&cfg, &options);
        let Some(events) = walk(&cfg, random) else { continue };
        let paths = split(&cfg, &graph, &options, &events);
        let calls = paths.iter().filter(|p| p.end == End::Call).count();
        if paths.len() >= 5 && calls == 0 {
            break (graph, paths);
        }
    };
    let numbers: Vec<u64> = paths.iter().map(|p| graph.number_of(p).unwrap()).collect();
    let mut pieces = pieces(&paths);
    assert_eq!(runs(&graph, &pieces), [run(&numbers, true)]);
    // A piece whose end was not seen ends a run, and so does one that is missing.
    pieces[2].end = None;
    assert_eq!(
        runs(&graph, &pieces),
        [run(&numbers[..2], false), run(&numbers[3..], true)]
    );
    pieces.truncate(3);
    assert_eq!(runs(&graph, &pieces), [run(&numbers[..2], false)]);
}

/// Activations of a loop whose next path depends on the last two, one after the other, seen through bursts of so many
/// paths.
fn simulated(random: &mut Random, burst: usize) -> (Forest, Forest) {
    let (mut seen, mut all) = (Forest::new(4), Forest::new(4));
    let mut stream: Vec<(usize, u64)> = Vec::new();
    let mut ends = Vec::new();
    for activation in 0..3000 {
        let mut paths = vec![0, 0];
        while random.chance(0.98) {
            let [.., a, b] = paths[..] else { unreachable!() };
            let likely = (a + 2 * b + 1) % 3;
            paths.push(if random.chance(0.8) { likely } else { random.word() % 3 });
        }
        // A path that leaves the function is none that goes round.
        *paths.last_mut().unwrap() += 3;
        all.add(&run(&paths, true), 1.0);
        stream.extend(paths.into_iter().map(|path| (activation, path)));
        ends.push(stream.len());
    }
    for _ in 0..20_000 {
        let first = random.below(stream.len() - burst);
        let mut at = first;
        for part in stream[first..first + burst].chunk_by(|a, b| a.0 == b.0) {
            at += part.len();
            let paths: Vec<u64> = part.iter().map(|p| p.1).collect();
            seen.add(&run(&paths, ends[part[0].0] == at), 1.0);
        }
    }
    (seen, all)
}

#[test]
fn estimates_are_nearer_than_what_was_seen() {
    for burst in [4, 6, 10] {
        let (seen, all) = simulated(&mut Random(burst as u64), burst);
        let total = |windows: &[Window]| windows.iter().map(|w| w.count).sum::<f64>();
        let per_path = |forest: &Forest, windows: &[Window]| total(windows) / total(&forest.seen(1));
        let exact = per_path(&all, &all.seen(4));
        let raw = per_path(&seen, &seen.seen(4));
        let estimated = per_path(&seen, &seen.estimated(4, |_| None));
        // Of bursts of r paths, only r − 3 windows of four are seen.
        assert!(
            raw < exact * (burst as f64 - 2.5) / burst as f64,
            "{burst}: {raw} of {exact}"
        );
        assert!(
            (estimated / exact - 1.0).abs() < 0.03,
            "{burst}: {estimated}, not {exact}"
        );
        assert!(overlap(&seen.estimated(4, |_| None), &all.seen(4)) > 0.93);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whole_activations_have_the_exact_windows(seed: u64) {
        let random = &mut Random(seed);
        let cfg = wild(random);
        let longest = 1 + random.below(4);
        let options = NumberingOptions { iterations: 4, ..NumberingOptions::default() };
        let graph = PathGraph::new(&cfg, &options);
        let mut forest = Forest::new(longest);
        let mut exact: BTreeMap<Vec<Path>, u64> = BTreeMap::new();
        for events in (0..10).filter_map(|_| walk(&cfg, random)) {
            let paths = split(&cfg, &graph, &options, &events);
            // Instrumented programs go on counting where a call returns again; bursts see another beginning there.
            if paths[..paths.len() - 1].iter().any(|p| matches!(p.end, End::Exit | End::Call)) {
                continue;
            }
            for run in runs(&graph, &pieces(&paths)) {
                prop_assert!(run.complete);
                forest.add(&run, 1.0);
            }
            for end in 1..=paths.len() {
                *exact.entry(paths[end.saturating_sub(longest)..end].to_vec()).or_default() += 1;
            }
        }
        let windows: Vec<ExactPath> = exact.into_iter().map(|(path, count)| ExactPath { path, count }).collect();
        let expected = Forest::exact(&graph, &windows, longest);
        prop_assert_eq!(tally(&forest.seen(longest)), tally(&expected.seen(longest)));
        for (estimated, seen) in forest.estimated(longest, |_| None).iter().zip(forest.seen(longest)) {
            prop_assert_eq!(&estimated.paths, &seen.paths);
            prop_assert!((estimated.count - seen.count).abs() < 1e-9);
        }
        let common = overlap(&forest.seen(longest), &expected.seen(longest));
        prop_assert!(expected.is_empty() || common > 1.0 - 1e-9);
    }

    #[test]
    fn counts_never_grow_along_the_forest(seed: u64) {
        let random = &mut Random(seed);
        let mut forest = Forest::new(4);
        for _ in 0..random.below(20) {
            let paths: Vec<u64> = (0..1 + random.below(8)).map(|_| random.word() % 3).collect();
            forest.add(&run(&paths, random.chance(0.3)), random.unit() * 9.0);
        }
        let lists: [&dyn Fn(usize) -> Vec<Window>; 2] = [&|k| forest.seen(k), &|k| forest.estimated(k, |_| None)];
        for list in lists {
            for k in 1..4 {
                let mut longer: BTreeMap<Vec<u64>, f64> = BTreeMap::new();
                for window in list(k + 1) {
                    *longer.entry(window.paths[..k].to_vec()).or_default() += window.count;
                }
                let shorter = tally(&list(k));
                prop_assert!(longer.keys().all(|paths| shorter.contains_key(paths)));
                for (paths, count) in longer {
                    prop_assert!(count <= shorter[&paths] * (1.0 + 1e-9), "{paths:?}");
                }
            }
        }
        for k in 1..=4 {
            let sum = |windows: Vec<Window>| windows.iter().map(|w| w.count).sum::<f64>();
            prop_assert!(sum(forest.estimated(k, |_| None)) >= sum(forest.seen(k)) * (1.0 - 1e-9));
        }
    }
}
