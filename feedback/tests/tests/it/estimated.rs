//! What `pleach paths`, `report`, `overlap` and `diff` say about sampled profiles.

use pleach_feedback_tests::counts_support;

use counts_support::{cfg, example, parse, parse_paths, path, spin, spin_paths};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::manifest::{self, Anchor};
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::{End, Path, Start};
use pleach_profile::{Covered, EstimatedPath, FunctionProfile, Profile};
use pleach_report::compare::Overlap;
use pleach_report::diff::Diff;
use pleach_report::estimated::EstimatedPaths;
use pleach_report::flows::Flows;
use pleach_report::foreign::take_foreign_estimates;
use pleach_report::functions::{Report, ReportOptions};
use pleach_report::names::Names;
use pleach_report::paths::PathsOptions;
use proptest::prelude::*;

/// A function whose blocks were entered as often as its paths say, each execution seen `1 / scale` times.
fn function(cfg: &Cfg, paths: &[(Path, f64)], scale: f64) -> FunctionProfile {
    let mut blocks = vec![0.0; cfg.blocks.len()];
    for (path, count) in paths {
        path.blocks.iter().for_each(|b| blocks[b.index()] += count);
    }
    let estimate = |(path, count): &(Path, f64)| {
        let half = 1.645 * (count * scale).sqrt();
        EstimatedPath {
            path: path.clone(),
            count: *count,
            low: (count - half).max(0.0),
            high: count + half + scale,
            effective: count / scale,
        }
    };
    let mut paths: Vec<_> = paths.iter().map(estimate).collect();
    paths.sort_by(EstimatedPath::hottest_first);
    FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        samples: (blocks.iter().sum::<f64>() / scale) as u64,
        edges: vec![0; cfg.edge_count()],
        coverage: blocks
            .iter()
            .map(|&c| if c > 0.0 { Covered::Proved } else { Covered::Unknown })
            .collect(),
        blocks: blocks.iter().map(|c| c.round() as u64).collect(),
        paths,
        ..FunctionProfile::default()
    }
}

fn profile(scale: f64, functions: Vec<FunctionProfile>) -> Profile {
    let mut profile = Profile {
        scale,
        functions,
        ..Profile::default()
    };
    profile.functions.sort_by_key(|f| (f.id, f.cfg_hash));
    profile
}

/// Exact counts times something.
fn times(paths: &[(Path, u64)], factor: f64) -> Vec<(Path, f64)> {
    paths.iter().map(|(p, c)| (p.clone(), *c as f64 * factor)).collect()
}

/// What [`example`] counts, sampled.
fn sampled() -> Profile {
    profile(
        10.0,
        vec![
            function(&parse(), &times(&parse_paths(), 7.5), 10.0),
            function(&spin(), &times(&spin_paths(), 7.5), 10.0),
            function(&cfg("never", &[&[1], &[]]), &[], 10.0),
        ],
    )
}

/// Another run: `parse` went the other way more often, and `spin` hardly ran.
fn other() -> Profile {
    let mut paths = times(&parse_paths(), 30.0);
    (paths[3].1, paths[4].1) = (paths[4].1, paths[3].1);
    profile(
        10.0,
        vec![
            function(&parse(), &paths, 10.0),
            function(&spin(), &times(&spin_paths()[..1], 30.0), 10.0),
        ],
    )
}

fn exact() -> Flows {
    Flows::of_exact(&ExactProfile::from_counts(&example())).unwrap()
}

fn only(name: &str) -> PathsOptions {
    PathsOptions {
        top: None,
        function: Some(name.into()),
    }
}

#[test]
fn table() {
    let profile = sampled();
    insta::assert_snapshot!(
        EstimatedPaths::new(&profile, &PathsOptions::default())
            .unwrap()
            .to_text(&Names::default())
    );
}

#[test]
fn the_table_can_be_cut() {
    let profile = sampled();
    let options = PathsOptions {
        top: Some(1),
        ..only("spin")
    };
    let text = EstimatedPaths::new(&profile, &options)
        .unwrap()
        .to_text(&Names::default());
    assert!(text.contains("8 other paths") && !text.contains("parse"), "{text}");
    // Shares are of everything.
    assert!(text.contains("28.75 %"), "{text}");
}

#[test]
fn json_is_that_of_exact_counts() {
    let profile = sampled();
    let text = EstimatedPaths::new(&profile, &PathsOptions::default())
        .unwrap()
        .to_json()
        .unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let exact = ExactProfile::from_counts(&example());
    let exact = pleach_report::paths::Paths::new(&exact, &PathsOptions::default()).unwrap();
    let exact: Vec<serde_json::Value> = serde_json::from_str(&exact.to_json().unwrap()).unwrap();
    assert_eq!(rows.len(), exact.len());
    for (row, exact) in rows.iter().zip(&exact) {
        let keys = |row: &serde_json::Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(row), keys(exact));
        assert_eq!((&row["blocks"], &row["end"]), (&exact["blocks"], &exact["end"]));
        assert_eq!(row["count"].as_f64().unwrap(), exact["count"].as_f64().unwrap() * 7.5);
        assert!(row["low"].as_f64() < row["count"].as_f64() && row["count"].as_f64() < row["high"].as_f64());
    }
    insta::assert_snapshot!(text.lines().nth(1).unwrap());
}

#[test]
fn nothing_sampled_can_be_shown() {
    let profile = profile(1.0, vec![function(&spin(), &[], 1.0)]);
    let paths = EstimatedPaths::new(&profile, &PathsOptions::default()).unwrap();
    assert_eq!(
        paths.to_text(&Names::default()),
        "0 of 1 function seen on a path, 0 paths, the longest of 0 blocks\n"
    );
    assert_eq!(paths.to_json().unwrap(), "[\n]\n");
    let report = Report::new(&profile, &ReportOptions::default(), &|_, _| None).unwrap();
    assert!(report.to_text(&Names::default()).starts_with("0 functions sampled"));
}

#[test]
fn unknown_functions_are_named() {
    let profile = sampled();
    let error = EstimatedPaths::new(&profile, &only("pars")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the profile has no function pars; did you mean parse?"
    );
    let options = ReportOptions {
        function: Some("x".into()),
        ..ReportOptions::default()
    };
    assert!(Report::new(&profile, &options, &|_, _| None).is_err());
    let id = parse().id.to_string();
    assert_eq!(EstimatedPaths::new(&profile, &only(&id)).unwrap().rows.len(), 7);
}

#[test]
fn estimates_of_another_build_are_taken_out() {
    let mut changed = spin();
    changed.blocks[2].successors.push(BlockIndex(2));
    let section: Vec<u8> = [
        manifest::encode(&changed, Anchor::Early),
        manifest::encode(&parse(), Anchor::Early),
    ]
    .concat();
    let (entries, _) = manifest::decode(&section);
    let mut profile = sampled();
    let foreign = take_foreign_estimates(&mut profile, &entries);
    // `never` was not sampled: nobody misses it.
    assert_eq!(foreign.len(), 1);
    assert!(foreign[0].function == "spin" && foreign[0].is_changed);
    assert_eq!(profile.functions.len(), 1);
    let mut late = sampled();
    late.anchor = Anchor::Late;
    assert_eq!(take_foreign_estimates(&mut late, &entries).len(), 2);
}

#[test]
fn report_by_blocks_and_by_instructions() {
    let profile = sampled();
    let report = Report::new(&profile, &ReportOptions::default(), &|_, _| None).unwrap();
    insta::assert_snapshot!("report", report.to_text(&Names::default()));
    insta::assert_snapshot!("report_json", report.to_json().unwrap());
    let mut heavy = spin();
    heavy.blocks[1].instructions = 100;
    let graphs = [parse(), heavy];
    let graph = |id, _| graphs.iter().find(|cfg| cfg.id == id);
    let report = Report::new(&profile, &ReportOptions::default(), &graph).unwrap();
    insta::assert_snapshot!("report_instructions", report.to_text(&Names::default()));
    assert_eq!(report.functions[0].function, "spin");
    let shares: f64 = report.functions.iter().filter_map(|f| f.instruction_share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let few = ReportOptions {
        least: 0.5,
        ..ReportOptions::default()
    };
    let report = Report::new(&profile, &few, &|_, _| None).unwrap();
    assert_eq!((report.functions.len(), report.hidden), (1, 1));
}

#[test]
fn overlap_of_two_profiles() {
    let (a, b) = (Flows::of_profile(&sampled()), Flows::of_profile(&other()));
    let overlap = Overlap::new(&a, &b, None).unwrap();
    insta::assert_snapshot!("overlap", overlap.to_text(&Names::default()));
    insta::assert_snapshot!("overlap_json", overlap.to_json().unwrap());
    // Shares by hand: 313 path executions in the first; 223 in the second, 165 of which moved from one path to another.
    let expected = [180.0, 15.0, 10.0, 10.0, 2.0, 2.0, 1.0, 3.0, 90.0]
        .map(|c| c / 313.0)
        .iter()
        .zip([15.0, 180.0, 10.0, 10.0, 2.0, 2.0, 1.0, 3.0, 0.0].map(|c| c / 223.0))
        .map(|(&a, b): (&f64, f64)| a.min(b))
        .sum::<f64>();
    assert!((overlap.paths.unwrap() - expected).abs() < 1e-9);
    // What functions differ by is all that is missing.
    let missing: f64 = overlap.functions.iter().map(|f| f.path_difference).sum();
    assert!((1.0 - missing - expected).abs() < 1e-9);
}

#[test]
fn a_profile_in_proportion_to_exact_counts_overlaps_wholly() {
    let overlap = Overlap::new(&Flows::of_profile(&sampled()), &exact(), Some(0)).unwrap();
    assert!(
        (overlap.paths.unwrap() - 1.0).abs() < 1e-6 && overlap.blocks.unwrap() > 0.999,
        "{overlap:?}"
    );
    assert_eq!(overlap.path_numbers, [9, 9, 9]);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut late = sampled();
    late.anchor = Anchor::Late;
    let (early, late) = (exact(), Flows::of_profile(&late));
    insta::assert_snapshot!(Overlap::new(&early, &late, None).unwrap_err().to_string());
    assert!(Diff::new(&early, &late, None).is_err());
    // Without paths, blocks are left.
    let mut blocks = sampled();
    blocks.functions.iter_mut().for_each(|f| f.paths.clear());
    let overlap = Overlap::new(&early, &Flows::of_profile(&blocks), None).unwrap();
    assert!(overlap.paths.is_none() && overlap.blocks.unwrap() > 0.999);
    // Another build of `spin`.
    let mut changed = sampled();
    let spin = changed.functions.iter_mut().find(|f| f.name == "spin").unwrap();
    spin.cfg_hash.0 ^= 1;
    let overlap = Overlap::new(&early, &Flows::of_profile(&changed), None).unwrap();
    assert_eq!(overlap.changed_functions, 1);
    assert!((overlap.paths.unwrap() - 220.0 / 313.0).abs() < 1e-6);
    assert!(
        overlap
            .to_text(&Names::default())
            .contains("1 function with other control flow"),
        "{}",
        overlap.to_text(&Names::default())
    );
}

#[test]
fn diff_lists_what_changed_beyond_chance() {
    let (a, b) = (Flows::of_profile(&sampled()), Flows::of_profile(&other()));
    let diff = Diff::new(&a, &b, None).unwrap();
    insta::assert_snapshot!("diff", diff.to_text(&Names::default()));
    insta::assert_snapshot!("diff_json", Diff::new(&a, &b, Some(1)).unwrap().to_json().unwrap());
    assert!(diff.paths.iter().all(|p| p.change.abs() > 0.05), "{diff:?}");
    // A profile and the truth that it was drawn from.
    let same = Diff::new(&a, &exact(), None).unwrap();
    assert!(same.paths.is_empty() && same.functions.is_empty(), "{same:?}");
    // Exact counts are what they are: any difference is one.
    let mut once_more = exact();
    let spin = once_more.functions.values_mut().find(|f| f.name == "spin").unwrap();
    let added = path(Start::Inside, &[1, 2], End::Exit);
    let one = spin.paths.values().find(|i| i.count == 3.0).copied().unwrap();
    spin.paths.insert(added, one);
    assert_eq!(Diff::new(&exact(), &once_more, None).unwrap().paths.len(), 10);
}

#[test]
fn what_was_never_seen_may_have_been_missed() {
    // Ten observations of one path on one side, the other path alone on the other side.
    let of = |block: u32, seen: f64| {
        let cfg = cfg("two", &[&[1, 2], &[], &[]]);
        let path = path(Start::Entry, &[0, block], End::Exit);
        Flows::of_profile(&profile(1.0, vec![function(&cfg, &[(path, seen)], 1.0)]))
    };
    let few = of(1, 3.0);
    assert!((few.unseen_share() - 0.631_597).abs() < 1e-6);
    assert_eq!(exact().unseen_share(), 0.0);
    let mut bursts = sampled();
    bursts.provenance.bursts = 100;
    assert!((Flows::of_profile(&bursts).unseen_share() - 0.029_513).abs() < 1e-6);
    let both = Diff::new(&few, &of(2, 300.0), None).unwrap();
    assert_eq!(both.paths.len(), 2, "{both:?}");
    let hardly = Diff::new(&of(1, 1.0), &of(1, 1.0), None).unwrap();
    assert!(hardly.paths.is_empty());
    // One observation says next to nothing about a path it did not see.
    let one = Diff::new(&of(1, 1.0), &of(2, 4.0), None).unwrap();
    assert!(one.paths.iter().all(|p| p.blocks[1] != BlockIndex(2)), "{one:?}");
}

fn any_flows() -> impl Strategy<Value = Flows> {
    let count = || prop_oneof![Just(0.0), 0.01f64..1e6];
    (
        prop::collection::vec(count(), 7),
        prop::collection::vec(count(), 2),
        1.0f64..50.0,
    )
        .prop_map(|(parse_counts, spin_counts, scale)| {
            let with = |paths: Vec<(Path, u64)>, counts: Vec<f64>| -> Vec<(Path, f64)> {
                let paths = paths.into_iter().map(|(p, _)| p).zip(counts);
                paths.filter(|p| p.1 > 0.0).collect()
            };
            let parsed = function(&parse(), &with(parse_paths(), parse_counts), scale);
            let spun = function(&spin(), &with(spin_paths(), spin_counts), scale);
            Flows::of_profile(&profile(scale, vec![parsed, spun]))
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn overlap_is_symmetric_and_whole_with_itself(a in any_flows(), b in any_flows()) {
        let overlap = |a, b| Overlap::new(a, b, None).unwrap();
        let (ab, ba) = (overlap(&a, &b), overlap(&b, &a));
        match (ab.paths, ba.paths) {
            (Some(x), Some(y)) => prop_assert!((x - y).abs() < 1e-9 && (-1e-9..=1.0 + 1e-9).contains(&x)),
            (x, y) => prop_assert_eq!((x, y), (None, None)),
        }
        if let Some(own) = overlap(&a, &a).paths {
            prop_assert!((own - 1.0).abs() < 1e-9);
        }
        prop_assert!(overlap(&a, &a).functions.is_empty());
        // Nothing changed, and what changed one way changed back the other way.
        prop_assert!(Diff::new(&a, &a, None).unwrap().paths.is_empty());
        let (there, back) = (Diff::new(&a, &b, None).unwrap(), Diff::new(&b, &a, None).unwrap());
        prop_assert_eq!(there.paths.len(), back.paths.len());
        for (p, q) in there.paths.iter().zip(&back.paths) {
            prop_assert!((p.change.abs() - q.change.abs()).abs() < 1e-12);
        }
    }
}
