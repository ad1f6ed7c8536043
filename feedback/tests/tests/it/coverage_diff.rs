//! What `pleach coverage diff` says.

use pleach_feedback_tests::counts_support;

use counts_support::cfg;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_profile::merge::merge;
use pleach_profile::{Anchor, Covered, FunctionProfile, Profile};
use pleach_report::coverage_diff::{CoverageDiff, CoverageDiffOptions, Direction};
use pleach_report::names::Names;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

use Covered::{ByDominance, NotExecuted, Predicted, Proved, Unknown};

fn function(cfg: &Cfg, coverage: &[Covered], counts: &[u64]) -> FunctionProfile {
    let mut blocks = counts.to_vec();
    blocks.resize(cfg.blocks.len(), 0);
    FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        samples: 1,
        blocks,
        edges: vec![0; cfg.edge_count()],
        coverage: coverage.to_vec(),
        ..FunctionProfile::default()
    }
}

fn profile(functions: Vec<FunctionProfile>) -> Profile {
    Profile {
        scale: 1.0,
        functions,
        ..Profile::default()
    }
}

/// `scan` has the lines 20 to 24, `report` those of one statement, `other` and `late` none.
fn graphs() -> Vec<Cfg> {
    let mut graphs = vec![
        cfg("scan", &[&[1, 2], &[3], &[3], &[1, 4], &[]]),
        cfg("report", &[&[1, 2], &[2], &[]]),
        cfg("other", &[&[1], &[]]),
        cfg("late", &[&[]]),
    ];
    for (at, block) in graphs[0].blocks.iter_mut().enumerate() {
        block.line = 20 + at as u32;
    }
    graphs[2].blocks.iter_mut().for_each(|block| block.line = 0);
    graphs[3].blocks[0].line = 0;
    graphs
}

/// The tests, and production of another build: `other` changed, and `late` is new.
fn tests_and_production(graphs: &[Cfg]) -> [Profile; 2] {
    let [scan, report, other, late] = graphs else {
        panic!("four graphs")
    };
    let changed = cfg("other", &[&[]]);
    let tests = profile(vec![
        function(
            scan,
            &[Proved, NotExecuted, Unknown, ByDominance, NotExecuted],
            &[70, 0, 0, 60, 0],
        ),
        function(report, &[NotExecuted; 3], &[]),
        function(other, &[Proved; 2], &[4, 4]),
    ]);
    let production = profile(vec![
        function(
            scan,
            &[Proved, Proved, Proved, NotExecuted, Predicted],
            &[9000, 3000, 6000, 0, 1],
        ),
        function(report, &[ByDominance, Proved, Unknown], &[8, 8, 0]),
        function(&changed, &[Proved], &[7]),
        function(late, &[Proved], &[5]),
    ]);
    [tests, production]
}

fn find<'g>(graphs: &'g [Cfg]) -> impl Fn(FunctionId, CfgHash) -> Option<&'g Cfg> {
    move |id, hash| graphs.iter().find(|cfg| (cfg.id, cfg.hash()) == (id, hash))
}

fn diff(a: &Profile, b: &Profile, options: CoverageDiffOptions) -> CoverageDiff {
    CoverageDiff::new(a, b, options, &|_, _| None, &|_| None).unwrap()
}

#[test]
fn table() {
    let graphs = graphs();
    let [tests, production] = tests_and_production(&graphs);
    let options = CoverageDiffOptions::default();
    let path = |cfg: &Cfg| Some(PathBuf::from("/src").join(&cfg.source_file));
    let with_lines = CoverageDiff::new(&tests, &production, options, &find(&graphs), &path).unwrap();
    let names = ["tests.pleach", "prod.pleach"];
    insta::assert_snapshot!("coverage_diff", with_lines.to_text(names, &Names::default()));
    insta::assert_snapshot!("coverage_diff_json", with_lines.to_json().unwrap());
    let options = CoverageDiffOptions {
        top: Some(1),
        predicted: true,
    };
    insta::assert_snapshot!(
        "coverage_diff_blocks",
        diff(&tests, &production, options).to_text(names, &Names::default())
    );
}

#[test]
fn anchors_must_agree() {
    let late = Profile {
        anchor: Anchor::Late,
        ..Profile::default()
    };
    let options = CoverageDiffOptions::default();
    let error = CoverageDiff::new(&Profile::default(), &late, options, &|_, _| None, &|_| None).unwrap_err();
    assert!(error.to_string().contains("compare profiles of one anchor only"));
}

fn state() -> impl Strategy<Value = Covered> {
    (0..6_u8).prop_map(|value| Covered::from_u8(value).unwrap())
}

/// A profile of some of these functions, some without coverage.
fn any_profile() -> impl Strategy<Value = Profile> {
    let graphs = graphs();
    let states = prop::collection::vec(prop::option::weighted(0.8, prop::collection::vec(state(), 5)), 4);
    (states, prop::collection::vec(0..9_u64, 5)).prop_map(move |(states, counts)| {
        let of_graph = graphs.iter().zip(&states).enumerate();
        let functions = of_graph.filter_map(|(at, (cfg, states))| {
            let number = cfg.blocks.len();
            let states = states.as_ref().map(|states| &states[..number]);
            // A function without states is absent, or has no coverage.
            match states {
                None if at % 2 == 0 => None,
                states => Some(function(cfg, states.unwrap_or_default(), &counts[..number])),
            }
        });
        profile(functions.collect())
    })
}

/// The blocks of each list.
fn blocks(direction: &Direction) -> [BTreeMap<String, Vec<u32>>; 2] {
    [&direction.not_executed, &direction.unknown].map(|difference| {
        let functions = difference.functions.iter();
        let blocks = |f: &pleach_report::coverage_diff::FunctionDifference| f.blocks.iter().map(|b| b.0).collect();
        functions.map(|f| (f.function.clone(), blocks(f))).collect()
    })
}

proptest! {
    #[test]
    fn a_profile_does_not_differ_from_itself(profile in any_profile(), predicted: bool) {
        let diff = diff(&profile, &profile, CoverageDiffOptions { predicted, top: None });
        prop_assert_eq!(&diff.only_a, &Direction::default());
        prop_assert_eq!(&diff.only_b, &Direction::default());
        prop_assert_eq!((diff.only_in, diff.not_comparable.len()), ([0; 2], 0));
        prop_assert_eq!(diff.compared as usize, profile.functions.len());
    }

    #[test]
    fn both_directions_mirror_each_other(a in any_profile(), b in any_profile(), predicted: bool) {
        let options = CoverageDiffOptions { predicted, top: None };
        let (there, back) = (diff(&a, &b, options), diff(&b, &a, options));
        prop_assert_eq!(&there.only_a, &back.only_b);
        prop_assert_eq!(&there.only_b, &back.only_a);
        prop_assert_eq!(&there.not_comparable, &back.not_comparable);
        let swapped = |[a, b]: [u64; 2]| [b, a];
        prop_assert_eq!(there.only_in, swapped(back.only_in));
        prop_assert_eq!(there.predicted, swapped(back.predicted));
        for (row, column) in (0..3).flat_map(|row| (0..3).map(move |column| (row, column))) {
            prop_assert_eq!(there.blocks[row][column], back.blocks[column][row]);
        }
        let [not_executed, unknown] = [there.blocks[1][0], there.blocks[2][0]];
        prop_assert_eq!(there.only_b.not_executed.blocks, not_executed);
        prop_assert_eq!(there.only_b.unknown.blocks, unknown);
    }

    /// A merged profile executes what either of the two does, and nothing more.
    #[test]
    fn merging_adds_the_difference(a in any_profile(), b in any_profile(), predicted: bool) {
        let options = CoverageDiffOptions { predicted, top: None };
        let merged = merge(vec![(a.clone(), 1.0), (b.clone(), 1.0)]).unwrap().profile;
        let added = diff(&a, &merged, options);
        prop_assert_eq!(&blocks(&added.only_a), &<[BTreeMap<_, _>; 2]>::default());
        prop_assert_eq!(&blocks(&added.only_b), &blocks(&diff(&a, &b, options).only_b));
    }
}
