//! Crediting against simulated programs whose path counts are known exactly.

use pleach_feedback_tests::support;

use pleach_analysis::credit::{Crediting, EdgeProbabilities, Flows, credit};
use pleach_analysis::iterations::Forest;
use pleach_analysis::partial_path::PartialPath;
use pleach_analysis::partial_paths::callers::Called;
use pleach_analysis::partial_paths::inline_instance::Graph;
use pleach_analysis::partial_paths::{Evidence, FunctionEvidence, Observation};
use pleach_analysis::replicates::{REPLICATES, Times, multipliers};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_annotate::testing::cfg;
use pleach_ball_larus::{End, NumberingOptions, Path, Start};
use pleach_profile::path_profile::PathProfile;
use pleach_profile::{Anchor, EstimatedPath};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use support::{Random, random_cfg};

/// One function that is called over and over.
struct Simulated {
    cfg: Cfg,
    graph: Graph,
    /// All blocks that were entered, with the number of the path that each belongs to.
    blocks: Vec<(BlockIndex, usize)>,
    /// All paths in order; self loops that are counted apart are paths between others' blocks.
    paths: Vec<Path>,
    exact: BTreeMap<Path, u64>,
}

impl Simulated {
    /// Runs a function until so many blocks were entered; fewer where it loops without end. What a block does depends
    /// on what the one two before did, so that edges alone do not tell paths.
    fn run(cfg: Cfg, random: &mut Random, entries: usize) -> Self {
        let graph = Graph::new(&cfg, &NumberingOptions::default());
        let mut bias = HashMap::new();
        let (mut blocks, mut paths): (Vec<(BlockIndex, usize)>, Vec<Path>) = Default::default();
        let mut endless = 0;
        while blocks.len() < entries && endless < 10 {
            let (mut at, mut before) = (BlockIndex::ENTRY, BlockIndex::ENTRY);
            let mut open = (Start::Entry, vec![at]);
            let (mut first, mut first_path) = (blocks.len(), paths.len());
            blocks.push((at, usize::MAX));
            loop {
                let successors = graph.successors(at);
                if successors.is_empty() {
                    Self::close(&mut blocks[first..], &mut paths, open, End::Exit);
                    break;
                }
                let favoured = *bias
                    .entry((before, at))
                    .or_insert_with(|| random.below(successors.len()));
                let next = successors[if random.chance(0.85) {
                    favoured
                } else {
                    random.below(successors.len())
                }];
                if blocks.len() - first > 5000 {
                    // Never mind loops that do not end.
                    blocks.truncate(first);
                    paths.truncate(first_path);
                    endless += 1;
                    break;
                }
                match graph.end_at(at, next) {
                    None => {
                        open.1.push(next);
                        blocks.push((next, usize::MAX));
                    }
                    Some(end) if graph.is_counted_self_loop(at, next) => {
                        blocks.push((next, paths.len()));
                        paths.push(Path {
                            start: Start::Inside,
                            blocks: vec![next],
                            end,
                        });
                    }
                    Some(end) => {
                        let ended = std::mem::replace(&mut open, (Start::Inside, vec![next]));
                        Self::close(&mut blocks[first..], &mut paths, ended, end);
                        (first, first_path) = (blocks.len(), paths.len());
                        blocks.push((next, usize::MAX));
                    }
                }
                (before, at) = (at, next);
            }
        }
        let mut exact = BTreeMap::new();
        for path in &paths {
            *exact.entry(path.clone()).or_default() += 1;
        }
        Self {
            cfg,
            graph,
            blocks,
            paths,
            exact,
        }
    }

    fn close(
        blocks: &mut [(BlockIndex, usize)],
        paths: &mut Vec<Path>,
        (start, all): (Start, Vec<BlockIndex>),
        end: End,
    ) {
        let open = blocks.iter_mut().filter(|(_, path)| *path == usize::MAX);
        open.for_each(|(_, path)| *path = paths.len());
        paths.push(Path {
            start,
            blocks: all,
            end,
        });
    }

    /// What bursts of `length` block entries show that begin at these places.
    fn evidence(self, begins: &[usize], length: usize) -> (Evidence, BTreeMap<Path, u64>) {
        let mut sums: BTreeMap<PartialPath, Times> = BTreeMap::new();
        for (cluster, &begin) in begins.iter().enumerate() {
            let end = (begin + length).min(self.blocks.len());
            let multipliers = multipliers(cluster as u64);
            for piece in self.pieces(begin, end) {
                let times = sums.entry(piece).or_insert([0.0; REPLICATES + 1]);
                times.iter_mut().zip(&multipliers).for_each(|(t, m)| *t += m);
            }
        }
        let observations = sums.into_iter().map(|(piece, times)| Observation {
            alternatives: vec![vec![piece]],
            times,
        });
        let function = FunctionEvidence {
            name: self.cfg.name.clone(),
            shown: vec![true; self.cfg.blocks.len()],
            observations: observations.collect(),
            graph: self.graph,
            windows: Forest::default(),
            called: Called::default(),
        };
        let key: (FunctionId, CfgHash) = (self.cfg.id, self.cfg.hash());
        let evidence = Evidence {
            functions: BTreeMap::from([(key, function)]),
            ..Evidence::default()
        };
        (evidence, self.exact)
    }

    fn pieces(&self, begin: usize, end: usize) -> Vec<PartialPath> {
        let mut pieces: BTreeMap<usize, (usize, Vec<BlockIndex>)> = BTreeMap::new();
        for (position, &(block, path)) in self.blocks[begin..end].iter().enumerate() {
            let (_, blocks) = pieces.entry(path).or_insert((begin + position, Vec::new()));
            blocks.push(block);
        }
        let pieces = pieces.into_iter().map(|(number, (first, blocks))| {
            let path = &self.paths[number];
            // Its blocks may have those of self loops between them.
            let is_first = first == 0 || !self.blocks[..first].iter().rev().take(5100).any(|&(_, p)| p == number);
            let ends_here = blocks.last() == path.blocks.last();
            let last = (first..end).rev().find(|&at| self.blocks[at].1 == number);
            // A turn of a self loop is over as soon as it is entered: the path around it goes on.
            let is_turn = |at: usize| self.graph.is_counted_self_loop(self.blocks[at].0, self.blocks[at].0);
            let is_over = |last| path.end == End::Exit || (path.blocks.len() == 1 && is_turn(last)) || last + 1 < end;
            let is_followed = last.is_some_and(is_over);
            PartialPath {
                start: is_first.then_some(path.start),
                end: (ends_here && is_followed).then_some(path.end),
                blocks,
            }
        });
        pieces.collect()
    }
}

fn shares(paths: &BTreeMap<Path, u64>) -> BTreeMap<&Path, f64> {
    let all: u64 = paths.values().sum();
    paths.iter().map(|(p, &c)| (p, c as f64 / all as f64)).collect()
}

fn estimates(profile: &PathProfile) -> &[EstimatedPath] {
    profile.functions.first().map_or(&[], |f| &f.paths)
}

fn overlap(profile: &PathProfile, exact: &BTreeMap<Path, u64>) -> f64 {
    let (exact, all) = (shares(exact), profile.total());
    let common = estimates(profile)
        .iter()
        .map(|e| f64::min(e.count / all, exact.get(&e.path).copied().unwrap_or(0.0)));
    common.sum()
}

fn begins(random: &mut Random, entries: usize, length: usize, bursts: usize) -> Vec<usize> {
    (0..bursts).map(|_| random.below(entries - length)).collect()
}

fn simulated(seed: u64, blocks: usize, entries: usize) -> (Simulated, Random) {
    let mut random = Random(seed);
    let cfg = random_cfg(&mut random, blocks);
    let simulated = Simulated::run(cfg, &mut random, entries);
    (simulated, random)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// One burst that sees everything makes the exact profile, and knows it.
    #[test]
    fn what_is_seen_whole_is_counted_exactly(seed in any::<u64>(), blocks in 1usize..30) {
        let (simulated, _) = simulated(seed, blocks, 2000);
        let entries = simulated.blocks.len();
        prop_assume!(entries >= 2000);
        let (evidence, exact) = simulated.evidence(&[0], entries);
        for crediting in [Crediting::Em, Crediting::Equal] {
            let profile = credit(&evidence, Anchor::Early, crediting, &Flows::default());
            let listed: BTreeMap<_, _> = estimates(&profile).iter().map(|e| (e.path.clone(), e.count.round() as u64)).collect();
            prop_assert_eq!(&listed, &exact);
        }
    }

    /// Each block that was seen is on one path in the end: path counts times lengths are the blocks that were seen.
    #[test]
    fn nothing_is_lost_or_made_up(seed in any::<u64>(), blocks in 1usize..30, length in 3usize..60) {
        let (simulated, mut random) = simulated(seed, blocks, 4000);
        prop_assume!(simulated.blocks.len() >= 4000);
        let begins = begins(&mut random, simulated.blocks.len(), length, 40);
        let (evidence, _) = simulated.evidence(&begins, length);
        let profile = credit(&evidence, Anchor::Early, Crediting::Em, &Flows::default());
        let blocks: f64 = estimates(&profile).iter().map(|e| e.count * e.path.blocks.len() as f64).sum();
        let seen = (40 * length) as f64;
        prop_assert!(profile.functions.iter().all(|f| f.unlisted == 0.0));
        prop_assert!((blocks - seen).abs() <= seen * 1e-3, "{} of {}", blocks, seen);
    }

    /// The matching set of a piece is what the graph's paths say, found one by one.
    #[test]
    fn matching_sets_are_those_of_enumeration(seed in any::<u64>(), blocks in 1usize..16) {
        let (simulated, mut random) = simulated(seed, blocks, 300);
        let paths = &simulated.graph.paths;
        prop_assume!(simulated.blocks.len() >= 300 && paths.paths() <= 2000);
        let begin = random.below(simulated.blocks.len() - 20);
        for piece in simulated.pieces(begin, begin + 20) {
            if piece.whole().is_some() {
                continue;
            }
            let mut matching = paths.containing(piece.start, &piece.blocks, piece.end, 10_000);
            matching.sort();
            let mut all: Vec<Path> = (0..paths.paths()).filter_map(|n| paths.path(n)).filter(|p| piece.is_of(p)).collect();
            all.sort();
            prop_assert_eq!(matching, all);
        }
    }
}

/// A diamond whose sides left no probes: what was observed does not tell them apart, the inferred counts of edges do.
/// A function of two arms, 100 executions of which show neither. `shown`: whether other executions show the arms.
fn two_arms(cfg: &Cfg, shown: bool) -> Evidence {
    let side = |block| PartialPath {
        start: Some(Start::Entry),
        blocks: [0, block, 3].map(BlockIndex).to_vec(),
        end: Some(End::Exit),
    };
    let function = FunctionEvidence {
        name: cfg.name.clone(),
        shown: vec![true, shown, shown, true],
        observations: vec![Observation {
            alternatives: vec![vec![side(1)], vec![side(2)]],
            times: [100.0; REPLICATES + 1],
        }],
        graph: Graph::new(cfg, &NumberingOptions::default()),
        windows: Forest::default(),
        called: Called::default(),
    };
    Evidence {
        functions: BTreeMap::from([((cfg.id, cfg.hash()), function)]),
        clusters: 100,
        ..Evidence::default()
    }
}

#[test]
fn intervals_of_paths_that_nothing_tells_apart_hold_all_that_each_may_have() {
    let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
    for (shown, widths) in [(false, 99.0..=100.0), (true, 0.0..=50.0)] {
        let profile = credit(&two_arms(&cfg, shown), Anchor::Early, Crediting::Em, &Flows::default());
        for path in estimates(&profile) {
            assert!((path.count - 50.0).abs() < 1.0, "{path:?}");
            assert!(widths.contains(&(path.high - path.low)), "{path:?}");
        }
    }
}

#[test]
fn edges_decide_between_paths_that_look_the_same() {
    let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
    let key = (cfg.id, cfg.hash());
    let evidence = two_arms(&cfg, false);
    let counts = |flows: &Flows| -> Vec<f64> {
        let profile = credit(&evidence, Anchor::Early, Crediting::Em, flows);
        let of = |block| {
            estimates(&profile)
                .iter()
                .find(|e| e.path.blocks[1] == BlockIndex(block))
                .map_or(0.0, |e| e.count)
        };
        vec![of(1), of(2)]
    };
    let near = |found: Vec<f64>, expected: [f64; 2]| {
        assert!(
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1.0),
            "{found:?}"
        );
    };
    near(counts(&Flows::default()), [50.0, 50.0]);
    let flows = |edges: &[u64]| Flows::from_iter([(key, EdgeProbabilities::from_counts(&cfg, edges))]);
    near(counts(&flows(&[9000, 1000, 9000, 1000])), [90.0, 10.0]);
    // Nothing is excluded by inference alone.
    let [rare, often] = counts(&flows(&[0, 10_000, 0, 10_000]))[..] else {
        panic!()
    };
    assert!(rare > 0.0 && rare < 1.0 && often > 99.0, "{rare} {often}");
    // Nothing is inferred.
    near(counts(&flows(&[0, 0, 0, 0])), [50.0, 50.0]);
}

/// Expectation maximisation recovers path weights from short vectors, where equal crediting does not and edges cannot.
#[test]
fn maximum_likelihood_recovers_correlated_paths() {
    let mut sums = [0.0; 3];
    let count = 24;
    for seed in 0..count {
        let (simulated, mut random) = simulated(1000 + seed, 24, 40_000);
        let begins = begins(&mut random, simulated.blocks.len(), 12, 4000);
        let (evidence, exact) = simulated.evidence(&begins, 12);
        for (sum, crediting) in sums
            .iter_mut()
            .zip([Crediting::Em, Crediting::Equal, Crediting::Independent])
        {
            *sum += overlap(&credit(&evidence, Anchor::Early, crediting, &Flows::default()), &exact) / count as f64;
        }
    }
    let [em, equal, independent] = sums;
    assert!(em > 0.93, "{sums:?}");
    assert!(em > equal + 0.05 && em > independent + 0.05, "{sums:?}");
}

/// True shares of hot paths lie in their 90 % intervals about nine times in ten.
#[test]
fn intervals_hold_what_they_promise() {
    let (mut inside, mut all) = (0, 0);
    for seed in 0..60 {
        let (simulated, mut random) = simulated(seed, 20, 60_000);
        let begins = begins(&mut random, simulated.blocks.len(), 100, 300);
        let (evidence, exact) = simulated.evidence(&begins, 100);
        let profile = credit(&evidence, Anchor::Early, Crediting::Em, &Flows::default());
        let total = profile.total();
        let found: BTreeMap<_, _> = estimates(&profile).iter().map(|e| (&e.path, e)).collect();
        for (path, share) in shares(&exact).into_iter().filter(|&(_, share)| share >= 0.00125) {
            all += 1;
            let holds = |e: &&EstimatedPath| e.low <= share * total && share * total <= e.high;
            inside += usize::from(found.get(path).is_some_and(holds));
        }
    }
    let share = inside as f64 / all as f64;
    assert!(all > 300 && (0.85..=0.95).contains(&share), "{inside} of {all}");
}
