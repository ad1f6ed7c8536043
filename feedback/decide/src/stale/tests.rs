use super::*;
use crate::weights::{FunctionTreatment, function_treatment};
use pleach_annotate::cfg::{Call, Callee};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid};
use pleach_annotate::testing;
use pleach_ball_larus::NumberingOptions;
use pleach_ball_larus::graph::PathGraph;
use pleach_inference::{Evidence, infer};
use pleach_profile::{BranchPrediction, CallTargets, EstimatedPath};
use proptest::prelude::*;

const SCALE: f64 = 1000.0;

/// A graph with blocks of these sizes and calls `(block, callee)`.
fn cfg(successors: &[&[u32]], instructions: &[u32], calls: &[(u32, u64)]) -> Cfg {
    let mut cfg = testing::cfg(successors);
    for (block, &count) in cfg.blocks.iter_mut().zip(instructions) {
        block.instructions = count;
    }
    let call = |&(block, guid): &(u32, u64)| Call {
        block: BlockIndex(block),
        callee: Callee::Direct(FunctionGuid(guid)),
        may_not_return: false,
    };
    cfg.calls = calls.iter().map(call).collect();
    cfg
}

/// Counts of a graph that follow from the entries of some blocks, in samples.
fn recorded(cfg: &Cfg, samples: &[Option<f64>]) -> FunctionProfile {
    let evidence = Evidence {
        blocks: samples.to_vec(),
        ..Evidence::default()
    };
    let counts = infer(cfg, &evidence, SCALE);
    FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        graph: Some(Box::new(cfg.clone())),
        samples: samples.iter().flatten().sum::<f64>() as u64,
        blocks: counts.blocks,
        edges: counts.edges,
        ..FunctionProfile::default()
    }
}

/// 0 calls 11 and branches to 1 (calls 12) or 2, which join in 3 (a loop with 4), then 5.
fn old() -> Cfg {
    cfg(
        &[&[1, 2], &[3], &[3], &[4, 5], &[3], &[]],
        &[5, 9, 2, 3, 20, 4],
        &[(0, 11), (1, 12), (4, 13), (5, 14)],
    )
}

fn profile() -> FunctionProfile {
    let samples = [10.0, 9.0, 1.0, 110.0, 100.0, 10.0];
    recorded(&old(), &samples.map(Some))
}

#[test]
fn an_inserted_test_leaves_the_counts_around_it() {
    // A new test in front of 3 that returns early: 3 is the test, 4 the return, and what follows has moved by two.
    let new = cfg(
        &[&[1, 2], &[3], &[3], &[4, 5], &[], &[6, 7], &[5], &[]],
        &[5, 9, 2, 4, 1, 3, 20, 4],
        &[(0, 11), (1, 12), (6, 13), (7, 14)],
    );
    let found = salvage(&profile(), &new, MatchKind::ChangedGraph, SCALE).expect("salvaged");
    assert_eq!(found.matched_blocks, 6);
    assert_eq!(found.matched_flow, 1.0);
    let counts = &found.profile.blocks;
    assert_eq!([counts[0], counts[1], counts[2]], [10_000, 9_000, 1_000]);
    assert_eq!([counts[5], counts[6]], [110_000, 100_000]);
    // Nothing tells where the new test leads: it gets no weights.
    let bases = new.edge_bases();
    assert_eq!(found.profile.edges[bases[3] as usize..][..2], [0, 0]);
    assert_eq!(found.profile.edges[bases[5] as usize..][..2], [100_000, 10_000]);
    assert_eq!(found.profile.check_shape(&new), Ok(()));
}

#[test]
fn nothing_changes_where_nothing_changed() {
    let record = profile();
    let found = salvage(&record, &old(), MatchKind::ChangedGraph, SCALE)
        .expect("salvaged")
        .profile;
    assert_eq!((&found.blocks, &found.edges), (&record.blocks, &record.edges));
}

#[test]
fn removed_blocks_take_their_share_with_them() {
    // 1 is gone.
    let new = cfg(
        &[&[1, 2], &[2], &[3, 4], &[2], &[]],
        &[5, 2, 3, 20, 4],
        &[(0, 11), (3, 13), (4, 14)],
    );
    let old = profile();
    let found = salvage(&old, &new, MatchKind::ChangedGraph, SCALE).expect("salvaged");
    assert_eq!(found.matched_blocks, 5);
    let share = 1.0 - 9.0 / 240.0;
    assert!((found.matched_flow - share).abs() < 1e-9);
    assert_eq!(found.profile.samples, (old.samples as f64 * share).round() as u64);
    assert_eq!(found.profile.blocks[3], 100_000);
}

#[test]
fn another_function_is_not_taken_for_an_older_version() {
    let new = cfg(
        &[&[1, 2, 3], &[4], &[4], &[4], &[]],
        &[50, 1, 1, 1, 1],
        &[(0, 77), (0, 78)],
    );
    assert_eq!(salvage(&profile(), &new, MatchKind::ChangedGraph, SCALE), None);
    let without_graph = FunctionProfile {
        graph: None,
        ..profile()
    };
    assert_eq!(salvage(&without_graph, &old(), MatchKind::ChangedGraph, SCALE), None);
}

#[test]
fn targets_and_predictions_move_with_their_blocks() {
    let mut before = old();
    before.calls[2].callee = Callee::Indirect;
    let mut record = recorded(&before, &[10.0, 9.0, 1.0, 110.0, 100.0, 10.0].map(Some));
    record.call_targets = vec![CallTargets {
        call: 2,
        targets: vec![(FunctionGuid(5), 100_000)],
    }];
    let prediction = |block| BranchPrediction {
        block: BlockIndex(block),
        watched: 9.0,
        mispredicted: 4.0,
        low: 3.0,
    };
    record.predictions = vec![prediction(0), prediction(3)];
    // A block in front of the loop: the first branch is as before, the one behind the new block, too.
    let mut new = cfg(
        &[&[1, 2], &[3], &[3], &[4], &[5, 6], &[4], &[]],
        &[5, 9, 2, 7, 3, 20, 4],
        &[(0, 11), (1, 12), (3, 15), (5, 13), (6, 14)],
    );
    new.calls[3].callee = Callee::Indirect;
    let found = salvage(&record, &new, MatchKind::ChangedGraph, SCALE)
        .expect("salvaged")
        .profile;
    assert_eq!(found.call_targets[0].call, 3);
    let blocks: Vec<u32> = found.predictions.iter().map(|p| p.block.0).collect();
    assert_eq!(blocks, [0, 4]);
}

#[test]
fn what_did_not_run_is_unknown_where_it_changed() {
    use Covered::{NotExecuted, Proved, Unknown};
    let mut record = profile();
    record.coverage = vec![Proved, Proved, NotExecuted, Proved, Proved, NotExecuted];
    let mut new = old();
    new.blocks[5].instructions = 40;
    let found = salvage(&record, &new, MatchKind::ChangedGraph, SCALE).expect("salvaged");
    assert_eq!(
        found.profile.coverage,
        [Proved, Proved, NotExecuted, Proved, Proved, Unknown]
    );
}

#[test]
fn a_function_without_samples_is_unknown_except_that_it_was_called() {
    let never = FunctionProfile {
        coverage: vec![Covered::NotExecuted; 3],
        ..FunctionProfile::default()
    };
    assert!(
        without_samples(std::slice::from_ref(&never), &old())
            .coverage
            .is_empty()
    );
    let rarely = FunctionProfile {
        coverage: vec![Covered::Hit; 2],
        ..FunctionProfile::default()
    };
    let known = without_samples(&[never, rarely], &old());
    assert_eq!(known.coverage[0], Covered::Hit);
    assert_eq!(known.check_shape(&old()), Ok(()));
}

#[test]
fn an_older_version_proves_nothing() {
    let exact = RecordingEvidence {
        scale: 1.0,
        samples: 1_000_000,
        bursts: 1_000_000,
        cpu_seconds: 1.0,
        exact: true,
        hot_instance_count: 0,
    };
    let never = without_samples(&[], &old());
    assert_eq!(
        function_treatment(&old(), &never, &exact),
        FunctionTreatment::Cold { is_proved: true }
    );
    // Placed apart, but not optimised for size.
    let unlikely = FunctionTreatment::Unlikely { is_proved: false };
    assert_eq!(function_treatment(&old(), &never, &evidence(&exact)), unlikely);
}

#[test]
fn a_new_name_is_found_by_likeness_if_nothing_else_is_like_it() {
    let (old, mut new) = (old(), old());
    new.name = "g".into();
    new.blocks[2].instructions += 1;
    let other = cfg(
        &[&[1], &[1, 2], &[3, 4], &[4], &[]],
        &[7, 30, 1, 1, 1],
        &[(0, 40), (1, 41), (2, 42)],
    );
    assert_eq!(rename::function_similarity(&old, &old), 1.0);
    let (alike, unlike) = (
        rename::function_similarity(&old, &new),
        rename::function_similarity(&old, &other),
    );
    assert!(alike > 0.75 && unlike < 0.5, "{alike} {unlike}");
    assert_eq!(rename::renamed(&[&other, &old], &[&new]), [Some(1)]);
    assert_eq!(rename::renamed(&[&other], &[&new]), [None]);
    // Two recorded functions that are equally like it.
    assert_eq!(rename::renamed(&[&old, &old], &[&new]), [None]);
    assert!(rename::is_moved(&old, &new) && !rename::is_moved(&old, &other));
    let tiny = cfg(&[&[]], &[3], &[]);
    assert!(!rename::is_moved(&tiny, &tiny));
    // Many at a time, as where a namespace has another name: too many pairs to compare, and other callees.
    let many: Vec<Cfg> = (0..200)
        .map(|at| {
            let mut cfg = old.clone();
            cfg.blocks[0].instructions = at;
            cfg
        })
        .collect();
    let of_new_names: Vec<Cfg> = many
        .iter()
        .map(|cfg| {
            let mut cfg = cfg.clone();
            for call in &mut cfg.calls {
                call.callee = Callee::Direct(FunctionGuid::of_name("another"));
            }
            cfg
        })
        .collect();
    let found = rename::renamed(&Vec::from_iter(&many), &Vec::from_iter(of_new_names.iter().rev()));
    assert_eq!(found, (0..200).rev().map(Some).collect::<Vec<_>>());
    assert!(rename::is_renamed(&old, &old) && !rename::is_renamed(&old, &new));
}

fn any_cfg() -> impl Strategy<Value = Cfg> {
    let block = |count: u32| (prop::collection::vec(0..count, 0..4), 1u32..6);
    (1u32..14).prop_flat_map(move |count| {
        let blocks = prop::collection::vec(block(count), count as usize);
        let calls = prop::collection::vec((0..count, 1u64..5), 0..6);
        (blocks, calls).prop_map(|(blocks, mut calls)| {
            calls.sort_unstable();
            let successors: Vec<&[u32]> = blocks.iter().map(|(to, _)| to.as_slice()).collect();
            let sizes: Vec<u32> = blocks.iter().map(|&(_, size)| size).collect();
            cfg(&successors, &sizes, &calls)
        })
    })
}

/// All paths of a graph, executed so often each in turn.
fn paths(cfg: &Cfg, counts: &[f64]) -> Vec<EstimatedPath> {
    let graph = PathGraph::new(cfg, &NumberingOptions::default());
    let numbered = (0..graph.numbers()).filter_map(|number| graph.path(number));
    numbered
        .zip(counts.iter().cycle())
        .map(|(path, &count)| EstimatedPath {
            path,
            count,
            low: count * 0.9,
            high: count * 1.1,
            effective: 50.0,
        })
        .collect()
}

#[test]
fn paths_are_kept_where_hardly_any_led_through_what_changed() {
    let through = |path: &EstimatedPath, block| path.path.blocks.contains(&BlockIndex(block));
    let with_rare = |rare: f64| {
        let mut record = profile();
        record.paths = paths(&old(), &[100.0]);
        for path in record.paths.iter_mut().filter(|path| through(path, 2)) {
            path.count = rare;
        }
        record
    };
    // Block 2 is another now, behind a block that is new.
    let new = cfg(
        &[&[1, 2], &[4], &[3], &[4], &[5, 6], &[4], &[]],
        &[5, 9, 1, 33, 3, 20, 4],
        &[(0, 11), (1, 12), (5, 13), (6, 14)],
    );
    let found = salvage(&with_rare(0.5), &new, MatchKind::ChangedGraph, SCALE).expect("salvaged");
    let graph = PathGraph::new(&new, &NumberingOptions::default());
    let record = with_rare(0.5);
    let kept = record.paths.iter().filter(|path| !through(path, 2)).count();
    assert_eq!(found.profile.paths.len(), kept);
    assert!(
        found
            .profile
            .paths
            .iter()
            .all(|path| graph.number_of(&path.path).is_some())
    );
    let older = found.older_paths.expect("paths");
    assert_eq!(older.paths(&record.paths), found.profile.paths);
    let counts = older.counts(&record.blocks);
    assert_eq!(
        (counts[1], counts[3], counts[4]),
        (Some(record.blocks[1]), None, Some(record.blocks[3]))
    );
    // A tenth of the executions is too much.
    let found = salvage(&with_rare(30.0), &new, MatchKind::ChangedGraph, SCALE).expect("salvaged");
    assert!(found.older_paths.is_none() && found.profile.paths.is_empty());
}

proptest! {
    #[test]
    fn a_graph_matches_itself(cfg in any_cfg()) {
        let graph = Graph::new(&cfg);
        let matched = BlockMatch::find(&graph, &graph).expect("small");
        prop_assert_eq!(matched.len(), cfg.blocks.len());
        prop_assert!(matched.pairs().all(|(old, new)| old == new));
    }

    #[test]
    fn a_salvaged_profile_fits_its_graph(old in any_cfg(), new in any_cfg(), samples in prop::collection::vec(0.0..90.0, 14)) {
        let samples: Vec<Option<f64>> = samples.into_iter().map(Some).collect();
        let mut record = recorded(&old, &samples[..old.blocks.len()]);
        record.coverage = old.blocks.iter().map(|_| Covered::Proved).collect();
        record.cfg_hash = CfgHash(7);
        record.paths = paths(&old, &[1000.0, 1.0, 1.0, 1000.0, 0.1]);
        if let Some(found) = salvage(&record, &new, MatchKind::ChangedGraph, SCALE) {
            prop_assert_eq!(found.profile.check_shape(&new), Ok(()));
            prop_assert_eq!(found.profile.cfg_hash, new.hash());
            prop_assert!((0.5..=1.0 + 1e-9).contains(&found.matched_flow));
            prop_assert!(found.matched_blocks <= old.blocks.len().min(new.blocks.len()));
            let graph = PathGraph::new(&new, &NumberingOptions::default());
            prop_assert!(found.profile.paths.iter().all(|path| graph.number_of(&path.path).is_some()));
            prop_assert_eq!(found.older_paths.is_none(), found.profile.paths.is_empty());
        }
        let similarity = rename::function_similarity(&old, &new);
        prop_assert!((0.0..=1.0).contains(&similarity));
    }
}
