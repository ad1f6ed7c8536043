use super::*;
use crate::ball_larus::{End, Path, Start};
use crate::profile::EstimatedPath;
use crate::superblock::Marker;
use crate::superblock::history::History;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{FunctionGuid, FunctionId, ModuleHash};

fn graph(successors: &[&[u32]]) -> Cfg {
    let blocks = successors.iter().map(|to| Block {
        successors: to.iter().map(|&s| BlockIndex(s)).collect(),
        terminator: if to.is_empty() {
            Terminator::Return
        } else {
            Terminator::Branch
        },
        is_eh_pad: false,
        instructions: 4,
        line: 0,
    });
    Cfg {
        id: FunctionId {
            guid: FunctionGuid(1),
            module: ModuleHash(0),
        },
        module: ModuleHash(1),
        name: "f".into(),
        source_file: "f.c".into(),
        blocks: blocks.collect(),
        calls: vec![],
    }
}

/// Two diamonds in a row; the second goes the way of the first in a share of the executions of either way.
fn diamonds(agreeing: f64) -> Formation {
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
                context: 0,
                block: BlockIndex(b),
            }]
        })
        .collect();
    let subject = Subject {
        cfg: &cfg,
        counts: &[2000.0, 1000.0, 1000.0, 2000.0, 1000.0, 1000.0, 2000.0],
        probabilities: &[0.5, 0.5, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0],
        clonable: &[true; 7],
        tight: &[false; 7],
        markers: &markers,
        histories: &[History::new(&paths, |_| true)],
        total: 1e6,
    };
    form(&subject, &(), 1000, &Options::default())
}

#[test]
fn a_correlated_branch_is_copied_with_its_way() {
    let formation = diamonds(1.0);
    let traces: Vec<Vec<u32>> = formation
        .superblocks
        .iter()
        .map(|s| s.trace.iter().map(|b| b.0).collect())
        .collect();
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
    let formation = diamonds(0.5);
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
        markers: &vec![Vec::new(); 4],
        histories: &[],
        total: 1e9,
    };
    let formation = form(&subject, &(), 1000, &Options::default());
    assert!(formation.superblocks.is_empty());
    assert_eq!(formation.graph.nodes.len(), 4);
}
