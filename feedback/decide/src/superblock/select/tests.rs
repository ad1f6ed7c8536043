use super::*;
use crate::superblock::Marker;
use crate::superblock::history::{PathHistory, RecordedPaths};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::testing::cfg;
use pleach_ball_larus::{End, Path, Start};
use pleach_profile::{EstimatedPath, PathWindow};

fn history(paths: &[EstimatedPath], windows: &[PathWindow]) -> PathHistory {
    let recorded = RecordedPaths {
        paths,
        windows,
        called: &[],
    };
    PathHistory::new(recorded, |_| true, |_, _| None)
}

fn graph(successors: &[&[u32]]) -> Cfg {
    let mut cfg = cfg(successors);
    cfg.blocks.iter_mut().for_each(|block| block.instructions = 4);
    cfg
}

/// Two diamonds in a row; the second goes the way of the first in a share of the executions of either way. The sides of
/// the first are even up to `noise`, those of the second up to its opposite.
fn diamonds(agreeing: f64, noise: f64) -> Formation {
    let cfg = graph(&[&[1, 2], &[3], &[3], &[4, 5], &[6], &[6], &[]]);
    let path = |blocks: [u32; 5], count: f64| EstimatedPath {
        path: Path {
            start: Start::Entry,
            blocks: blocks.map(BlockIndex).to_vec(),
            end: End::Exit,
        },
        count,
        low: count,
        high: count,
        effective: count,
    };
    let paths = [
        path([0, 1, 3, 4, 6], 1000.0 * agreeing),
        path([0, 1, 3, 5, 6], 1000.0 * (1.0 - agreeing)),
        path([0, 2, 3, 5, 6], 1000.0 * agreeing),
        path([0, 2, 3, 4, 6], 1000.0 * (1.0 - agreeing)),
    ];
    let markers: Vec<_> = (0..7)
        .map(|b| {
            vec![Marker {
                instance: 0,
                block: BlockIndex(b),
            }]
        })
        .collect();
    let (less, more) = (1000.0 - noise, 1000.0 + noise);
    let subject = Subject {
        cfg: &cfg,
        counts: &[2000.0, less, more, 2000.0, more, less, 2000.0],
        probabilities: &[
            less / 2000.0,
            more / 2000.0,
            1.0,
            1.0,
            more / 2000.0,
            less / 2000.0,
            1.0,
            1.0,
        ],
        clonable: &[true; 7],
        tight: &[false; 7],
        dispatching: &[false; 7],
        markers: &markers,
        histories: &[history(&paths, &[])],
        functions: &[0],
        total: 1e6,
    };
    form(&subject, &(), 1000, &SuperblockOptions::default(), Candidates::All)
}

fn traces(formation: &Formation) -> Vec<Vec<u32>> {
    let blocks = |superblock: &Superblock| superblock.trace.iter().map(|b| b.0).collect();
    formation.superblocks.iter().map(blocks).collect()
}

#[test]
fn which_of_two_even_sides_falls_through_is_chance() {
    for noise in [-1.0, 1.0] {
        let formation = diamonds(1.0, noise);
        assert_eq!(traces(&formation), [[3], [6]], "{formation:?}");
    }
}

#[test]
fn a_correlated_branch_is_copied_with_its_way() {
    let formation = diamonds(1.0, 0.0);
    let traces = traces(&formation);
    // Nothing else leads to 5 then, so that it needs no copy; the return is copied instead of jumped to.
    assert_eq!(traces, [[3], [6]], "{formation:?}");
    let copies = &formation.graph.nodes[7..];
    assert!(
        (copies[0].counts[1] - 1000.0).abs() < 10.0 && copies[0].counts[0] < 10.0,
        "{copies:?}"
    );
    let original = &formation.graph.nodes[3];
    assert!(
        (original.counts[0] - 1000.0).abs() < 10.0 && original.counts[1] < 10.0,
        "{original:?}"
    );
}

#[test]
fn without_correlation_a_trace_ends_at_the_branch() {
    let formation = diamonds(0.5, 0.0);
    assert!(
        formation
            .superblocks
            .iter()
            .all(|s| s.trace != [3, 5, 6].map(BlockIndex)),
        "{formation:?}"
    );
}

#[test]
fn cold_code_is_left_alone() {
    let cfg = graph(&[&[1, 2], &[3], &[3], &[]]);
    let subject = Subject {
        cfg: &cfg,
        counts: &[2.0, 1.0, 1.0, 2.0],
        probabilities: &[0.5, 0.5, 1.0, 1.0],
        clonable: &[true; 4],
        tight: &[false; 4],
        dispatching: &[false; 4],
        markers: &vec![Vec::new(); 4],
        histories: &[],
        functions: &[],
        total: 1e9,
    };
    let formation = form(&subject, &(), 1000, &SuperblockOptions::default(), Candidates::All);
    assert!(formation.superblocks.is_empty());
    assert_eq!(formation.graph.nodes.len(), 4);
}

/// A loop that does one of two things in turn, 2 and 3, and goes back through 4.
#[test]
fn a_dispatch_is_copied_for_what_came_before() {
    let mut cfg = graph(&[&[1], &[2, 3, 5], &[4], &[4], &[1], &[]]);
    cfg.blocks[1].terminator = Terminator::Switch;
    let turn = |way: u32| EstimatedPath {
        path: Path {
            start: Start::Inside,
            blocks: [1, way, 4].map(BlockIndex).to_vec(),
            end: End::Back(BlockIndex(1)),
        },
        count: 1000.0,
        low: 1000.0,
        high: 1000.0,
        effective: 1000.0,
    };
    let paths = [turn(2), turn(3)];
    let window = |a: usize, b: usize| PathWindow {
        paths: vec![paths[a].path.clone(), paths[b].path.clone()],
        count: 1000.0,
    };
    let marker = |block| Marker {
        instance: 0,
        block: BlockIndex(block),
    };
    let markers: Vec<_> = (0..6).map(|b| vec![marker(b)]).collect();
    let formed = |windows: &[PathWindow], dispatching: &[bool]| {
        let subject = Subject {
            cfg: &cfg,
            counts: &[1.0, 2000.0, 1000.0, 1000.0, 2000.0, 1.0],
            probabilities: &[1.0, 0.499_75, 0.499_75, 0.0005, 1.0, 1.0, 1.0],
            clonable: &[true; 6],
            tight: &[false; 6],
            dispatching,
            markers: &markers,
            histories: &[history(&paths, windows)],
            functions: &[0],
            total: 1e5,
        };
        form(&subject, &(), 1000, &SuperblockOptions::default(), Candidates::All)
    };
    let known = formed(
        &[window(0, 1), window(1, 0)],
        &[false, true, false, false, false, false],
    );
    // For one of the two ways the dispatch is copied, and leads to the other nearly always.
    let copies = &known.graph.nodes[6..];
    let dispatch = copies.iter().find(|node| node.origin == BlockIndex(1)).expect("a copy");
    let most = dispatch.counts.iter().copied().fold(0.0, f64::max);
    assert!(dispatch.count() > 900.0 && most > 0.99 * dispatch.count(), "{known:?}");
    // A loop that is not said to dispatch keeps its header.
    let plain = formed(&[window(0, 1), window(1, 0)], &[false; 6]);
    assert!(
        plain.graph.nodes[6..].iter().all(|node| node.origin != BlockIndex(1)),
        "{plain:?}"
    );
    // Nothing is known of what follows what: a copy, if there is one, is no better than what it is a copy of.
    let unknown = formed(&[], &[false, true, false, false, false, false]);
    for dispatch in unknown.graph.nodes[6..]
        .iter()
        .filter(|node| node.origin == BlockIndex(1))
    {
        let most = dispatch.counts.iter().copied().fold(0.0, f64::max);
        assert!(most < 0.6 * dispatch.count(), "{unknown:?}");
    }
}
