//! Random graphs: numbers and paths correspond, and a program that does what the plan says counts what it executes.

use pleach_feedback_tests::support;

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::edges;
use pleach_ball_larus::edges::ExactFlow;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use support::Random;
use support::activation::{Event, search, split, successors, walk, wild};

fn any_options(random: &mut Random) -> NumberingOptions {
    NumberingOptions {
        mode: Mode::Paths,
        iterations: 1 + random.below(4) as u8,
        max_paths: [0, 1, 2, 5, 20, 1000, 100_000_000, u64::MAX][random.below(8)],
        hash_above: [0, 5, 4096][random.below(3)],
    }
}

/// What an instrumented program does.
struct Machine<'a> {
    cfg: &'a Cfg,
    plan: &'a Plan,
    /// Numbers below this end a path, and the register is not used again before it is set.
    paths: u64,
    register: Option<i64>,
    record: Option<u64>,
    counted: Vec<u64>,
}

impl Machine<'_> {
    fn run(cfg: &Cfg, plan: &Plan, paths: u64, events: &[Event]) -> Vec<u64> {
        let mut machine = Machine {
            cfg,
            plan,
            paths,
            register: None,
            record: None,
            counted: Vec::new(),
        };
        machine.ops(&plan.entry);
        machine.enter(BlockIndex::ENTRY);
        for &event in events {
            match event {
                Event::Edge(from, to) => {
                    if let Ok(at) = plan.edges.binary_search_by_key(&(from, to), |e| (e.0, e.1)) {
                        machine.ops(&plan.edges[at].2);
                    }
                    machine.enter(to);
                }
                Event::Leave(_) => machine.counted.extend(machine.record.take()),
                Event::Resume(call) => {
                    let (_, ops) = plan
                        .resumes
                        .iter()
                        .find(|r| r.0 == call)
                        .expect("every such call is listed");
                    machine.ops(ops);
                    machine.write_record(cfg.calls[call.index()].block);
                }
            }
        }
        machine.counted
    }

    fn enter(&mut self, block: BlockIndex) {
        if let Some((_, ops)) = self.plan.exits.iter().find(|e| e.0 == block) {
            self.ops(ops);
        }
        self.write_record(block);
    }

    fn write_record(&mut self, block: BlockIndex) {
        let record = self.plan.records.iter().find(|r| r.0 == block);
        if self.cfg.blocks[block.index()].successors.is_empty() {
            assert!(record.is_none());
            self.record = None;
        } else if let Some(&(_, index)) = record {
            self.record = Some(self.number(index));
        }
    }

    fn number(&self, index: Index) -> u64 {
        match index {
            Index::Const(number) => number,
            Index::Register(add) => self.register.expect("set before use").wrapping_add(add) as u64,
        }
    }

    fn ops(&mut self, ops: &[Op]) {
        for &op in ops {
            match op {
                Op::Set(value) => self.register = Some(value),
                Op::Add(value) => {
                    assert_ne!(value, 0);
                    self.register = Some(self.register.expect("set before use").wrapping_add(value));
                }
                Op::Count(index) => {
                    let number = self.number(index);
                    self.counted.push(number);
                    if number < self.paths {
                        self.register = None;
                    }
                }
            }
        }
    }
}

/// The flow of activations, by definition.
fn flow_of(cfg: &Cfg, walks: &[Vec<Event>]) -> ExactFlow {
    let mut flow = ExactFlow {
        blocks: vec![0; cfg.blocks.len()],
        exits: vec![0; cfg.blocks.len()],
        ..ExactFlow::default()
    };
    for from in search(cfg).0 {
        flow.edges
            .extend(successors(cfg, from).into_iter().map(|to| ((from, to), 0)));
    }
    for walk in walks {
        flow.entries += 1;
        let mut entered = vec![BlockIndex::ENTRY];
        for &event in walk {
            match event {
                Event::Edge(from, to) => {
                    *flow.edges.get_mut(&(from, to)).unwrap() += 1;
                    entered.push(to);
                }
                Event::Leave(block) => flow.exits[block.index()] += u64::from(!successors(cfg, block).is_empty()),
                Event::Resume(call) => entered.push(cfg.calls[call.index()].block),
            }
        }
        for block in entered {
            flow.blocks[block.index()] += 1;
            flow.exits[block.index()] += u64::from(successors(cfg, block).is_empty());
        }
    }
    flow
}

fn any_weights(random: &mut Random, cfg: &Cfg, graph: &PathGraph, flow: &ExactFlow) -> Vec<u64> {
    match random.below(3) {
        0 => graph
            .edges()
            .iter()
            .map(|_| random.word() >> random.below(64))
            .collect(),
        1 => weights::static_weights(cfg, graph),
        _ => weights::measured_weights(graph, flow.entries, |from, to| flow.edges[&(from, to)]),
    }
}

fn tally(numbers: impl IntoIterator<Item = u64>) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for number in numbers {
        *counts.entry(number).or_default() += 1;
    }
    counts
}

/// What must hold for any graph of paths.
fn assert_well_formed(cfg: &Cfg, graph: &PathGraph, options: &NumberingOptions) {
    let (reachable, back) = search(cfg);
    for index in 0..cfg.blocks.len() as u32 {
        let block = BlockIndex(index);
        assert_eq!(graph.is_reachable(block), reachable.contains(&block));
        let out = successors(cfg, block);
        let ends = cfg.calls.iter().any(|c| c.block == block && may_not_return(c));
        let has = |kind| graph.find(kind).is_some();
        assert_eq!(
            has(EdgeKind::End(block, End::Exit)),
            out.is_empty() && reachable.contains(&block)
        );
        let ends = ends && !out.is_empty() && reachable.contains(&block);
        assert_eq!(has(EdgeKind::End(block, End::Call)), ends);
        let mut kept = 0;
        for &to in &out {
            let kinds = [
                EdgeKind::Flow(block, to),
                EdgeKind::End(block, End::Back(to)),
                EdgeKind::End(block, End::Cut(to)),
                EdgeKind::SelfLoop(block),
            ];
            let alone = block == to && options.iterations == 1 && out.len() > 1;
            let is_back = back.contains(&(block, to));
            let [flow, ends_back, cut, self_loop] = kinds.map(|kind| has(kind) && (kind != kinds[3] || block == to));
            assert_eq!(self_loop, reachable.contains(&block) && alone);
            assert_eq!(ends_back, is_back && !alone);
            assert_eq!(flow ^ cut, reachable.contains(&block) && !is_back);
            kept += u64::from(flow || ends_back || cut);
        }
        let most = options.max_paths.max(kept + u64::from(ends)).max(1);
        assert!(graph.paths_from(block) <= most);
    }
    assert_eq!(graph.edges().iter().collect::<BTreeSet<_>>().len(), graph.edges().len());
}

/// Numbers and paths correspond one to one, and increments add up to numbers.
fn assert_numbered(graph: &PathGraph, increments: &[i64], random: &mut Random) {
    let numbers = graph.numbers();
    let all = numbers <= 2000;
    let mut seen = BTreeSet::new();
    for i in 0..numbers.min(2000) {
        let number = if all { i } else { random.word() % numbers };
        let path = graph.path(number).expect("a path for every number");
        assert_eq!(graph.number_of(&path), Some(number), "{path:?}");
        if number < graph.paths() {
            let (first, last) = (path.blocks[0], path.blocks[path.blocks.len() - 1]);
            let mut kinds = vec![EdgeKind::Start(path.start, first)];
            kinds.extend(path.blocks.windows(2).map(|pair| EdgeKind::Flow(pair[0], pair[1])));
            kinds.push(EdgeKind::End(last, path.end));
            let edges: Vec<_> = kinds.into_iter().map(|kind| graph.find(kind).unwrap()).collect();
            assert_eq!(edges.iter().map(|&e| graph.value(e)).sum::<u64>(), number);
            let sum = edges
                .iter()
                .fold(0_i64, |sum, e| sum.wrapping_add(increments[e.index()]));
            assert_eq!(sum as u64, number);
        }
        assert!(!all || seen.insert(path));
    }
    assert_eq!(graph.path(numbers), None);
    assert_eq!(graph.path(u64::MAX), None);
}

/// Executes the plan for paths on activations; how often each number was counted.
fn count_paths(
    cfg: &Cfg,
    graph: &PathGraph,
    options: &NumberingOptions,
    plan: &Plan,
    walks: &[Vec<Event>],
) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for walk in walks {
        let paths = split(cfg, graph, options, walk);
        let expected: Vec<_> = paths
            .iter()
            .map(|p| graph.number_of(p).expect("a path of the graph"))
            .collect();
        let counted = Machine::run(cfg, plan, graph.paths(), walk);
        assert_eq!(tally(counted.iter().copied()), tally(expected.iter().copied()));
        if options.iterations > 1 {
            assert_eq!(counted, expected);
            let (mut key, base) = (0, plan.numbers + 1);
            for (i, number) in counted.iter().enumerate() {
                // The oldest path leaves the window before the next comes in: the key stays below base^window.
                key = key % base.pow(u32::from(plan.window) - 1) * base + number + 1;
                let first = (i + 1).saturating_sub(plan.window.into());
                assert_eq!(graph.window(key, plan.window).as_deref(), Some(&paths[first..=i]));
                assert!(plan.window == 1 || key < plan.counters);
            }
        }
        for number in counted {
            *counts.entry(number).or_default() += 1;
        }
    }
    counts
}

fn assert_plan(plan: &Plan, options: &NumberingOptions) {
    assert!(plan.edges.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
    assert!(plan.edges.iter().all(|e| !e.2.is_empty()));
    assert!(plan.window >= 1 && plan.window <= options.iterations);
    let counters = match plan.window {
        1 => plan.numbers,
        w => (plan.numbers + 1).pow(w.into()),
    };
    assert_eq!(plan.counters, counters);
    assert!(counters < 1 << 62);
    let longer = (plan.numbers + 1).checked_pow(u32::from(plan.window) + 1);
    assert!(plan.window == options.iterations || longer.is_none_or(|keys| keys >= 1 << 62));
    assert_eq!(plan.storage == Storage::Hash, counters > options.hash_above);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn plans_count_what_is_executed(seed: u64) {
        let random = &mut Random(seed);
        let (cfg, options) = (wild(random), any_options(random));
        let walks: Vec<_> = (0..20).filter_map(|_| walk(&cfg, random)).collect();
        let flow = flow_of(&cfg, &walks);

        let graph = PathGraph::new(&cfg, &options);
        assert_well_formed(&cfg, &graph, &options);
        let weights = any_weights(random, &cfg, &graph, &flow);
        let tree = tree::spanning(&graph, |edge| Some(weights[edge]));
        assert_numbered(&graph, &tree::increments(&graph, &tree), random);
        let plan = plan_with(&cfg, &options, &weights);
        assert_plan(&plan, &options);
        let counts = count_paths(&cfg, &graph, &options, &plan, &walks);
        let of_paths = edges::counts_of_paths(&graph, counts).unwrap();
        prop_assert_eq!(&edges::flow(&graph, &of_paths), &flow);

        let options = NumberingOptions { mode: Mode::Edges, ..options };
        let graph = PathGraph::new(&cfg, &options);
        let weights = any_weights(random, &cfg, &graph, &flow);
        let plan = plan_with(&cfg, &options, &weights);
        prop_assert_eq!((plan.window, plan.counters, plan.storage), (1, plan.numbers, Storage::Array));
        let mut counters = vec![0; plan.chords.len()];
        for walk in &walks {
            for counter in Machine::run(&cfg, &plan, 0, walk) {
                counters[counter as usize] += 1;
            }
        }
        let solved = edges::solve(&graph, &plan.chords, &counters).unwrap();
        prop_assert_eq!(&edges::flow(&graph, &solved), &flow);
        prop_assert_eq!(graph.paths(), 0);
    }
}

fn plan_with(cfg: &Cfg, options: &NumberingOptions, weights: &[u64]) -> Plan {
    pleach_ball_larus::plan(cfg, options, |_| weights.to_vec())
}
