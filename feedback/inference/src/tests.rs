//! Small graphs whose answer can be seen.

use super::*;
use pleach_annotate::cfg::{Call, Callee, Terminator};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::testing::cfg as graph_of;

const UNKNOWN: f64 = -1.0;

/// Infers with a scale of 1000; [`UNKNOWN`] for unknown values, no evidence on edges unless given.
fn inferred(cfg: &Cfg, blocks: &[f64], edges: &[f64]) -> FlowCounts {
    let evidence = Evidence {
        blocks: blocks.iter().map(|&b| (b != UNKNOWN).then_some(b)).collect(),
        edges: edges.iter().map(|&e| (e != UNKNOWN).then_some(e)).collect(),
        entry: None,
    };
    infer(cfg, &evidence, 1000.0)
}

const DIAMOND: &[&[u32]] = &[&[1, 2], &[3], &[3], &[]];

#[test]
fn consistent_evidence_comes_back() {
    let counts = inferred(&graph_of(DIAMOND), &[10.0, 7.0, 3.0, 10.0], &[7.0, 3.0, 7.0, 3.0]);
    assert_eq!(counts.blocks, [10_000, 7000, 3000, 10_000]);
    assert_eq!(counts.edges, [7000, 3000, 7000, 3000]);
    assert_eq!((counts.entry, counts.exits), (10_000, vec![0, 0, 0, 10_000]));
    assert_eq!(counts.inferred_blocks, [false; 4]);
}

#[test]
fn the_unknown_follows_from_the_known() {
    let counts = inferred(&graph_of(DIAMOND), &[10.0, UNKNOWN, 3.0, UNKNOWN], &[]);
    assert_eq!(counts.blocks, [10_000, 7000, 3000, 10_000]);
    assert_eq!(counts.inferred_blocks, [false, true, false, true]);
    assert_eq!(counts.inferred_edges, [true; 4]);
}

#[test]
fn a_zero_that_was_observed_stays_beside_an_unknown() {
    let counts = inferred(&graph_of(DIAMOND), &[10.0, 0.0, UNKNOWN, 10.0], &[]);
    assert_eq!(counts.blocks, [10_000, 0, 10_000, 10_000]);
}

#[test]
fn equal_alternatives_share() {
    let counts = inferred(&graph_of(DIAMOND), &[10.0, UNKNOWN, UNKNOWN, 10.0], &[]);
    assert_eq!(counts.blocks, [10_000, 5000, 5000, 10_000]);
    // A switch in which one alternative branches again.
    let nested = graph_of(&[&[1, 2, 3], &[4, 5], &[6], &[6], &[6], &[6], &[]]);
    let counts = inferred(&nested, &[12.0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 12.0], &[]);
    assert_eq!(counts.blocks, [12_000, 4000, 4000, 4000, 2000, 2000, 12_000]);
    // Nothing known behind the branch, not even the exits.
    let fan = graph_of(&[&[1, 2], &[], &[]]);
    assert_eq!(inferred(&fan, &[8.0, UNKNOWN, UNKNOWN], &[]).blocks, [8000, 4000, 4000]);
}

#[test]
fn exception_handling_and_traps_are_no_equal_alternatives() {
    let mut cfg = graph_of(&[&[1, 2], &[], &[]]);
    cfg.blocks[0].terminator = Terminator::Invoke;
    cfg.blocks[2].is_eh_pad = true;
    cfg.blocks[2].terminator = Terminator::Resume;
    assert_eq!(inferred(&cfg, &[8.0, UNKNOWN, UNKNOWN], &[]).blocks, [8000, 8000, 0]);
    // Unless they were seen.
    assert_eq!(inferred(&cfg, &[8.0, UNKNOWN, 3.0], &[]).blocks, [8000, 5000, 3000]);
}

#[test]
fn transitions_decide_where_blocks_do_not() {
    // Both sides of two diamonds in a row are unknown blocks; the edges were seen half of the time.
    let counts = inferred(
        &graph_of(DIAMOND),
        &[40.0, UNKNOWN, UNKNOWN, 40.0],
        &[15.0, 5.0, UNKNOWN, UNKNOWN],
    );
    assert!(counts.blocks[1].abs_diff(30_000) < 1500, "{counts:?}");
    assert!(counts.blocks[0].abs_diff(40_000) < 2500, "{counts:?}");
}

#[test]
fn slots_of_one_target_share() {
    let cfg = graph_of(&[&[1, 1, 2, 1], &[2], &[]]);
    let counts = inferred(&cfg, &[10.0, 10.0, 10.0], &[10.0, UNKNOWN, 0.0, UNKNOWN, 10.0]);
    assert_eq!(counts.edges, [3334, 3333, 0, 3333, 10_000]);
    assert_eq!(counts.inferred_edges, [false, false, false, false, false]);
}

#[test]
fn without_positive_evidence_everything_is_zero() {
    let cfg = graph_of(DIAMOND);
    for counts in [inferred(&cfg, &[], &[]), inferred(&cfg, &[0.0, 0.0, UNKNOWN, 0.0], &[])] {
        assert_eq!(counts.blocks, [0; 4]);
        assert_eq!(counts.edges, [0; 4]);
    }
    assert_eq!(infer(&graph_of(&[]), &Evidence::default(), 1.0), FlowCounts::default());
}

#[test]
fn a_single_block_is_entered_and_left() {
    let counts = inferred(&graph_of(&[&[]]), &[7.0], &[]);
    assert_eq!(
        (counts.blocks, counts.entry, counts.exits),
        (vec![7000], 7000, vec![7000])
    );
}

#[test]
fn an_endless_loop_keeps_its_flow() {
    // while (true) { if (…) … }
    let counts = inferred(
        &graph_of(&[&[1], &[2, 3], &[1], &[1]]),
        &[1.0, 900.0, 600.0, 300.0],
        &[],
    );
    // The last round of the loop was begun, but not finished.
    assert!(counts.blocks[1].abs_diff(900_000) <= 1000, "{counts:?}");
    assert_eq!(counts.entry, 1000);
    assert_eq!(counts.exits, [0, 1000, 0, 0]);
}

#[test]
fn a_loop_whose_way_in_was_never_sampled_is_connected_to_the_entry() {
    let cfg = graph_of(&[&[1, 4], &[2], &[1, 3], &[4], &[]]);
    let counts = inferred(
        &cfg,
        &[0.0, 500.0, 500.0, 0.0, 0.0],
        &[0.0, 0.0, 500.0, 500.0, 0.0, 0.0],
    );
    assert!(counts.entry >= 500, "{counts:?}");
    assert!(counts.edges[0] >= 500 && counts.edges[4] >= 500, "{counts:?}");
    assert!(counts.blocks[1].abs_diff(500_000) < 2000, "{counts:?}");
}

#[test]
fn a_loop_is_left_by_a_return_where_there_is_one_however_far() {
    // 1 loops, calls what may not come back, and may trap in 2; the return is behind ten blocks that were never
    // sampled.
    let successors: Vec<Vec<u32>> = (0..14)
        .map(|block| match block {
            0 => vec![1],
            1 => vec![1, 2, 3],
            2 | 13 => vec![],
            _ => vec![block + 1],
        })
        .collect();
    let mut cfg = graph_of(&successors.iter().map(Vec::as_slice).collect::<Vec<_>>());
    cfg.blocks[2].terminator = Terminator::Unreachable;
    cfg.calls = vec![Call {
        block: BlockIndex(1),
        callee: Callee::Indirect,
        may_not_return: true,
    }];
    let mut blocks = vec![0.0; 14];
    blocks[1] = 500.0;
    let mut edges = vec![0.0; cfg.edge_count()];
    edges[1] = 500.0;
    let counts = inferred(&cfg, &blocks, &edges);
    assert_eq!((counts.exits[1], counts.exits[2]), (0, 0), "{counts:?}");
    assert!(counts.exits[13] >= 500, "{counts:?}");
}

#[test]
fn blocks_that_cannot_be_reached_get_nothing() {
    let counts = inferred(&graph_of(&[&[2], &[2], &[]]), &[5.0, 9.0, 5.0], &[]);
    assert_eq!(counts.blocks, [5000, 0, 5000]);
    assert_eq!(counts.edges, [5000, 0]);
}

#[test]
fn a_call_that_exits_leaks_only_on_strong_evidence() {
    let chain: Vec<Vec<u32>> = (1..=16)
        .map(|next| if next < 16 { vec![next] } else { vec![] })
        .collect();
    let mut cfg = graph_of(&chain.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let call = |block| Call {
        block: BlockIndex(block),
        callee: Callee::Indirect,
        may_not_return: true,
    };
    cfg.calls = vec![call(0), call(1), call(2)];
    let mut noisy = [UNKNOWN; 16];
    noisy[..4].copy_from_slice(&[100.0, 95.0, 104.0, 99.0]);
    let noise = inferred(&cfg, &noisy, &[]);
    assert_eq!(noise.exits[..3], [0; 3], "{noise:?}");
    let mut broken_off = [0.0; 16];
    broken_off[..3].copy_from_slice(&[1000.0; 3]);
    let leak = inferred(&cfg, &broken_off, &[]);
    // The leak costs something: counts before it give way a little too.
    assert!(leak.exits[2] > 200_000, "{leak:?}");
    assert_eq!(leak.blocks[2], leak.edges[2] + leak.exits[2]);
}

#[test]
fn an_entry_block_with_predecessors_is_accepted() {
    let counts = inferred(&graph_of(&[&[0, 1], &[]]), &[10.0, 2.0], &[8.0, 2.0]);
    assert_eq!((counts.blocks, counts.entry), (vec![10_000, 2000], 2000));
}

#[test]
fn senseless_values_count_as_unknown() {
    let cfg = graph_of(DIAMOND);
    let evidence = Evidence {
        blocks: vec![Some(10.0), Some(f64::NAN), Some(-4.0), Some(f64::INFINITY), Some(1.0)],
        edges: vec![Some(f64::NAN)],
        entry: Some(f64::NEG_INFINITY),
    };
    let counts = infer(&cfg, &evidence, f64::NAN);
    assert_eq!(counts.blocks[0], counts.blocks[1] + counts.blocks[2]);
    assert!(counts.inferred_blocks[1] && counts.inferred_blocks[2] && !counts.inferred_blocks[3]);
}

#[test]
fn huge_counts_neither_overflow_nor_lose_conservation() {
    let counts = infer(
        &graph_of(DIAMOND),
        &Evidence {
            blocks: vec![Some(9e14), Some(5e14), Some(4e14), None],
            ..Evidence::default()
        },
        1e4,
    );
    assert_eq!(counts.blocks[0], counts.blocks[1] + counts.blocks[2]);
    assert!((counts.blocks[0] as f64 / 9e18 - 1.0).abs() < 1e-3, "{counts:?}");
}
