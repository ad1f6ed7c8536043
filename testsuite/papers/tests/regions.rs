//! Regions, matching and equal crediting on the papers' own example, and what over-matching and the remedies do.

use pleach_analysis::regions::profile::RegionProfile;
use pleach_analysis::regions::{DEFAULT_THRESHOLD, Regions};
use pleach_annotate::cfg::{Block, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionGuid, FunctionId, ModuleHash};
use pleach_ball_larus::{End, Path, Start};
use pleach_papers::regions::cold::{Cold, EdgeEvidence};
use pleach_papers::regions::credit::{EqualOptions, Portions, equal};
use pleach_papers::regions::lengths::{Lengths, Visit};
use pleach_papers::regions::overmatching::compare;
use pleach_profile::EstimatedPath;
use pleach_profile::path_profile::{FunctionPaths, PathProfile};
use std::collections::BTreeMap;

/// A graph of blocks A, B, …, each written with its successors.
fn graph(blocks: &[&str]) -> Cfg {
    let block = |text: &&str| Block {
        successors: text[1..].bytes().map(|b| BlockIndex(u32::from(b - b'A'))).collect(),
        terminator: if text.len() == 1 {
            Terminator::Return
        } else {
            Terminator::Branch
        },
        is_eh_pad: false,
        instructions: 2,
        line: 0,
    };
    assert!(blocks.iter().zip(b'A'..).all(|(text, name)| text.as_bytes()[0] == name));
    Cfg {
        id: FunctionId {
            guid: FunctionGuid(7),
            module: ModuleHash(0),
        },
        module: ModuleHash(0),
        name: "f".into(),
        source_file: "f.c".into(),
        blocks: blocks.iter().map(block).collect(),
        calls: Vec::new(),
    }
}

fn blocks(text: &str) -> Vec<BlockIndex> {
    text.bytes().map(|b| BlockIndex(u32::from(b - b'A'))).collect()
}

fn text(blocks: &[BlockIndex]) -> String {
    blocks.iter().map(|b| char::from(b'A' + b.0 as u8)).collect()
}

/// Figure 3.5 of the thesis (figure 3 of the paper), as its text and tables describe it.
fn figure() -> Cfg {
    graph(&[
        "ABF", "BCD", "CE", "DE", "EBP", "FGH", "GI", "HI", "IJK", "JL", "KL", "LMN", "MO", "NO", "OP", "P",
    ])
}

/// Portions of partial paths, and how often each was seen.
fn portions(regions: &Regions, partial: &[(&str, f64)]) -> Portions {
    let mut portions = Portions::new();
    for &(path, weight) in partial {
        for portion in regions.split(&blocks(path), None) {
            *portions.entry(portion).or_default() += weight;
        }
    }
    portions
}

fn credited(regions: &Regions, partial: &[(&str, f64)], options: &EqualOptions) -> Vec<(String, f64)> {
    let mut profile = RegionProfile::default();
    equal(regions, &portions(regions, partial), options, &mut profile);
    profile
        .paths
        .iter()
        .map(|(path, &weight)| (text(&path.blocks), weight))
        .collect()
}

fn expected(paths: &[(&str, f64)]) -> Vec<(String, f64)> {
    paths.iter().map(|&(path, weight)| (path.to_owned(), weight)).collect()
}

#[test]
fn figure_3_5_has_the_regions_that_the_text_says() {
    let regions = Regions::new(&figure(), DEFAULT_THRESHOLD);
    let shown: Vec<_> = (regions.all().iter())
        .map(|r| (text(&r.body), text(&r.exits), r.paths))
        .collect();
    // Region 2 of the figure, with the way from A into the loop; region 1, the loop; and P.
    let expected = [("AFGHIJKLMNO", "BP", 9), ("BCDE", "BP", 2), ("P", "", 1)];
    assert_eq!(
        shown,
        expected.map(|(body, exits, paths)| (body.into(), exits.into(), paths))
    );
}

#[test]
fn a_threshold_stops_growth() {
    let regions = Regions::new(&figure(), 5);
    let shown: Vec<_> = regions.all().iter().map(|r| (text(&r.body), r.paths)).collect();
    // With J, or K, two more paths would end there beside A, AFGI and AFHI.
    let expected = [("AFGHI", 3), ("BCDE", 2), ("J", 1), ("K", 1), ("P", 1), ("LMNO", 2)];
    assert_eq!(shown, expected.map(|(body, paths)| (body.to_owned(), paths)));
}

#[test]
fn table_3_1() {
    let regions = Regions::new(&figure(), DEFAULT_THRESHOLD);
    let partial = [("IJLMO", 100.0), ("BCE", 50.0), ("AFGIJ", 300.0), ("LMO", 200.0)];
    let expected = expected(&[
        ("AFGIJLMO", 250.0),
        ("AFGIJLNO", 150.0),
        ("AFGIKLMO", 50.0),
        ("AFHIJLMO", 100.0),
        ("AFHIKLMO", 50.0),
        ("BCE", 50.0),
    ]);
    assert_eq!(credited(&regions, &partial, &EqualOptions::default()), expected);

    let mut profile = RegionProfile::default();
    let matching = equal(
        &regions,
        &portions(&regions, &partial),
        &EqualOptions::default(),
        &mut profile,
    );
    // (100·2 + 300·2 + 200·4) ÷ 600, and the loop's only partial path.
    let ratios: Vec<f64> = matching.iter().map(|m| m.ratio()).collect();
    assert_eq!(ratios, [1600.0 / 600.0, 1.0]);
    assert_eq!(matching.iter().map(|m| m.unique).collect::<Vec<_>>(), [0.0, 50.0]);
    let hottest: Vec<_> = profile
        .by_flow()
        .into_iter()
        .map(|(p, flow)| (text(&p.blocks), flow))
        .take(2)
        .collect();
    assert_eq!(
        hottest,
        expected_flow(&[("AFGIJLMO", 250.0), ("AFGIJLNO", 150.0)], 650.0)
    );
}

fn expected_flow(paths: &[(&str, f64)], total: f64) -> Vec<(String, f64)> {
    paths
        .iter()
        .map(|&(path, weight)| (path.to_owned(), weight / total))
        .collect()
}

#[test]
fn ball_larus_paths_are_taken_apart_at_regions() {
    let regions = Regions::new(&figure(), DEFAULT_THRESHOLD);
    // The thesis's example of a Ball–Larus path that is no region path.
    let whole = Path {
        start: Start::Entry,
        blocks: blocks("ABCEP"),
        end: End::Exit,
    };
    let parts: Vec<_> = regions.split_path(&whole).iter().map(|p| text(&p.blocks)).collect();
    assert_eq!(parts, ["A", "BCE", "P"]);
    let estimate = |regions: &Regions| PathProfile {
        functions: vec![FunctionPaths {
            id: regions.id,
            cfg_hash: regions.cfg_hash,
            name: "f".into(),
            paths: vec![EstimatedPath {
                path: whole.clone(),
                count: 3.0,
                low: 1.0,
                high: 5.0,
                effective: 3.0,
            }],
            shown: Vec::new(),
            unlisted: 2.0,
        }],
        ..PathProfile::default()
    };
    let projected = RegionProfile::projected(&estimate(&regions), |id, hash| {
        (id == regions.id && hash == regions.cfg_hash).then_some(&regions)
    });
    let weights: Vec<_> = projected.paths.iter().map(|(p, &w)| (text(&p.blocks), w)).collect();
    assert_eq!(weights, expected(&[("A", 3.0), ("BCE", 3.0), ("P", 3.0)]));
    assert_eq!(projected.unplaced, 2.0);
    let unknown = RegionProfile::projected(&estimate(&regions), |_, _| None);
    assert_eq!((unknown.paths.len(), unknown.unplaced), (0, 5.0));
}

/// Three two-way branches one after the other: eight paths.
fn three_branches() -> Regions {
    Regions::new(
        &graph(&["ABC", "BD", "CD", "DEF", "EG", "FG", "GHI", "HJ", "IJ", "J"]),
        DEFAULT_THRESHOLD,
    )
}

fn exact(regions: &Regions, paths: &[(&str, f64)]) -> RegionProfile {
    let mut profile = RegionProfile::default();
    for &(path, count) in paths {
        profile.add(regions, blocks(path), count);
    }
    profile
}

#[test]
fn over_matching_fakes_hot_paths() {
    let regions = three_branches();
    let actual = exact(&regions, &[("ABDEGHJ", 600.0), ("ACDFGIJ", 400.0)]);
    let report = |partial: &[(&str, f64)]| {
        let mut estimate = RegionProfile::default();
        let matching = equal(
            &regions,
            &portions(&regions, partial),
            &EqualOptions::default(),
            &mut estimate,
        );
        let key = |m| (regions.id, regions.cfg_hash, regions.all()[0].entry(), m);
        let matching: BTreeMap<_, _> = matching
            .into_iter()
            .map(|m| ((key(m).0, key(m).1, key(m).2), m))
            .collect();
        compare(&estimate, &actual, &matching, 0.00125)
    };
    // What was executed, seen through one branch at a time.
    let short = report(&[
        ("BD", 600.0),
        ("CD", 400.0),
        ("EG", 600.0),
        ("FG", 400.0),
        ("HJ", 600.0),
        ("IJ", 400.0),
    ]);
    let [region] = &short.regions[..] else {
        panic!("one region")
    };
    assert_eq!(region.ratio, Some(4.0));
    // Six of eight paths were never executed: .2 ± of the weight of each.
    assert!(
        region.false_flow > 0.7 && region.false_flow == short.false_flow,
        "{region:?}"
    );
    assert_eq!((short.hot, region.hot), (2, 2));
    assert_eq!((short.false_hot, region.false_hot), (1, 1));
    let long = report(&[("ABDEGHJ", 600.0), ("ACDFGIJ", 400.0)]);
    assert_eq!(
        (long.regions[0].ratio, long.false_flow, long.false_hot),
        (Some(1.0), 0.0, 0)
    );
}

#[test]
fn cold_edges_take_their_paths_with_them() {
    let regions = three_branches();
    let cold = EqualOptions {
        cold: Some(Cold::default()),
        obvious: false,
    };
    // 45 departures from A, none of them to C: 1 − 0.1^(1/45) is just below 5 %.
    let seen = [("ABD", 45.0), ("DEG", 5.0), ("HJ", 8.0)];
    let with = credited(&regions, &seen, &cold);
    assert!(with.iter().all(|(path, _)| path.starts_with("AB")), "{with:?}");
    // F was never seen either, but neither were enough departures from D.
    assert!(with.iter().any(|(path, _)| path.contains('F')));
    let fewer = [("ABD", 44.0), ("HJ", 8.0)];
    assert!(
        credited(&regions, &fewer, &cold)
            .iter()
            .any(|(path, _)| path.starts_with("AC"))
    );
    let alike = EqualOptions {
        cold: Some(Cold {
            clustering: 2.0,
            ..Cold::default()
        }),
        obvious: false,
    };
    assert!(
        credited(&regions, &seen, &alike)
            .iter()
            .any(|(path, _)| path.starts_with("AC"))
    );
    // What was seen is never lost, whatever is cold around it.
    let lone = credited(&regions, &[("ABD", 100.0), ("CD", 1.0)], &cold);
    assert!(lone.iter().any(|(path, _)| path.starts_with("AC")), "{lone:?}");
    let evidence = EdgeEvidence::default();
    assert_eq!(evidence.upper_share(BlockIndex(0), &Cold::default()), 1.0);
}

#[test]
fn obvious_paths_are_credited_from_their_edges() {
    // Three ways from A to D; each is its path's own.
    let regions = Regions::new(&graph(&["ABCE", "BD", "CD", "D", "ED"]), DEFAULT_THRESHOLD);
    let seen = [("AB", 90.0), ("AC", 10.0), ("D", 120.0)];
    let weights = |obvious| {
        let weights = credited(&regions, &seen, &EqualOptions { cold: None, obvious });
        let rounded = weights.into_iter().map(|(path, w)| (path, (w * 1e6).round() / 1e6));
        rounded.collect::<Vec<_>>()
    };
    assert_eq!(
        weights(false),
        expected(&[("ABD", 130.0), ("ACD", 50.0), ("AED", 40.0)])
    );
    // AB and BD were taken nine times as often as AC and CD, AE and ED never.
    assert_eq!(weights(true), expected(&[("ABD", 198.0), ("ACD", 22.0)]));
    // Beside paths that are not obvious: a quarter of what passed H came over E.
    let regions = Regions::new(
        &graph(&["ABCE", "BD", "CD", "DFG", "EH", "FH", "GH", "H"]),
        DEFAULT_THRESHOLD,
    );
    let seen = [("AE", 10.0), ("AB", 30.0), ("H", 40.0)];
    let mixed = credited(
        &regions,
        &seen,
        &EqualOptions {
            cold: None,
            obvious: true,
        },
    );
    let paths = [
        ("ABDFH", 22.5),
        ("ABDGH", 22.5),
        ("ACDFH", 7.5),
        ("ACDGH", 7.5),
        ("AEH", 20.0),
    ];
    assert_eq!(mixed, expected(&paths));
}

#[test]
fn lengths_before_and_after_splitting() {
    // A caller with a loop B–C, and a callee; two instructions a block.
    let caller = Regions::new(&graph(&["AB", "BC", "CBD", "DE", "E"]), DEFAULT_THRESHOLD);
    let callee = Regions::new(&graph(&["ABC", "BD", "CD", "D"]), DEFAULT_THRESHOLD);
    let visit = |function, activation, block: u8| Visit {
        function,
        activation,
        block: BlockIndex(u32::from(block - b'A')),
    };
    // In the caller: C → B (back edge), call, return, C → D; D goes on to E only.
    let mut vector = vec![visit(&caller, 1, b'C'), visit(&caller, 1, b'B')];
    vector.extend([
        visit(&callee, 2, b'A'),
        visit(&callee, 2, b'B'),
        visit(&callee, 2, b'D'),
    ]);
    vector.extend([visit(&caller, 1, b'C'), visit(&caller, 1, b'D')]);
    let mut lengths = Lengths::default();
    lengths.add(&vector, 2.0, true);
    lengths.add(&[], 1.0, true);
    assert_eq!(lengths.initial.get(), 14.0);
    // B before the first C, and E after D.
    assert_eq!(lengths.extended.get(), 18.0);
    // BCB, ABD, CDE.
    assert_eq!(lengths.functions.get(), 6.0);
    assert_eq!((lengths.functions.weight, lengths.functions.sum), (6.0, 36.0));
    // BC, B, ABD, CDE.
    assert_eq!((lengths.loops.weight, lengths.loops.sum), (8.0, 36.0));
    // BC, B, ABD, C, DE.
    assert_eq!((lengths.regions.weight, lengths.regions.sum), (10.0, 36.0));
    assert_eq!(lengths.spans, [0, 0, 1]);
}
