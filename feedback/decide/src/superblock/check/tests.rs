//! Every rule refuses what it is there for.

use super::*;
use pleach_annotate::cfg::{Call, Terminator};
use pleach_annotate::id::FunctionGuid;
use pleach_annotate::testing::cfg as graph;

fn call(block: u32, name: &str) -> Call {
    Call {
        block: BlockIndex(block),
        callee: Callee::Direct(FunctionGuid::of_name(name)),
        may_not_return: true,
    }
}

/// 0 → 1 | 2 → 3 → 4 | 5; 3 calls a and then b.
fn before() -> Cfg {
    let mut cfg = graph(&[&[1, 2], &[3], &[3], &[4, 5], &[], &[]]);
    cfg.calls = vec![call(3, "a"), call(3, "b")];
    cfg
}

/// The way over 1 has a copy of 3 of its own, block 6.
fn after() -> Cfg {
    let mut cfg = graph(&[&[1, 2], &[6], &[3], &[4, 5], &[], &[], &[4, 5]]);
    cfg.calls = vec![call(3, "a"), call(3, "b"), call(6, "a"), call(6, "b")];
    cfg
}

fn origin() -> Vec<BlockIndex> {
    [0, 1, 2, 3, 4, 5, 3].map(BlockIndex).to_vec()
}

/// What is said of the good example once something is changed.
fn changed(change: impl FnOnce(&mut Cfg, &mut Cfg, &mut Vec<BlockIndex>)) -> Result<(), Violation> {
    let (mut before, mut after, mut origin) = (before(), after(), origin());
    change(&mut before, &mut after, &mut origin);
    check(&before, &after, &origin)
}

#[test]
fn a_copy_is_fine() {
    assert_eq!(changed(|_, _, _| {}), Ok(()));
    assert_eq!(check(&before(), &before(), &origin()[..6]), Ok(()));
    assert_eq!(check(&graph(&[]), &graph(&[]), &[]), Ok(()));
}

#[test]
fn what_could_not_be_reached_may_go() {
    let cfg = graph(&[&[1], &[], &[1]]);
    assert_eq!(check(&cfg, &graph(&[&[1], &[]]), &origin()[..2]), Ok(()));
}

#[test]
fn origins() {
    let missing = changed(|_, _, origin| origin.truncate(6));
    assert_eq!(missing, Err(Violation::Origins { blocks: 7, origins: 6 }));
    let foreign = changed(|_, _, origin| origin[6] = BlockIndex(9));
    assert_eq!(foreign, Err(Violation::NoOrigin { block: 6, origin: 9 }));
}

#[test]
fn the_entry() {
    let elsewhere = changed(|_, _, origin| origin[0] = BlockIndex(1));
    assert_eq!(elsewhere, Err(Violation::Entry { origin: Some(1) }));
    let gone = check(&before(), &graph(&[]), &[]);
    assert_eq!(gone, Err(Violation::Entry { origin: None }));
    let copied = changed(|_, _, origin| origin[2] = BlockIndex(0));
    assert_eq!(copied, Err(Violation::EntryCopied { block: 2 }));
}

#[test]
fn pads() {
    let both = changed(|before, after, _| {
        before.blocks[3].is_eh_pad = true;
        after.blocks[3].is_eh_pad = true;
        after.blocks[6].is_eh_pad = true;
    });
    assert_eq!(both, Err(Violation::PadCopied { block: 6, origin: 3 }));
    let one = changed(|_, after, _| after.blocks[6].is_eh_pad = true);
    assert_eq!(one, Err(Violation::Pad { block: 6, origin: 3 }));
}

#[test]
fn terminators() {
    let other = changed(|_, after, _| after.blocks[6].terminator = Terminator::Switch);
    assert_eq!(other, Err(Violation::Terminator { block: 6, origin: 3 }));
    let fewer = changed(|_, after, _| after.blocks[6].successors.truncate(1));
    let slots = Violation::Slots {
        block: 6,
        origin: 3,
        slots: 1,
        before: 2,
    };
    assert_eq!(fewer, Err(slots));
}

#[test]
fn successors() {
    let successor = |slot, to, before| {
        Err(Violation::Successor {
            block: 6,
            origin: 3,
            slot,
            to,
            before,
        })
    };
    let swapped = changed(|_, after, _| after.blocks[6].successors.swap(0, 1));
    assert_eq!(swapped, successor(0, 5, 4));
    let nowhere = changed(|_, after, _| after.blocks[6].successors[1] = BlockIndex(7));
    assert_eq!(nowhere, successor(1, 7, 5));
}

#[test]
fn calls() {
    let wrong = Err(Violation::Calls { block: 6, origin: 3 });
    assert_eq!(changed(|_, after, _| after.calls.swap(2, 3)), wrong);
    assert_eq!(changed(|_, after, _| after.calls.truncate(3)), wrong);
    assert_eq!(changed(|_, after, _| after.calls.push(call(6, "b"))), wrong);
    assert_eq!(changed(|_, after, _| after.calls[2].callee = Callee::Indirect), wrong);
    assert_eq!(changed(|_, after, _| after.calls[2].may_not_return = false), wrong);
}

/// 1 is executed 60 times, 2 40 times; of 3's executions 70 go to 4.
const BLOCKS: [f64; 6] = [100.0, 60.0, 40.0, 100.0, 70.0, 30.0];
const EDGES: [f64; 6] = [60.0, 40.0, 60.0, 40.0, 70.0, 30.0];
/// After 1 it is 50, after 2 it is 20.
const BLOCKS_AFTER: [f64; 7] = [100.0, 60.0, 40.0, 40.0, 70.0, 30.0, 60.0];
const EDGES_AFTER: [f64; 8] = [60.0, 40.0, 60.0, 40.0, 20.0, 20.0, 50.0, 10.0];

/// What is said of the good counts once some are replaced: (position, count).
fn check_counts(blocks: &[(usize, f64)], edges: &[(usize, f64)]) -> Result<(), Violation> {
    let (mut new_blocks, mut new_edges) = (BLOCKS_AFTER, EDGES_AFTER);
    blocks.iter().for_each(|&(at, count)| new_blocks[at] = count);
    edges.iter().for_each(|&(at, count)| new_edges[at] = count);
    let [old, new] = [counts(&BLOCKS, &EDGES), counts(&new_blocks, &new_edges)];
    check_flow(&before(), &after(), &origin(), old, new)
}

fn counts<'a>(blocks: &'a [f64], edges: &'a [f64]) -> Counts<'a> {
    Counts { blocks, edges }
}

#[test]
fn counts_that_add_up_are_fine() {
    assert_eq!(check_counts(&[], &[]), Ok(()));
    // Halves rounded up.
    assert_eq!(check_counts(&[(3, 41.0), (6, 61.0)], &[(4, 21.0), (7, 11.0)]), Ok(()));
}

#[test]
fn graphs_come_first() {
    let mut wrong = after();
    wrong.blocks[6].successors.swap(0, 1);
    let [old, new] = [counts(&BLOCKS, &EDGES), counts(&BLOCKS_AFTER, &EDGES_AFTER)];
    let found = check_flow(&before(), &wrong, &origin(), old, new);
    assert!(matches!(found, Err(Violation::Successor { .. })));
}

#[test]
fn there_is_a_count_for_each() {
    let all = |blocks, edges, new_blocks, new_edges| {
        let [old, new] = [counts(blocks, edges), counts(new_blocks, new_edges)];
        check_flow(&before(), &after(), &origin(), old, new)
    };
    let missing = |what, things| {
        let counts = things - 1;
        Err(Violation::Counts { what, things, counts })
    };
    assert_eq!(
        all(&BLOCKS[1..], &EDGES, &BLOCKS_AFTER, &EDGES_AFTER),
        missing("blocks before", 6)
    );
    assert_eq!(
        all(&BLOCKS, &EDGES[1..], &BLOCKS_AFTER, &EDGES_AFTER),
        missing("edges before", 6)
    );
    assert_eq!(
        all(&BLOCKS, &EDGES, &BLOCKS_AFTER[1..], &EDGES_AFTER),
        missing("blocks after", 7)
    );
    assert_eq!(
        all(&BLOCKS, &EDGES, &BLOCKS_AFTER, &EDGES_AFTER[1..]),
        missing("edges after", 8)
    );
}

#[test]
fn counts_are_numbers() {
    for wrong in [-1.0, f64::INFINITY] {
        let what = Violation::Count {
            what: "edges after",
            position: 5,
            count: wrong,
        };
        assert_eq!(check_counts(&[], &[(5, wrong)]), Err(what));
    }
    let nan = check_counts(&[(2, f64::NAN)], &[]);
    assert!(matches!(
        nan,
        Err(Violation::Count {
            what: "blocks after",
            position: 2,
            ..
        })
    ));
}

#[test]
fn sums() {
    let block = Violation::BlockSum {
        origin: 3,
        before: 100.0,
        after: 103.0,
    };
    assert_eq!(check_counts(&[(6, 63.0)], &[]), Err(block));
    let edge = Violation::EdgeSum {
        origin: 3,
        slot: 1,
        before: 30.0,
        after: 27.0,
    };
    assert_eq!(check_counts(&[], &[(7, 7.0)]), Err(edge));
}

#[test]
fn copies_are_entered_as_often_as_executed() {
    // Both sums are right, but executions of the copy are said to be the other's.
    let swapped = check_counts(&[(3, 60.0), (6, 40.0)], &[(4, 50.0), (5, 10.0), (6, 20.0), (7, 20.0)]);
    let entered = Violation::Entered {
        block: 3,
        count: 60.0,
        entered: 40.0,
    };
    assert_eq!(swapped, Err(entered));
}

#[test]
fn copies_are_left_as_often_as_executed() {
    let swapped = check_counts(&[], &[(4, 50.0), (5, 10.0), (6, 20.0), (7, 20.0)]);
    let left = Violation::Left {
        block: 3,
        count: 40.0,
        left: 60.0,
    };
    assert_eq!(swapped, Err(left));
}

#[test]
fn a_copy_may_lose_what_its_origin_lost() {
    // A call of 3 does not come back ten times.
    let mut edges = EDGES;
    edges[4] = 60.0;
    let mut blocks = BLOCKS;
    blocks[4] = 60.0;
    let mut new_blocks = BLOCKS_AFTER;
    new_blocks[4] = 60.0;
    let all = |new_edges: [f64; 8]| {
        let [old, new] = [counts(&blocks, &edges), counts(&new_blocks, &new_edges)];
        check_flow(&before(), &after(), &origin(), old, new)
    };
    let mut new_edges = EDGES_AFTER;
    new_edges[6] = 40.0;
    assert_eq!(all(new_edges), Ok(()));
    // One copy loses fifty, and the other makes up for it.
    (new_edges[4], new_edges[6]) = (60.0, 0.0);
    let left = Violation::Left {
        block: 3,
        count: 40.0,
        left: 80.0,
    };
    assert_eq!(all(new_edges), Err(left));
}
