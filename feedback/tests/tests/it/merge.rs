//! Merging profiles.

use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_ball_larus::{End, Path, Start};
use pleach_profile::merge::{MergeError, merge};
use pleach_profile::{
    Anchor, BranchPrediction, CallTargets, Covered, EstimatedPath, Executions, FunctionProfile, Profile, Provenance,
    ValueCounts, ValueSite,
};

fn function(guid: u64, hash: u64, samples: u64, blocks: &[u64]) -> FunctionProfile {
    FunctionProfile {
        id: FunctionId {
            guid: FunctionGuid(guid),
            module: ModuleHash(0),
        },
        cfg_hash: CfgHash(hash),
        name: format!("f{guid}"),
        samples,
        blocks: blocks.to_vec(),
        edges: vec![blocks[0]],
        ..FunctionProfile::default()
    }
}

fn profile(scale: f64, functions: Vec<FunctionProfile>) -> Profile {
    Profile {
        scale,
        functions,
        ..Profile::default()
    }
}

#[test]
fn counts_add_up_by_function_and_graph() {
    let merged = merge(vec![
        (
            profile(10.0, vec![function(1, 5, 2, &[20, 10]), function(2, 6, 1, &[7, 7])]),
            1.0,
        ),
        (profile(30.0, vec![function(1, 5, 6, &[180, 90])]), 2.0),
    ])
    .unwrap();
    let functions = &merged.profile.functions;
    assert_eq!(functions.len(), 2);
    assert_eq!(
        (functions[0].samples, &functions[0].blocks, &functions[0].edges),
        (8, &vec![380, 190], &vec![380])
    );
    assert_eq!(functions[1].blocks, [7, 7]);
    // 2 + 1 samples of 10 executions, 6 of 2 × 30.
    assert!((merged.profile.scale - (3.0 * 10.0 + 6.0 * 60.0) / 9.0).abs() < 1e-12);
    let report = merged.report;
    assert_eq!((report.profiles, report.functions, report.changed), (2, 2, 0));
}

#[test]
fn one_profile_stays_what_it_is() {
    let mut one = profile(1000.0, vec![function(1, 5, 2, &[2000, 10])]);
    one.functions[0].call_targets = vec![CallTargets {
        call: 0,
        targets: vec![(FunctionGuid(4), 3)],
    }];
    one.functions[0].paths = vec![estimated(1, [0.3, 0.1, 0.7, 0.9])];
    one.functions[0].coverage = vec![Covered::Proved, Covered::Unknown];
    assert_eq!(merge(vec![(one.clone(), 1.0)]).unwrap().profile, one);
}

#[test]
fn fractional_weights_keep_flow_conserved() {
    // An entry whose executions split over two edges.
    let with_edges = |blocks: &[u64], edges: &[u64]| FunctionProfile {
        edges: edges.to_vec(),
        ..function(1, 5, 1, blocks)
    };
    let merged = merge(vec![
        (profile(1.0, vec![with_edges(&[3], &[1, 2])]), 0.3),
        (profile(1.0, vec![with_edges(&[5], &[4, 1])]), 0.7),
    ])
    .unwrap()
    .profile;
    assert_eq!(merged.functions[0].blocks, [3 * 3 + 7 * 5]);
    assert_eq!(merged.functions[0].edges, [3 + 7 * 4, 3 * 2 + 7]);
}

#[test]
fn a_function_keeps_the_counts_of_all_its_graphs() {
    let merged = merge(vec![
        (
            profile(1.0, vec![function(1, 5, 2, &[2, 2]), function(2, 8, 1, &[1])]),
            1.0,
        ),
        (
            profile(1.0, vec![function(1, 6, 9, &[9, 9, 9]), function(1, 7, 1, &[1])]),
            1.0,
        ),
        (
            profile(1.0, vec![function(1, 6, 3, &[3, 3, 3]), function(1, 5, 4, &[4, 4])]),
            1.0,
        ),
    ])
    .unwrap();
    let kept: Vec<_> = merged
        .profile
        .functions
        .iter()
        .map(|f| (f.id.guid.0, f.cfg_hash.0, f.samples))
        .collect();
    assert_eq!(kept, [(1, 5, 6), (1, 6, 12), (1, 7, 1), (2, 8, 1)]);
    // One profile has two graphs of function 1, and all profiles together three.
    assert_eq!(merged.report.changed, 1);
}

/// As in a file.
fn stored(path: EstimatedPath) -> EstimatedPath {
    let [count, low, high, effective] =
        [path.count, path.low, path.high, path.effective].map(|value| f64::from(value as f32));
    EstimatedPath {
        count,
        low,
        high,
        effective,
        ..path
    }
}

fn estimated(block: u32, [count, low, high, effective]: [f64; 4]) -> EstimatedPath {
    EstimatedPath {
        path: Path {
            start: Start::Entry,
            blocks: vec![BlockIndex(0), BlockIndex(block)],
            end: End::Exit,
        },
        count,
        low,
        high,
        effective,
    }
}

fn with_paths(paths: &[EstimatedPath]) -> Profile {
    let function = FunctionProfile {
        paths: paths.to_vec(),
        ..function(1, 5, 2, &[20, 10])
    };
    profile(10.0, vec![function])
}

fn merged_paths(parts: Vec<(Profile, f64)>) -> Vec<EstimatedPath> {
    merge(parts).unwrap().profile.functions.remove(0).paths
}

#[test]
fn paths_add_up_and_their_intervals_as_independent_estimates() {
    let merged = merged_paths(vec![
        (
            with_paths(&[
                estimated(2, [100.0, 97.0, 104.0, 10.0]),
                estimated(1, [50.0, 40.0, 70.0, 5.0]),
            ]),
            1.0,
        ),
        (with_paths(&[estimated(1, [200.0, 196.0, 203.0, 20.0])]), 1.0),
    ]);
    // Half-widths of 10 and 4 below, 20 and 3 above; observations of 10 executions each.
    let (low, high) = (250.0 - 116f64.sqrt(), 250.0 + 409f64.sqrt());
    assert_eq!(
        merged,
        [
            stored(estimated(1, [250.0, low, high, 25.0])),
            estimated(2, [100.0, 97.0, 104.0, 10.0]),
        ]
    );
}

#[test]
fn predictions_add_up_and_their_intervals_as_independent_estimates() {
    let prediction = |block, [watched, mispredicted, low]: [f64; 3]| BranchPrediction {
        block: BlockIndex(block),
        watched,
        mispredicted,
        low,
    };
    let with = |predictions: &[BranchPrediction]| {
        let function = FunctionProfile {
            predictions: predictions.to_vec(),
            ..function(1, 5, 2, &[20, 10])
        };
        profile(10.0, vec![function])
    };
    let parts = vec![
        (with(&[prediction(1, [90.0, 30.0, 26.0])]), 2.0),
        (
            with(&[prediction(0, [20.0, 0.0, 0.0]), prediction(1, [10.0, 10.0, 4.0])]),
            1.0,
        ),
    ];
    let merged = merge(parts).unwrap().profile.functions.remove(0).predictions;
    assert_eq!(
        merged,
        [prediction(0, [20.0, 0.0, 0.0]), prediction(1, [190.0, 70.0, 60.0]),]
    );
}

#[test]
fn weights_multiply_paths_and_make_some_observations_count_for_less() {
    let one = with_paths(&[estimated(1, [100.0, 90.0, 110.0, 10.0])]);
    // The same weight for all leaves everything in proportion.
    let both = merged_paths(vec![(one.clone(), 2.0), (one.clone(), 2.0)]);
    assert_eq!(
        both,
        [stored(estimated(
            1,
            [400.0, 400.0 - 800f64.sqrt(), 400.0 + 800f64.sqrt(), 20.0]
        ))]
    );
    let merged = merged_paths(vec![(one.clone(), 3.0), (one.clone(), 1.0)]);
    let high = f64::from((400.0 + 1000f64.sqrt()) as f32);
    assert_eq!((merged[0].count, merged[0].high), (400.0, high));
    // (3·100 + 100)² / (300²/10 + 100²/10).
    assert!((merged[0].effective - 16.0).abs() < 1e-9, "{merged:?}");
    // A fraction has everything counted in a finer unit, paths as blocks.
    let tenths = merge(vec![(one.clone(), 0.3), (one, 0.7)]).unwrap().profile;
    assert_eq!(
        (tenths.functions[0].blocks[0], tenths.functions[0].paths[0].count),
        (200, 1000.0)
    );
}

#[test]
fn an_interval_ends_at_zero() {
    let rare = with_paths(&[estimated(1, [1.0, 0.0, 900.0, 0.0])]);
    let merged = merged_paths(vec![(rare.clone(), 1.0), (rare, 1.0)]);
    let low = f64::from((2.0 - 2f64.sqrt()) as f32);
    assert_eq!((merged[0].low, merged[0].effective), (low, 0.0));
    let wide = |count| with_paths(&[estimated(1, [count, count - 9.0, 99.0, 1.0])]);
    assert_eq!(merged_paths(vec![(wide(9.0), 1.0), (wide(0.0), 1.0)])[0].low, 0.0);
}

#[test]
fn what_varies_in_nothing_adds_nothing_to_the_interval() {
    let sure = with_paths(&[estimated(1, [10.0, 10.0, 10.0, f64::INFINITY])]);
    let both = merged_paths(vec![(sure.clone(), 1.0), (sure.clone(), 2.0)]);
    assert_eq!(both, [estimated(1, [30.0, 30.0, 30.0, f64::INFINITY])]);
    let unsure = with_paths(&[estimated(1, [10.0, 6.0, 15.0, 4.0])]);
    // (10 + 10)² / (10² / 4).
    assert_eq!(
        merged_paths(vec![(sure, 1.0), (unsure, 1.0)]),
        [estimated(1, [20.0, 16.0, 25.0, 16.0])]
    );
}

#[test]
fn what_is_known_most_about_a_block_holds() {
    use Covered::*;
    let with = |coverage: &[Covered]| {
        let function = FunctionProfile {
            coverage: coverage.to_vec(),
            counted: Vec::new(),
            ..function(1, 5, 2, &[20, 10])
        };
        (profile(10.0, vec![function]), 1.0)
    };
    let merged = |parts| merge(parts).unwrap().profile.functions.remove(0).coverage;
    assert_eq!(
        merged(vec![
            with(&[Proved, Unknown]),
            with(&[]),
            with(&[Predicted, ByDominance])
        ]),
        [Proved, ByDominance]
    );
    assert_eq!(
        merged(vec![with(&[]), with(&[PredictedByDominance, Unknown])]),
        [PredictedByDominance, Unknown]
    );
    assert_eq!(merged(vec![with(&[]), with(&[])]), []);
}

#[test]
fn counted_executions_add_up_where_all_recordings_know_them() {
    use Covered::*;
    let with = |coverage: [Covered; 2], counted: &[(u64, Option<u64>)]| {
        let counted = counted.iter();
        let function = FunctionProfile {
            coverage: coverage.to_vec(),
            counted: counted
                .map(|&(at_least, at_most)| Executions { at_least, at_most })
                .collect(),
            ..function(1, 5, 2, &[20, 10])
        };
        (profile(10.0, vec![function]), 1.0)
    };
    let merged = |parts| {
        let function = merge(parts).unwrap().profile.functions.remove(0);
        function
            .counted
            .iter()
            .map(|c| (c.at_least, c.at_most))
            .collect::<Vec<_>>()
    };
    let rare = || with([Hit, Hit], &[(2, Some(9)), (1, None)]);
    assert_eq!(merged(vec![rare(), rare()]), [(4, Some(18)), (2, None)]);
    // What was not executed adds nothing; what was not observed is not bounded.
    assert_eq!(
        merged(vec![with([NotExecuted; 2], &[]), rare()]),
        [(2, Some(9)), (1, None)]
    );
    assert_eq!(merged(vec![rare(), with([Unknown; 2], &[])]), [(2, None), (1, None)]);
    assert_eq!(merged(vec![with([NotExecuted; 2], &[]); 2]), []);
}

#[test]
fn call_targets_add_up() {
    let with = |targets: &[(u64, u64)]| {
        let targets = targets
            .iter()
            .map(|&(guid, count)| (FunctionGuid(guid), count))
            .collect();
        profile(
            1.0,
            vec![FunctionProfile {
                call_targets: vec![CallTargets { call: 3, targets }],
                ..function(1, 5, 1, &[1])
            }],
        )
    };
    let merged = merge(vec![(with(&[(10, 5), (11, 4)]), 1.0), (with(&[(11, 2), (12, 1)]), 1.0)]).unwrap();
    let targets = &merged.profile.functions[0].call_targets;
    let expected = [(11, 6), (10, 5), (12, 1)].map(|(guid, count)| (FunctionGuid(guid), count));
    assert_eq!(
        targets,
        &[CallTargets {
            call: 3,
            targets: expected.to_vec()
        }]
    );
}

#[test]
fn lengths_of_memory_operations_add_up() {
    let with = |bursts: u64, lengths: &[(u64, u64)], others: u64| {
        let operation = ValueCounts {
            site: ValueSite::Length(3),
            bursts,
            values: lengths.to_vec(),
            others,
        };
        let function = FunctionProfile {
            values: vec![operation],
            ..function(1, 5, 1, &[1])
        };
        profile(1.0, vec![function])
    };
    let many: Vec<_> = (100..116).map(|length| (length, 2)).collect();
    let parts = vec![(with(2, &[(8, 5), (16, 4)], 1), 1.0), (with(3, &many, 10), 1.0)];
    let merged = merge(parts).unwrap();
    let [sum] = &merged.profile.functions[0].values[..] else {
        panic!("one operation");
    };
    assert_eq!((sum.site, sum.bursts, sum.total()), (ValueSite::Length(3), 5, 52));
    assert_eq!(sum.values[..3], [(8, 5), (16, 4), (100, 2)]);
    // Leaving out the rarest would make a merge of merges another.
    assert_eq!((sum.values.len(), sum.others), (18, 11));
}

#[test]
fn provenance_adds_up_and_vectors_are_handed_out() {
    let from = |command: &str, engine: &str, vectors: Option<&[u8]>| Profile {
        provenance: Provenance {
            commands: vec![command.into()],
            engines: vec![engine.into()],
            program_cpu_seconds: 1.5,
            own_cpu_seconds: 0.5,
            bursts: 3,
            taken_branches: 30,
            hot_instance_count: 200,
            ..Provenance::default()
        },
        vectors: vectors.map(<[u8]>::to_vec),
        ..Profile::default()
    };
    let parts = [
        from("a", "step", Some(b"x")),
        from("b", "lbr", None),
        from("a", "step", Some(b"y")),
    ];
    let merged = merge(parts.into_iter().map(|p| (p, 1.0)).collect()).unwrap();
    let p = &merged.profile.provenance;
    assert_eq!(p.commands, ["a", "a", "b"]);
    assert_eq!(p.engines, ["lbr", "step"]);
    assert_eq!(
        (p.program_cpu_seconds, p.own_cpu_seconds, p.bursts, p.taken_branches),
        (4.5, 1.5, 9, 90)
    );
    // Their counts add up, with weights, as far as it is known of all of them.
    assert_eq!(p.hot_instance_count, 600);
    let twice = merge(vec![(from("a", "step", None), 2.0), (from("a", "step", None), 1.0)]).unwrap();
    assert_eq!(twice.profile.provenance.hot_instance_count, 600);
    let unknown = merge(vec![(from("a", "step", None), 1.0), (Profile::default(), 1.0)]).unwrap();
    assert_eq!(unknown.profile.provenance.hot_instance_count, 0);
    assert_eq!(merged.vectors, [b"x", b"y"]);
    assert_eq!(merged.profile.vectors, None);
}

#[test]
fn what_cannot_be_merged_is_refused() {
    assert_eq!(merge(vec![]), Err(MergeError::Nothing));
    let late = Profile {
        anchor: Anchor::Late,
        ..Profile::default()
    };
    let error = merge(vec![(Profile::default(), 1.0), (late, 1.0)]).unwrap_err();
    assert!(
        error.to_string().contains("profile 2 was recorded at the late anchor"),
        "{error}"
    );
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12] {
        let error = merge(vec![(Profile::default(), 1.0), (Profile::default(), weight)]).unwrap_err();
        assert!(matches!(error, MergeError::Weight { position: 2, .. }), "{error}");
    }
    let shapes = [function(1, 5, 1, &[1]), function(1, 5, 1, &[1, 1])].map(|f| (profile(1.0, vec![f]), 1.0));
    assert!(matches!(merge(shapes.into()), Err(MergeError::Shape { .. })));
}

#[test]
fn huge_counts_saturate() {
    let huge = || profile(1.0, vec![function(1, 5, u64::MAX, &[u64::MAX])]);
    let merged = merge(vec![(huge(), 3.0), (huge(), 1.0)]).unwrap().profile;
    assert_eq!(
        (merged.functions[0].samples, merged.functions[0].blocks[0]),
        (u64::MAX, u64::MAX)
    );
}
