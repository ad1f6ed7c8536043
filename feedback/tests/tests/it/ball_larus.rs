//! Ball & Larus's worked examples, special cases, and functions of unusual size.

use pleach_annotate::cfg::{Call, Callee, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, CallIndex, FunctionGuid};
use pleach_annotate::testing;
use pleach_ball_larus::edges;
use pleach_ball_larus::edges::{Inconsistent, OutOfRange};
use pleach_ball_larus::graph::{EdgeIndex, EdgeKind, PathGraph};
use pleach_ball_larus::*;
use std::collections::BTreeMap;

fn call(block: u32, callee: Callee) -> Call {
    Call {
        block: BlockIndex(block),
        callee,
        may_not_return: true,
    }
}

const fn b(index: u32) -> BlockIndex {
    BlockIndex(index)
}

/// A…F are 0…5, the successors in the order that gives the paper's values where ours are tied.
const EXAMPLE: &[&[u32]] = &[&[2, 1], &[2, 3], &[3], &[5, 4], &[5], &[]];

fn letters(path: &Path) -> String {
    let letter = |block: &BlockIndex| char::from(b'A' + block.0 as u8);
    path.blocks.iter().map(letter).collect()
}

fn paths_of(graph: &PathGraph) -> Vec<String> {
    (0..graph.paths()).map(|n| letters(&graph.path(n).unwrap())).collect()
}

fn graph(cfg: &Cfg) -> PathGraph {
    PathGraph::new(cfg, &NumberingOptions::default())
}

fn value(graph: &PathGraph, kind: EdgeKind) -> u64 {
    graph.value(graph.find(kind).unwrap())
}

#[test]
fn example_is_numbered() {
    // Figure 5: the number of paths from each vertex.
    let cfg = testing::cfg(EXAMPLE);
    let graph = graph(&cfg);
    let paths: Vec<_> = (0..6).map(|block| graph.paths_from(b(block))).collect();
    assert_eq!(paths, [6, 4, 2, 2, 1, 1]);
    assert_eq!(graph.paths(), 6);
    let flow = |from, to| value(&graph, EdgeKind::Flow(b(from), b(to)));
    // The paper visits C first at A and gives A→B 2; here the one with more paths, B, goes first (§5).
    assert_eq!([flow(0, 1), flow(0, 2)], [0, 4]);
    assert_eq!([flow(1, 2), flow(1, 3), flow(2, 3)], [0, 2, 0]);
    assert_eq!([flow(3, 5), flow(3, 4), flow(4, 5)], [0, 1, 0]);
    // Figure 2's table, the two paths through A→C last.
    assert_eq!(paths_of(&graph), ["ABCDF", "ABCDEF", "ABDF", "ABDEF", "ACDF", "ACDEF"]);
}

#[test]
fn example_is_instrumented_as_in_figure_10() {
    let cfg = testing::cfg(EXAMPLE);
    let graph = graph(&cfg);
    // The paper's spanning tree: A→B, C→D, D→E, D→F.
    let tree = [(0, 1), (2, 3), (3, 4), (3, 5)].map(|(from, to)| (b(from), b(to)));
    let weights = weights::measured_weights(&graph, 20, |from, to| if tree.contains(&(from, to)) { 10 } else { 1 });
    let plan = place::paths(&graph, &NumberingOptions::default(), &weights);
    // Three edges initialise, so that the entry need not, and two count, one of them with its increment.
    assert_eq!(
        plan.edges,
        [
            (b(0), b(2), vec![Op::Set(4)]),
            (b(1), b(2), vec![Op::Set(0)]),
            (b(1), b(3), vec![Op::Set(2)]),
            (b(3), b(5), vec![Op::Count(Index::Register(0))]),
            (b(4), b(5), vec![Op::Count(Index::Register(1))]),
        ]
    );
    assert!(plan.entry.is_empty() && plan.exits.is_empty() && plan.records.is_empty() && plan.resumes.is_empty());
    assert_eq!(
        (plan.numbers, plan.window, plan.counters, plan.storage),
        (6, 1, 6, Storage::Array)
    );
}

#[test]
fn loop_has_paths_of_four_kinds() {
    // §4: A→B, B→C, B→D, C→E, D→E, E→B, E→F.
    let cfg = testing::cfg(&[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
    let graph = graph(&cfg);
    assert_eq!(graph.paths(), 8);
    assert!(graph.find(EdgeKind::End(b(4), End::Back(b(1)))).is_some());
    assert!(graph.find(EdgeKind::Start(Start::Inside, b(1))).is_some());
    assert!(graph.find(EdgeKind::Flow(b(4), b(1))).is_none());
    let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for number in 0..8 {
        let path = graph.path(number).unwrap();
        kinds.entry((path.start, path.end)).or_default().push(letters(&path));
    }
    let back = End::Back(b(1));
    assert_eq!(kinds[&(Start::Entry, End::Exit)], ["ABCEF", "ABDEF"]);
    assert_eq!(kinds[&(Start::Entry, back)], ["ABCE", "ABDE"]);
    assert_eq!(kinds[&(Start::Inside, back)], ["BCE", "BDE"]);
    assert_eq!(kinds[&(Start::Inside, End::Exit)], ["BCEF", "BDEF"]);
    let plan = plan(&cfg, &NumberingOptions::default(), |graph| {
        weights::static_weights(&cfg, graph)
    });
    let (.., ops) = plan.edges.iter().find(|e| (e.0, e.1) == (b(4), b(1))).unwrap();
    assert!(matches!(ops[..], [Op::Count(_), Op::Set(_)]), "{ops:?}");
}

#[test]
fn self_loop_has_a_counter_of_its_own() {
    let cfg = testing::cfg(&[&[1], &[1, 2, 1], &[]]);
    let plan_for = |iterations| {
        let options = NumberingOptions {
            iterations,
            ..NumberingOptions::default()
        };
        plan(&cfg, &options, |graph| weights::static_weights(&cfg, graph))
    };
    let once = plan_for(1);
    assert_eq!((once.numbers, once.counters), (2, 2));
    assert_eq!(once.edges, [(b(1), b(1), vec![Op::Count(Index::Const(1))])]);
    // Where iterations are counted together, the loop is one like others.
    let twice = plan_for(2);
    assert_eq!((twice.numbers, twice.window, twice.counters), (4, 2, 25));
    let graph = graph(&cfg);
    let path = graph.path(1).unwrap();
    assert_eq!(
        (path.start, &path.blocks[..], path.end),
        (Start::Inside, &[b(1)][..], End::Back(b(1)))
    );
    assert_eq!(graph.number_of(&path), Some(1));
    // A block that only leads to itself has a path to EXIT.
    let endless = PathGraph::new(&testing::cfg(&[&[1], &[1]]), &NumberingOptions::default());
    assert_eq!(paths_of(&endless), ["AB", "B"]);
}

#[test]
fn a_block_without_successors_needs_no_record() {
    let mut cfg = testing::cfg(&[&[1, 2], &[], &[]]);
    cfg.calls = vec![
        call(0, Callee::Indirect),
        call(1, Callee::Indirect),
        call(2, Callee::InlineAsm),
    ];
    let plan = plan(&cfg, &NumberingOptions::default(), |graph| {
        weights::static_weights(&cfg, graph)
    });
    assert_eq!(plan.numbers, 3);
    assert_eq!(plan.records.iter().map(|r| r.0).collect::<Vec<_>>(), [b(0)]);
    assert!(matches!(plan.records[0].1, Index::Const(_)));
    // The count cannot be made on entry, before the call.
    assert!(plan.entry.is_empty());
}

#[test]
fn a_second_return_into_a_last_block_counts_at_once() {
    let mut cfg = testing::cfg(&[&[1], &[]]);
    cfg.calls = vec![call(1, Callee::Direct(FunctionGuid::of_name("setjmp")))];
    let graph = graph(&cfg);
    assert_eq!(graph.resumes(), [(CallIndex(0), b(1))]);
    let plan = plan(&cfg, &NumberingOptions::default(), |graph| {
        weights::static_weights(&cfg, graph)
    });
    let (_, ops) = &plan.resumes[0];
    assert!(matches!(ops[..], [.., Op::Count(_)]), "{ops:?}");
}

#[test]
fn empty_and_smallest_functions() {
    let empty = graph(&testing::cfg(&[]));
    assert_eq!((empty.paths(), empty.numbers(), empty.edges().len()), (0, 0, 0));
    assert_eq!((empty.path(0), empty.window(1, 1)), (None, None));
    for mode in [Mode::Paths, Mode::Edges] {
        let options = NumberingOptions {
            mode,
            iterations: 4,
            ..NumberingOptions::default()
        };
        let nothing = plan(&testing::cfg(&[]), &options, |_| Vec::new());
        assert_eq!((nothing.numbers, nothing.window, nothing.counters), (0, 1, 0));
        let one = plan(&testing::cfg(&[&[]]), &options, |_| Vec::new());
        assert_eq!((one.numbers, one.edges.len()), (1, 0));
        let counts = one.entry.iter().chain(one.exits.iter().flat_map(|e| &e.1));
        assert_eq!(counts.collect::<Vec<_>>(), [&Op::Count(Index::Const(0))]);
    }
    // Targets that do not exist are left out.
    assert_eq!(graph(&testing::cfg(&[&[7], &[0]])).paths(), 1);
}

#[test]
fn windows_round_trip() {
    let cfg = testing::cfg(&[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
    let options = NumberingOptions {
        iterations: 3,
        ..NumberingOptions::default()
    };
    let graph = PathGraph::new(&cfg, &options);
    let base = graph.numbers() + 1;
    for numbers in [&[4, 7, 0][..], &[0, 0, 0], &[7, 7, 7], &[3], &[5, 2]] {
        let key = numbers.iter().fold(0, |key, number| key * base + number + 1);
        let paths: Vec<_> = numbers.iter().map(|&n| graph.path(n).unwrap()).collect();
        assert_eq!(graph.window(key, 3), Some(paths));
    }
    // No path at all, none as the latest, one missing between two, too many.
    for (key, window) in [
        (0, 3),
        (base, 3),
        (base * base + 1, 3),
        (base + 1, 1),
        (base.pow(3) + base * base + base + 1, 3),
    ] {
        assert_eq!(graph.window(key, window), None);
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let cfg = testing::cfg(EXAMPLE);
    let paths = graph(&cfg);
    let error = OutOfRange { number: 6, numbers: 6 };
    assert_eq!(edges::counts_of_paths(&paths, [(3, 1), (6, 1)]), Err(error));
    let options = NumberingOptions {
        mode: Mode::Edges,
        ..NumberingOptions::default()
    };
    let graph = PathGraph::new(&cfg, &options);
    let chords = plan(&cfg, &options, |graph| weights::static_weights(&cfg, graph)).chords;
    assert_eq!(chords.len(), 4);
    assert_eq!(
        edges::solve(&graph, &chords, &[1]),
        Err(Inconsistent::Length { counts: 1, chords: 4 })
    );
    assert_eq!(edges::solve(&graph, &[99], &[1]), Err(Inconsistent::NoSuchEdge(99)));
    assert_eq!(
        edges::solve(&graph, &chords[1..], &[1; 3]),
        Err(Inconsistent::Undetermined)
    );
    let of = |edge: EdgeKind| graph.find(edge).unwrap().0;
    let (a_to_b, a_to_c) = (of(EdgeKind::Flow(b(0), b(1))), of(EdgeKind::Flow(b(0), b(2))));
    let (b_to_c, e_to_f) = (of(EdgeKind::Flow(b(1), b(2))), of(EdgeKind::Flow(b(4), b(5))));
    // B is left more often than it is entered.
    let error = edges::solve(&graph, &[a_to_b, a_to_c, b_to_c, e_to_f], &[3, 0, 5, 0]);
    assert!(
        matches!(error, Err(Inconsistent::Impossible { count: -2, .. })),
        "{error:?}"
    );
}

#[test]
fn activations_that_never_end_leave_edge_counts_consistent() {
    // A→B, A→C, B→D, C→D, D→E, and E→D for ever; C→F returns.
    let cfg = testing::cfg(&[&[1, 2], &[3], &[3, 5], &[4], &[3], &[]]);
    let options = NumberingOptions {
        mode: Mode::Edges,
        ..NumberingOptions::default()
    };
    let graph = PathGraph::new(&cfg, &options);
    let plan = plan(&cfg, &options, |graph| weights::static_weights(&cfg, graph));
    // Once A B D E D E and on; once A C F. Where in the loop the first was last is not known: it is taken to be E.
    let taken: BTreeMap<_, _> = [
        ((0, 1), 1),
        ((0, 2), 1),
        ((1, 3), 1),
        ((2, 5), 1),
        ((3, 4), 2),
        ((4, 3), 1),
    ]
    .into();
    let count = |&chord: &u32| match graph.edges()[EdgeIndex(chord).index()] {
        EdgeKind::Start(..) => 2,
        EdgeKind::Flow(from, to) => taken.get(&(from.0, to.0)).copied().unwrap_or(0),
        EdgeKind::End(..) => 1,
        EdgeKind::SelfLoop(_) => 0,
    };
    let counts: Vec<_> = plan.chords.iter().map(count).collect();
    let flow = edges::flow(&graph, &edges::solve(&graph, &plan.chords, &counts).unwrap());
    assert_eq!(flow.entries, 2);
    assert_eq!(flow.blocks[..3], [2, 1, 1]);
    let flowed: BTreeMap<_, _> = flow
        .edges
        .iter()
        .filter(|e| *e.1 != 0)
        .map(|(k, &n)| ((k.0.0, k.1.0), n))
        .collect();
    assert_eq!(flowed, taken);
    assert_eq!(flow.exits.iter().sum::<u64>(), 2);
}

#[test]
fn static_weights_know_loops_and_cold_code() {
    // 0→1; 1 is a loop's header that leads to 2 or out to 5; 2 leads to an inner loop 3⇄3 or to the trap 4; 3 to 1.
    let mut cfg = testing::cfg(&[&[1], &[2, 5], &[3, 4], &[3, 1], &[], &[]]);
    cfg.blocks[4].terminator = Terminator::Unreachable;
    let graph = graph(&cfg);
    let weights = weights::static_weights(&cfg, &graph);
    let weight = |kind| weights[graph.find(kind).unwrap().index()];
    let flow = |from, to| weight(EdgeKind::Flow(b(from), b(to)));
    let entry = weight(EdgeKind::Start(Start::Entry, b(0)));
    assert_eq!(flow(0, 1), entry);
    assert_eq!(flow(1, 2), entry * 10 * 10 / 11);
    assert_eq!(flow(1, 5), entry * 10 / 11);
    assert_eq!((flow(2, 3), flow(2, 4)), (flow(1, 2), 0));
    assert_eq!(weight(EdgeKind::SelfLoop(b(3))), flow(2, 3) * 100 / 11);
    let back = weight(EdgeKind::End(b(3), End::Back(b(1))));
    assert_eq!(weight(EdgeKind::Start(Start::Inside, b(1))), back);
    assert!(back > 0 && weight(EdgeKind::End(b(5), End::Exit)) == flow(1, 5));
    // Forty loops in each other do not overflow.
    let deep: Vec<Vec<u32>> = (0..80)
        .map(|i| match i {
            _ if i < 40 => vec![i + 1],
            79 => vec![],
            _ => vec![79 - i, i + 1],
        })
        .collect();
    let deep = testing::cfg(&deep.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let graph = PathGraph::new(&deep, &NumberingOptions::default());
    assert!(weights::static_weights(&deep, &graph).iter().all(|&w| w <= 1 << 51));
}

/// Everything that is done with a function, by an instrumented compilation and by a reader.
fn round_trip(cfg: &Cfg, options: &NumberingOptions) -> PathGraph {
    let graph = PathGraph::new(cfg, options);
    let weights = weights::static_weights(cfg, &graph);
    let plan = plan(cfg, options, |_| weights);
    assert!(plan.counters < 1 << 62);
    if options.mode == Mode::Paths {
        let last = graph.paths() - 1;
        for number in [0, last / 2, last] {
            assert_eq!(graph.number_of(&graph.path(number).unwrap()), Some(number));
        }
        edges::counts_of_paths(&graph, [(last, 5)]).unwrap();
    } else {
        let counts = vec![0; plan.chords.len()];
        let solved = edges::solve(&graph, &plan.chords, &counts).unwrap();
        assert_eq!(edges::flow(&graph, &solved).entries, 0);
    }
    graph
}

#[test]
fn large_functions_are_no_problem() {
    // 20 000 diamonds, each with a call, in a loop.
    let mut chain: Vec<Vec<u32>> = Vec::new();
    for i in (0..60_000).step_by(3) {
        chain.extend([vec![i + 1, i + 2], vec![i + 3], vec![i + 3]]);
    }
    chain.extend([vec![0, 60_001], vec![]]);
    let mut chain = testing::cfg(&chain.iter().map(Vec::as_slice).collect::<Vec<_>>());
    chain.calls = (0..60_000).step_by(3).map(|i| call(i, Callee::Indirect)).collect();
    // A switch with 20 000 cases, in a loop.
    let cases: Vec<u32> = (1..=20_000).collect();
    let mut switch: Vec<&[u32]> = vec![&cases];
    switch.extend([&[20_001][..]; 20_000]);
    switch.extend([&[0, 20_002][..], &[]]);
    let switch = testing::cfg(&switch);
    // 20 000 loops in each other, and 60 000 endless ones.
    let nested: Vec<Vec<u32>> = (0..20_000)
        .map(|i: u32| vec![i + 1, i.saturating_sub(1)])
        .chain([vec![]])
        .collect();
    let nested = testing::cfg(&nested.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let endless: Vec<Vec<u32>> = (0..60_000).map(|i: u32| vec![i, (i + 1).min(59_999)]).collect();
    let endless = testing::cfg(&endless.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let modes = [
        (Mode::Paths, 100_000_000, 1),
        (Mode::Paths, 1, 2),
        (Mode::Paths, u64::MAX, 4),
        (Mode::Edges, 1, 1),
    ];
    for (mode, max_paths, iterations) in modes {
        let options = NumberingOptions {
            mode,
            max_paths,
            iterations,
            ..NumberingOptions::default()
        };
        let graph = round_trip(&chain, &options);
        let is_cut = |kind: &&EdgeKind| matches!(kind, EdgeKind::End(_, End::Cut(_)));
        assert_eq!(graph.edges().iter().filter(is_cut).count() > 100, mode == Mode::Paths);
        for cfg in [&switch, &nested, &endless] {
            round_trip(cfg, &options);
        }
    }
}
