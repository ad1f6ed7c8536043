//! Merging profiles.

use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_feedback::merge::{MergeError, merge};
use pleach_feedback::profile::{Anchor, CallTargets, FunctionProfile, Profile, Provenance};

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
        call_targets: vec![],
        paths: Vec::new(),
        coverage: Vec::new(),
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
    assert!(merged.report.dropped.is_empty());
    assert_eq!((merged.report.profiles, merged.report.functions), (2, 2));
}

#[test]
fn one_profile_stays_what_it_is() {
    let mut one = profile(1000.0, vec![function(1, 5, 2, &[2000, 10])]);
    one.functions[0].call_targets = vec![CallTargets {
        call: 0,
        targets: vec![(FunctionGuid(4), 3)],
    }];
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
fn of_different_graphs_the_most_sampled_profiles_win() {
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
    assert_eq!(kept, [(1, 6, 12), (1, 7, 1), (2, 8, 1)]);
    let dropped: Vec<_> = merged
        .report
        .dropped
        .iter()
        .map(|d| (d.id.guid.0, d.cfg_hash.0, d.samples))
        .collect();
    assert_eq!(dropped, [(1, 5, 6)]);
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
fn provenance_adds_up_and_vectors_are_handed_out() {
    let from = |command: &str, engine: &str, vectors: Option<&[u8]>| Profile {
        provenance: Provenance {
            commands: vec![command.into()],
            engines: vec![engine.into()],
            program_cpu_seconds: 1.5,
            own_cpu_seconds: 0.5,
            bursts: 3,
            taken_branches: 30,
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
    assert_eq!(p.commands, ["a", "b", "a"]);
    assert_eq!(p.engines, ["lbr", "step"]);
    assert_eq!(
        (p.program_cpu_seconds, p.own_cpu_seconds, p.bursts, p.taken_branches),
        (4.5, 1.5, 9, 90)
    );
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
