//! From counters to paths and flow, checked against executions.

use pleach_feedback_tests::counts_support;
use pleach_feedback_tests::support;

use counts_support::{cfg, numbered, of_units, options, parse, parse_paths, path, spin, spin_paths, unit};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::counts::Counts;
use pleach_ball_larus::counts::exact::{ExactPath, ExactProfile};
use pleach_ball_larus::counts::unit::Unit;
use pleach_ball_larus::edges::ExactFlow;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::{End, Mode, NumberingOptions, Path, Start};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{Random, random_cfg};

/// Executions of a function, block by block, each to its end.
fn walks(cfg: &Cfg, random: &mut Random, calls: usize) -> Vec<Vec<BlockIndex>> {
    let walk = |random: &mut Random| {
        let mut blocks = vec![BlockIndex::ENTRY];
        loop {
            let successors = &cfg.blocks[blocks[blocks.len() - 1].index()].successors;
            if successors.is_empty() {
                return Some(blocks);
            }
            blocks.push(successors[random.below(successors.len())]);
            if blocks.len() > 300 {
                return None;
            }
        }
    };
    (0..calls).filter_map(|_| walk(random)).collect()
}

/// The paths that an execution is made of, in order.
fn paths_of(graph: &PathGraph, walk: &[BlockIndex]) -> Vec<Path> {
    let mut paths = Vec::new();
    let mut current = path(Start::Entry, &[walk[0].0], End::Exit);
    for pair in walk.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let ends = [End::Back(to), End::Cut(to)].map(|end| (end, graph.find(EdgeKind::End(from, end))));
        if graph.find(EdgeKind::SelfLoop(from)).is_some() && from == to {
            paths.push(path(Start::Inside, &[from.0], End::Back(from)));
        } else if let Some((end, _)) = ends.into_iter().find(|(_, edge)| edge.is_some()) {
            current.end = end;
            paths.push(std::mem::replace(&mut current, path(Start::Inside, &[to.0], End::Exit)));
        } else {
            current.blocks.push(to);
        }
    }
    paths.push(current);
    paths
}

fn flow_of(cfg: &Cfg, walks: &[Vec<BlockIndex>]) -> ExactFlow {
    let mut flow = ExactFlow {
        entries: walks.len() as u64,
        blocks: vec![0; cfg.blocks.len()],
        exits: vec![0; cfg.blocks.len()],
        ..ExactFlow::default()
    };
    for walk in walks {
        walk.iter().for_each(|block| flow.blocks[block.index()] += 1);
        walk.windows(2)
            .for_each(|pair| *flow.edges.entry((pair[0], pair[1])).or_default() += 1);
        flow.exits[walk[walk.len() - 1].index()] += 1;
    }
    flow
}

/// What matters of a flow: edges that were never taken may be listed or not.
fn executed(flow: &ExactFlow) -> ExactFlow {
    let mut flow = flow.clone();
    flow.edges.retain(|_, count| *count > 0);
    flow
}

fn by_path(paths: &[ExactPath]) -> BTreeMap<Vec<Path>, u64> {
    paths.iter().map(|p| (p.path.clone(), p.count)).collect()
}

fn sum<K: Ord>(keys: impl IntoIterator<Item = K>) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    keys.into_iter().for_each(|key| *sums.entry(key).or_default() += 1);
    sums
}

/// The keys that windows of an execution's numbers are counted under.
fn window_keys(numbers: &[u64], base: u64, window: u8) -> Vec<u64> {
    let key = |end: usize| {
        let start = (end + 1).saturating_sub(window.into());
        numbers[start..=end]
            .iter()
            .fold(0, |key, number| key * base + number + 1)
    };
    (0..numbers.len()).map(key).collect()
}

/// Counts of a function as an instrumented program would leave them.
fn counted(cfg: &Cfg, options: NumberingOptions, walks: &[Vec<BlockIndex>]) -> (Unit, Vec<Vec<(u64, u64)>>) {
    let unit = unit(options, std::slice::from_ref(cfg));
    let graph = PathGraph::new(cfg, &options);
    let function = &unit.functions[0];
    let numbers = |walk: &[BlockIndex]| -> Vec<u64> {
        let paths = paths_of(&graph, walk);
        paths
            .iter()
            .map(|path| graph.number_of(path).expect("a number"))
            .collect()
    };
    let keys: Vec<u64> = match (options.mode, function.window) {
        (Mode::Paths, 1) => walks.iter().flat_map(|walk| numbers(walk)).collect(),
        (Mode::Paths, window) => walks
            .iter()
            .flat_map(|walk| window_keys(&numbers(walk), graph.numbers() + 1, window))
            .collect(),
        (Mode::Edges, _) => {
            let taken = walks.iter().flat_map(|walk| {
                let last = walk[walk.len() - 1];
                let flow = walk.windows(2).map(|pair| EdgeKind::Flow(pair[0], pair[1]));
                let ends = [EdgeKind::Start(Start::Entry, walk[0]), EdgeKind::End(last, End::Exit)];
                flow.chain(ends).collect::<Vec<_>>()
            });
            let chord = |kind| {
                let edge = graph.find(kind).expect("an edge");
                function.chords.iter().position(|&chord| chord == edge.0)
            };
            taken.filter_map(chord).map(|chord| chord as u64).collect()
        }
    };
    (unit, vec![sum(keys).into_iter().collect()])
}

fn only(counts: &Counts) -> pleach_ball_larus::counts::exact::ExactFunction {
    let mut exact = ExactProfile::from_counts(counts);
    assert_eq!(exact.problems, []);
    assert_eq!(exact.functions.len(), 1);
    exact.functions.remove(0)
}

#[test]
fn paths_come_with_their_flow_in_order() {
    let options = options(Mode::Paths, 1);
    let cfgs = [parse(), spin()];
    let counts = vec![
        numbered(&cfgs[0], options, &parse_paths()),
        numbered(&cfgs[1], options, &spin_paths()),
    ];
    let exact = ExactProfile::from_counts(&of_units([(unit(options, &cfgs), counts)]));
    assert_eq!(exact.problems, []);
    let parse = exact.functions.iter().find(|f| f.cfg.name == "parse").unwrap();
    let listed: Vec<u64> = parse.paths.iter().map(|p| p.count).collect();
    assert_eq!(listed, [180, 15, 10, 10, 2, 2, 1]);
    assert_eq!(
        by_path(&parse.paths),
        parse_paths().into_iter().map(|(p, count)| (vec![p], count)).collect()
    );
    let flow = &parse.flow;
    assert_eq!((flow.entries, &flow.blocks), (13, &vec![13, 220, 200, 20, 219, 12]));
    assert_eq!(flow.exits, [0, 0, 0, 1, 0, 12]);
    let edge = |from, to| flow.edges[&(BlockIndex(from), BlockIndex(to))];
    assert_eq!((edge(1, 2), edge(3, 4), edge(4, 1)), (200, 19, 207));
    let spin = exact.functions.iter().find(|f| f.cfg.name == "spin").unwrap();
    assert_eq!(spin.flow.blocks, [3, 93, 3]);
    assert_eq!(spin.acyclic(), spin.paths);
}

#[test]
fn a_function_of_several_modules_is_summed_whatever_they_know_of_its_calls() {
    let options = options(Mode::Paths, 1);
    let mut nothrow = parse();
    nothrow.calls[0].may_not_return = false;
    let counts: Vec<(Path, u64)> = parse_paths().into_iter().filter(|(p, _)| p.end != End::Call).collect();
    let modules = of_units([
        (
            unit(options, &[parse()]),
            vec![numbered(&parse(), options, &parse_paths())],
        ),
        (
            unit(options, &[nothrow.clone()]),
            vec![numbered(&nothrow, options, &counts)],
        ),
    ]);
    assert_eq!(nothrow.hash(), parse().hash());
    let sum = only(&modules);
    let expected = parse_paths().into_iter().map(|(p, count)| match p.end {
        End::Call => (vec![p], count),
        _ => (vec![p], 2 * count),
    });
    assert_eq!(by_path(&sum.paths), expected.collect());
    assert_eq!(sum.flow.blocks, [25, 439, 400, 39, 438, 24]);
    // Another anchor is another function.
    let late = Unit {
        anchor: Anchor::Late,
        ..unit(options, &[parse()])
    };
    let mut both = modules;
    both.units.extend(of_units([(late, vec![vec![]])]).units);
    assert_eq!(ExactProfile::from_counts(&both).functions.len(), 2);
}

#[test]
fn what_is_not_understood_is_left_out() {
    let paths = options(Mode::Paths, 1);
    let mut renumbered = unit(paths, &[parse(), spin()]);
    renumbered.functions[0].counters -= 1;
    let windows = options(Mode::Paths, 2);
    let edges = options(Mode::Edges, 1);
    let edge_unit = unit(edges, &[parse()]);
    let chords = edge_unit.functions[0].chords.len() as u64;
    let spins = numbered(&spin(), paths, &spin_paths());
    let counts = of_units([
        (renumbered, vec![vec![(0, 1)], spins]),
        // A window that has an earlier path but no latest one.
        (unit(windows, &[parse()]), vec![vec![(11, 4), (12, 6)]]),
        (
            edge_unit,
            vec![(0..chords).map(|chord| (chord, 1000 * chord + 7)).collect()],
        ),
    ]);
    let exact = ExactProfile::from_counts(&counts);
    let executed: Vec<_> = exact
        .functions
        .iter()
        .map(|f| (f.cfg.name.as_str(), f.window))
        .collect();
    assert_eq!(executed, [("spin", 1), ("parse", 2)]);
    assert_eq!(exact.functions[1].paths.iter().map(|p| p.count).sum::<u64>(), 6);
    let mut problems: Vec<_> = exact.problems.iter().map(ToString::to_string).collect();
    problems.sort();
    insta::assert_snapshot!(problems.join("\n"));
}

#[test]
fn sums_that_do_not_fit_stay_at_the_largest_number() {
    let options = options(Mode::Paths, 1);
    let cfg = cfg("f", &[&[1], &[]]);
    let counts = of_units([(unit(options, std::slice::from_ref(&cfg)), vec![vec![(0, u64::MAX)]])]);
    let mut other = unit(options, &[cfg]);
    other.words += 1;
    let mut both = counts.clone();
    both.units.extend(of_units([(other, vec![vec![(0, 1)]])]).units);
    let function = only(&both);
    assert_eq!((function.paths[0].count, function.flow.blocks[1]), (u64::MAX, u64::MAX));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_was_executed_is_found(seed in any::<u64>(), blocks in 1usize..14, iterations in 1u8..=4, most in prop::sample::select(vec![2, 10, 100_000_000])) {
        let mut random = Random(seed);
        let mut cfg = random_cfg(&mut random, blocks);
        // Ends of executions in calls are the instrumented program's affair.
        cfg.calls.clear();
        let walks = walks(&cfg, &mut random, 20);
        let limited = |mode, iterations| NumberingOptions { max_paths: most, ..options(mode, iterations) };
        let expected = flow_of(&cfg, &walks);
        let once = limited(Mode::Paths, 1);
        let graph = PathGraph::new(&cfg, &once);
        let acyclic = only(&of_units([counted(&cfg, once, &walks)]));
        let paths = sum(walks.iter().flat_map(|walk| paths_of(&graph, walk)).map(|path| vec![path]));
        prop_assert_eq!(by_path(&acyclic.paths), paths);
        prop_assert_eq!(executed(&acyclic.flow), expected.clone());
        prop_assert_eq!(acyclic.acyclic(), acyclic.paths);

        let edges = only(&of_units([counted(&cfg, limited(Mode::Edges, 1), &walks)]));
        prop_assert_eq!(executed(&edges.flow), expected.clone());
        prop_assert_eq!(&edges.paths, &[]);

        let several = limited(Mode::Paths, iterations);
        let graph = PathGraph::new(&cfg, &several);
        let windows = only(&of_units([counted(&cfg, several, &walks)]));
        prop_assert_eq!(executed(&windows.flow), expected);
        let all: Vec<Vec<Path>> = walks.iter().map(|walk| paths_of(&graph, walk)).collect();
        prop_assert_eq!(by_path(&windows.acyclic()), sum(all.iter().flatten().map(|path| vec![path.clone()])));
        let window = usize::from(windows.window);
        let seen = all.iter().flat_map(|paths| {
            (0..paths.len()).map(move |end| paths[(end + 1).saturating_sub(window)..=end].to_vec())
        });
        prop_assert_eq!(by_path(&windows.paths), sum(seen));
    }
}
