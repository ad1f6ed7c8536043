//! Accuracy measures on distributions whose figures are known.

use pleach_feedback_tests::support;

use pleach_analysis::accuracy::regions::RegionFlow;
use pleach_analysis::accuracy::shares::{calibration, wall};
use pleach_analysis::accuracy::truth::{Estimated, FunctionKey, TruthError};
use pleach_analysis::accuracy::{HOT, Shares, Truth};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, FunctionId};
use pleach_ball_larus::counts::exact::{ExactFunction, ExactPath, ExactProfile};
use pleach_ball_larus::edges::ExactFlow;
use pleach_ball_larus::{End, Mode, NumberingOptions, Path, Start};
use pleach_profile::path_profile::{FunctionPaths, PathProfile};
use pleach_profile::{Anchor, EstimatedPath};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use support::{Random, random_cfg};

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-12, "{a} is not {b}");
}

fn shares(weights: &[(u32, f64)]) -> Shares<u32> {
    Shares::new(weights.iter().copied(), 0.0)
}

#[test]
fn figures_computed_by_hand() {
    let actual = shares(&[(1, 500.0), (2, 300.0), (3, 199.0), (4, 1.0)]);
    let estimated = shares(&[(1, 40.0), (4, 30.0), (2, 20.0), (5, 10.0)]);
    // Hot are 1, 2, 3 (F of 4 is 0.1 %); estimated hot are 1, 4, 2.
    close(wall(&actual, &estimated, HOT).unwrap(), 0.8 / 0.999);
    // 0.4 + 0.2 + 0 + 0.001
    close(actual.overlap(&estimated), 0.601);
    let intervals = BTreeMap::from([(1, (0.45, 0.55)), (2, (0.1, 0.2)), (4, (0.0, 1.0))]);
    // 1 is inside, 2 is not, 3 has none, 4 is not hot.
    close(calibration(&actual, &intervals, HOT).unwrap(), 1.0 / 3.0);
}

#[test]
fn hot_begins_at_an_eighth_of_a_per_cent() {
    let at = shares(&[(1, 1.0), (2, 799.0)]);
    assert_eq!(at.hot(HOT), [&1, &2]);
    let below = shares(&[(1, 1.0), (2, 800.0)]);
    assert_eq!(below.hot(HOT), [&2]);
}

#[test]
fn ties_go_to_the_smaller_key() {
    let actual = shares(&[(1, 3.0), (2, 1.0)]);
    let estimated = shares(&[(2, 1.0), (9, 2.0), (1, 1.0)]);
    assert_eq!(estimated.top(2), [&9, &1]);
    close(wall(&actual, &estimated, HOT).unwrap(), 0.75);
}

#[test]
fn weight_without_a_key_is_part_of_the_whole() {
    let actual = shares(&[(1, 1.0)]);
    close(actual.overlap(&Shares::new([(1, 3.0)], 1.0)), 0.75);
}

#[test]
fn nothing_has_no_accuracy() {
    let nothing = shares(&[]);
    assert_eq!(wall(&nothing, &shares(&[(1, 1.0)]), HOT), None);
    assert_eq!(calibration(&nothing, &BTreeMap::new(), HOT), None);
    assert_eq!(wall(&shares(&[(1, 1.0)]), &nothing, HOT), Some(0.0));
    close(nothing.overlap(&nothing), 0.0);
}

#[test]
fn classes_are_what_is_compared_when_grouped() {
    let (actual, estimated) = (shares(&[(10, 1.0), (11, 3.0)]), shares(&[(10, 3.0), (11, 1.0)]));
    close(actual.overlap(&estimated), 0.5);
    let class = |key: &u32| key / 10;
    close(actual.grouped(class).overlap(&estimated.grouped(class)), 1.0);
}

fn distribution() -> impl Strategy<Value = Vec<(u32, f64)>> {
    prop::collection::btree_map(0u32..200, 0.0f64..1e6, 1..100).prop_map(|map| map.into_iter().collect())
}

proptest! {
    #[test]
    fn an_exact_estimate_is_perfect(weights in distribution(), scale in 1e-3f64..1e3) {
        let actual = shares(&weights);
        prop_assume!(!actual.is_empty());
        let scaled: Vec<_> = weights.iter().rev().map(|&(key, weight)| (key, weight * scale)).collect();
        let estimated = shares(&scaled);
        prop_assert!((actual.overlap(&estimated) - 1.0).abs() < 1e-9);
        if let Some(accuracy) = wall(&actual, &estimated, HOT) {
            // Scaling may make equals of neighbours, or set equals apart, by rounding only.
            prop_assert!((accuracy - 1.0).abs() < 1e-9, "{}", accuracy);
        }
        let intervals = actual.iter().map(|(&key, share)| (key, (share, share))).collect();
        prop_assert!(calibration(&actual, &intervals, HOT).is_none_or(|calibration| calibration == 1.0));
    }

    #[test]
    fn measures_are_shares_and_do_not_depend_on_order(a in distribution(), b in distribution(), turn in 0usize..100) {
        let (actual, estimated) = (shares(&a), shares(&b));
        let overlap = actual.overlap(&estimated);
        prop_assert!((0.0..=1.0 + 1e-9).contains(&overlap));
        prop_assert!((overlap - estimated.overlap(&actual)).abs() < 1e-12);
        let accuracy = wall(&actual, &estimated, HOT);
        prop_assert!(accuracy.is_none_or(|accuracy| (0.0..=1.0).contains(&accuracy)));
        let mut turned = b;
        let middle = turn % turned.len();
        turned.rotate_left(middle);
        prop_assert!((actual.overlap(&shares(&turned)) - overlap).abs() < 1e-12);
        prop_assert_eq!(wall(&actual, &shares(&turned), HOT), accuracy);
        // Telling less apart never makes two distributions less alike.
        let class = |key: &u32| key / 7;
        prop_assert!(actual.grouped(class).overlap(&estimated.grouped(class)) >= overlap - 1e-9);
    }
}

/// A function with counts of these paths.
fn function(cfg: Cfg, paths: &[(Path, u64)]) -> ExactFunction {
    let mut blocks = vec![0; cfg.blocks.len()];
    for (path, count) in paths {
        path.blocks.iter().for_each(|block| blocks[block.index()] += count);
    }
    ExactFunction {
        anchor: Anchor::Late,
        options: NumberingOptions::default(),
        window: 1,
        paths: paths
            .iter()
            .map(|(path, count)| ExactPath {
                path: vec![path.clone()],
                count: *count,
            })
            .collect(),
        flow: ExactFlow {
            entries: 0,
            exits: vec![0; cfg.blocks.len()],
            blocks,
            edges: BTreeMap::new(),
        },
        cfg,
    }
}

fn path(blocks: &[u32]) -> Path {
    Path {
        start: Start::Entry,
        blocks: blocks.iter().map(|&block| BlockIndex(block)).collect(),
        end: End::Exit,
    }
}

fn exact(functions: Vec<ExactFunction>) -> ExactProfile {
    ExactProfile {
        functions,
        problems: Vec::new(),
    }
}

fn key(cfg: &Cfg) -> FunctionKey {
    (cfg.id, cfg.hash())
}

fn estimated(cfg: &Cfg, paths: &[(Path, f64)], unlisted: f64) -> FunctionPaths {
    FunctionPaths {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        paths: paths
            .iter()
            .map(|(path, count)| EstimatedPath {
                path: path.clone(),
                count: *count,
                low: count * 0.9,
                high: count * 1.1,
                effective: *count,
            })
            .collect(),
        shown: Vec::new(),
        unlisted,
    }
}

fn two_graphs() -> (Cfg, Cfg) {
    let mut random = Random(7);
    (random_cfg(&mut random, 6), random_cfg(&mut random, 6))
}

#[test]
fn only_functions_that_both_know_are_compared() {
    let (f, g) = two_graphs();
    let counted = exact(vec![
        function(f.clone(), &[(path(&[0]), 30), (path(&[0, 1]), 10)]),
        function(g.clone(), &[(path(&[0]), 60)]),
    ]);
    let mut truth = Truth::from_exact(&counted).unwrap();
    let unmatched = truth.restrict(&BTreeSet::from([key(&f)]));
    close(unmatched.share, 0.6);
    assert_eq!(unmatched.functions, std::slice::from_ref(&g.name));
    let mut profile = PathProfile {
        anchor: Anchor::Late,
        functions: vec![
            estimated(&f, &[(path(&[0]), 6.0), (path(&[0, 1]), 1.0)], 1.0),
            estimated(&g, &[(path(&[0]), 2.0)], 0.0),
        ],
    };
    let unmatched = truth.take_uncounted(&mut profile);
    close(unmatched.share, 0.2);
    assert_eq!(unmatched.functions, std::slice::from_ref(&g.name));
    let estimate = Estimated::new(&profile);
    // .75 and .25 against 6/8 and 1/8.
    close(truth.flow().overlap(&estimate.shares), 0.875);
    close(calibration(&truth.flow(), &estimate.intervals, HOT).unwrap(), 0.5);
}

#[test]
fn another_graph_is_another_function() {
    let (f, mut changed) = two_graphs();
    changed.id = f.id;
    assert_ne!(f.hash(), changed.hash());
    let mut truth = Truth::from_exact(&exact(vec![function(f, &[(path(&[0]), 5)])])).unwrap();
    close(truth.restrict(&BTreeSet::from([key(&changed)])).share, 1.0);
    assert!(truth.flow().is_empty());
}

#[test]
fn counts_in_several_ways_are_one_function() {
    let (f, _) = two_graphs();
    let once = |count| function(f.clone(), &[(path(&[0]), count)]);
    let truth = Truth::from_exact(&exact(vec![once(2), once(3)])).unwrap();
    assert_eq!(truth.functions[&key(&f)].paths[&path(&[0])], 5);
}

#[test]
fn counts_that_say_nothing_of_paths_are_refused() {
    let (f, g) = two_graphs();
    let good = || function(f.clone(), &[(path(&[0]), 5)]);
    let with = |change: &dyn Fn(&mut ExactFunction)| {
        let mut other = function(g.clone(), &[]);
        change(&mut other);
        Truth::from_exact(&exact(vec![good(), other]))
    };
    let name = g.name.clone();
    assert_eq!(Truth::from_exact(&exact(vec![])), Err(TruthError::Empty));
    assert_eq!(with(&|f| f.anchor = Anchor::Early), Err(TruthError::MixedAnchors));
    assert_eq!(
        with(&|f| f.options.mode = Mode::Edges),
        Err(TruthError::Edges(name.clone()))
    );
    assert_eq!(with(&|f| f.options.max_paths = 5), Err(TruthError::Limit(name, 5)));
    assert!(with(&|_| ()).is_ok());
}

/// An estimate that is exact is perfect on Ball–Larus paths and on region paths.
#[test]
fn exact_estimates_of_random_functions_are_perfect() {
    let mut random = Random(11);
    for _ in 0..200 {
        let mut counted = Vec::new();
        let mut profile = PathProfile {
            anchor: Anchor::Late,
            functions: Vec::new(),
        };
        for number in 0..3 {
            let blocks = 1 + random.below(20);
            let mut cfg = random_cfg(&mut random, blocks);
            cfg.id = FunctionId {
                guid: pleach_annotate::id::FunctionGuid(number),
                ..cfg.id
            };
            let graph = pleach_ball_larus::graph::PathGraph::new(&cfg, &NumberingOptions::default());
            let numbers: BTreeSet<u64> = (0..5).map(|_| random.word() % graph.numbers().max(1)).collect();
            let paths: Vec<(Path, u64)> = numbers
                .into_iter()
                .filter_map(|number| Some((graph.path(number)?, 1 + random.word() % 1000)))
                .collect();
            let weights: Vec<_> = paths
                .iter()
                .map(|(path, count)| (path.clone(), *count as f64 / 8.0))
                .collect();
            profile.functions.push(estimated(&cfg, &weights, 0.0));
            counted.push(function(cfg, &paths));
        }
        let truth = Truth::from_exact(&exact(counted)).unwrap();
        let unmatched = truth.take_uncounted(&mut profile);
        assert_eq!(unmatched.share, 0.0);
        let (flow, estimate) = (truth.flow(), Estimated::new(&profile));
        assert!(!flow.is_empty());
        close(flow.overlap(&estimate.shares), 1.0);
        assert_eq!(calibration(&flow, &estimate.intervals, HOT), Some(1.0));
        close(wall(&flow, &estimate.shares, HOT).unwrap(), 1.0);
        let regions = RegionFlow::new(&truth);
        let projected = regions.estimated(&profile);
        close(regions.exact.overlap(&projected), 1.0);
        close(wall(&regions.exact, &projected, HOT).unwrap(), 1.0);
    }
}
