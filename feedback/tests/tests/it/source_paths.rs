//! Paths as source lines, windows of paths, and paths across calls.

use pleach_feedback_tests::counts_support;

use counts_support::{cfg, parse, parse_paths, path, spin};
use pleach_annotate::cfg::{Call, Callee, Cfg};
use pleach_annotate::id::{BlockIndex, FunctionGuid};
use pleach_ball_larus::{End, Path, Start};
use pleach_profile::{
    CallCrossingPath, CallTargets, Caller, EstimatedPath, FunctionProfile, PathWindow, Profile, Provenance,
};
use pleach_report::estimated::EstimatedPaths;
use pleach_report::functions::{Report, ReportOptions};
use pleach_report::names::Names;
use pleach_report::paths::PathsOptions;
use pleach_report::sequences::{CallCrossingPaths, Windows};
use pleach_report::source_paths::SourceNames;

/// `parse` with lines, a direct and an indirect call; blocks 2 and 4 begin on no line of their own.
fn parse_with_lines() -> Cfg {
    let mut cfg = parse();
    for (block, line) in cfg.blocks.iter_mut().zip([120, 131, 131, 135, 0, 140]) {
        block.line = line;
    }
    let call = |block, callee| Call {
        block: BlockIndex(block),
        callee,
        may_not_return: true,
    };
    cfg.calls = vec![
        call(1, Callee::Direct(FunctionGuid::of_name("_Z10next_tokenPKc"))),
        call(3, Callee::Indirect),
        call(3, Callee::Direct(FunctionGuid::of_name("unknown"))),
        call(5, Callee::Memory),
    ];
    cfg
}

fn sampled(cfg: &Cfg, paths: &[(Path, u64)]) -> FunctionProfile {
    let mut blocks = vec![0; cfg.blocks.len()];
    for (path, count) in paths {
        path.blocks.iter().for_each(|block| blocks[block.index()] += count);
    }
    let mut paths: Vec<EstimatedPath> = paths
        .iter()
        .map(|(path, count)| EstimatedPath {
            path: path.clone(),
            count: *count as f64,
            low: *count as f64 / 2.0,
            high: *count as f64 * 2.0,
            effective: 10.0,
        })
        .collect();
    paths.sort_by(EstimatedPath::hottest_first);
    FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        graph: Some(Box::new(cfg.clone())),
        samples: blocks.iter().sum(),
        edges: vec![0; cfg.edge_count()],
        blocks,
        paths,
        ..FunctionProfile::default()
    }
}

fn profile() -> Profile {
    let (parse, mut leaf) = (parse_with_lines(), cfg("leaf", &[&[]]));
    leaf.blocks[0].line = 9;
    let mut parsed = sampled(&parse, &parse_paths());
    parsed.call_targets = vec![CallTargets {
        call: 1,
        targets: vec![(leaf.id.guid, 5)],
    }];
    let (back, exit) = (parse_paths()[3].0.clone(), parse_paths()[5].0.clone());
    parsed.windows = vec![
        window(&[&back, &back], 150.0),
        window(&[&back, &exit], 9.0),
        window(&[&back, &back, &exit], 8.0),
    ];
    let mut called = sampled(&leaf, &[(path(Start::Entry, &[0], End::Exit), 20)]);
    called.called = vec![CallCrossingPath {
        caller: Caller {
            id: parse.id,
            cfg_hash: parse.hash(),
            before: vec![BlockIndex(1), BlockIndex(3)],
        },
        path: path(Start::Entry, &[0], End::Exit),
        count: 15.0,
    }];
    // Sampled, but no burst shows a path of it.
    let mut cut = sampled(&spin(), &[]);
    cut.samples = 3;
    Profile {
        scale: 1.0,
        provenance: Provenance {
            engines: vec!["run-ahead".into()],
            ..Provenance::default()
        },
        functions: vec![parsed, called, cut],
        ..Profile::default()
    }
}

fn window(paths: &[&Path], count: f64) -> PathWindow {
    PathWindow {
        paths: paths.iter().map(|path| (*path).clone()).collect(),
        count,
    }
}

fn sources() -> SourceNames {
    let mut sources = SourceNames::default();
    for name in ["_Z10next_tokenPKc", "leaf", "parse"] {
        sources.functions.insert(FunctionGuid::of_name(name), name.to_owned());
    }
    let parse = parse_with_lines();
    sources.files.insert((parse.id, parse.hash()), "parser.c".to_owned());
    sources
}

#[test]
fn paths_are_lines_and_calls() {
    let profile = profile();
    let paths = EstimatedPaths::new(&profile, &PathsOptions::default()).unwrap();
    insta::assert_snapshot!("source_paths", paths.to_source_text(&Names::default(), &sources()));
    let report = Report::new(&profile, &ReportOptions::default(), &|_, _| None).unwrap();
    insta::assert_snapshot!("source_report", report.to_source_text(&Names::default(), &sources()));
}

#[test]
fn shares_add_up() {
    let profile = profile();
    let options = PathsOptions {
        top: Some(2),
        ..PathsOptions::default()
    };
    let paths = EstimatedPaths::new(&profile, &options).unwrap();
    assert_eq!(paths.others, 6);
    let text = paths.to_source_text(&Names::default(), &sources());
    let shares = text
        .lines()
        .filter_map(|line| line.trim_start().split(" %").next()?.parse::<f64>().ok());
    let sum: f64 = shares.collect::<Vec<_>>()[..3].iter().sum();
    assert!((sum - 100.0).abs() < 0.02, "{sum} in\n{text}");
    let row = text.lines().find(|line| line.ends_with("6 other paths"));
    assert!(row.is_some_and(|row| row.contains("100.00 %")), "{text}");
}

#[test]
fn without_lines_there_are_block_numbers() {
    let mut profile = profile();
    for function in &mut profile.functions {
        function.graph = None;
    }
    let paths = EstimatedPaths::new(&profile, &PathsOptions::default()).unwrap();
    let names = Names::default();
    assert_eq!(paths.to_source_text(&names, &sources()), paths.to_text(&names));
    assert!(paths.to_text(&names).contains("1→2→4 ↺1"));
}

#[test]
fn windows_of_consecutive_paths() {
    let profile = profile();
    let names = Names::default();
    let windows = |length, top| Windows::new(&profile, length, None, top).unwrap();
    insta::assert_snapshot!("windows", windows(2, Some(1)).to_text(&names, Some(&sources())));
    insta::assert_snapshot!("windows_blocks", windows(3, None).to_text(&names, None));
    insta::assert_snapshot!("windows_json", windows(3, None).to_json().unwrap());
    assert_eq!(windows(4, None).to_json().unwrap(), "[\n]\n");
    let all = windows(2, Some(1));
    let listed: f64 = all.rows.iter().map(|row| row.window.count).sum();
    assert!((listed + all.others.1 + all.without_window - all.flow).abs() < 1e-9);
    assert!(Windows::new(&profile, 2, Some("pars"), None).is_err());
}

#[test]
fn paths_across_calls() {
    let profile = profile();
    let names = Names::default();
    let called = CallCrossingPaths::new(&profile, None, None).unwrap();
    insta::assert_snapshot!("called", called.to_text(&names, Some(&sources())));
    insta::assert_snapshot!("called_json", called.to_json().unwrap());
    let text = called.to_text(&names, None);
    assert!(text.contains("1→3") && text.contains("▸0 ■"), "{text}");
    let listed: f64 = called.rows.iter().map(|row| row.called.count).sum();
    assert!((listed + called.others.1 + called.unknown - called.flow).abs() < 1e-9);
}
