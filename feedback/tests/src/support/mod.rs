//! Random graphs and walks over them.
#![allow(dead_code, reason = "every test binary uses its own part")]

pub mod activation;

use pleach_annotate::cfg::{Block, Call, Callee, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionGuid, FunctionId, ModuleHash};
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{NumberingOptions, Path};
use pleach_inference::{Evidence, FlowCounts};
use pleach_profile::{Covered, EstimatedPath, FunctionProfile, Profile, Provenance};
use std::collections::BTreeSet;

/// SplitMix64: small, and the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.word() % end.max(1) as u64) as usize
    }

    /// In 0…1.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// How many of `count` events are sampled.
    pub fn thin(&mut self, count: u64, probability: f64) -> u64 {
        let mean = count as f64 * probability;
        if count < 64 {
            return (0..count).filter(|_| self.chance(probability)).count() as u64;
        }
        // Twelve uniform numbers: near enough to normal, and bounded.
        let normal: f64 = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        (mean + normal * (mean * (1.0 - probability)).sqrt())
            .round()
            .clamp(0.0, count as f64) as u64
    }
}

/// A graph like a compiler's: mostly forward edges to near blocks, loops, switches with repeated targets, exception
/// handling, calls that may not return.
pub fn random_cfg(random: &mut Random, blocks: usize) -> Cfg {
    let n = blocks.max(1);
    let mut cfg = Cfg {
        id: FunctionId {
            guid: FunctionGuid(random.word()),
            module: ModuleHash(0),
        },
        module: ModuleHash(1),
        name: format!("f{n}"),
        source_file: "f.c".into(),
        blocks: Vec::with_capacity(n),
        calls: Vec::new(),
    };
    // A block may return only where another way leads past it: all blocks can be reached.
    let mut targeted = vec![false; n + 1];
    for block in 0..n {
        let near = |random: &mut Random| {
            let range = if random.chance(0.9) { 4 } else { 40 };
            let ahead = block + 1 + random.below(range);
            BlockIndex(ahead.min(n - 1) as u32)
        };
        let back = |random: &mut Random| BlockIndex(block.saturating_sub(random.below(12)).max(1) as u32);
        let kind = random.unit();
        let (successors, terminator) = if block + 1 == n || (targeted[block + 1] && kind < 0.06) {
            (
                vec![],
                if block + 1 < n && random.chance(0.3) {
                    Terminator::Unreachable
                } else {
                    Terminator::Return
                },
            )
        } else if kind < 0.35 {
            (vec![BlockIndex(block as u32 + 1)], Terminator::Branch)
        } else if kind < 0.75 || block == 0 {
            (vec![BlockIndex(block as u32 + 1), near(random)], Terminator::Branch)
        } else if kind < 0.92 {
            (vec![back(random), BlockIndex(block as u32 + 1)], Terminator::Branch)
        } else {
            let cases = 3 + random.below(6);
            let mut targets: Vec<BlockIndex> = (0..cases).map(|_| near(random)).collect();
            targets.push(BlockIndex(block as u32 + 1));
            (targets, Terminator::Switch)
        };
        successors.iter().for_each(|s| targeted[s.index()] = true);
        if random.chance(0.4) {
            let call = Call {
                block: BlockIndex(block as u32),
                callee: Callee::Indirect,
                may_not_return: random.chance(0.8),
            };
            cfg.calls.push(call);
        }
        cfg.blocks.push(Block {
            successors,
            terminator,
            is_eh_pad: block > 0 && random.chance(0.03),
            instructions: 4,
            line: 0,
        });
    }
    cfg
}

/// Exact counts of walks from the entry.
#[derive(Clone, Debug)]
pub struct Truth {
    pub blocks: Vec<u64>,
    /// By slot; slots of one target are counted in the first of them.
    pub edges: Vec<u64>,
    pub entries: u64,
}

/// Walks through a function, with skewed probabilities that stay the same on every walk. Walks that get too long are
/// not counted, so that every block's entries equal what leaves it.
pub fn simulate(random: &mut Random, cfg: &Cfg, walks: u64) -> Truth {
    let bases = cfg.edge_bases();
    let mut truth = Truth {
        blocks: vec![0; cfg.blocks.len()],
        edges: vec![0; cfg.edge_count()],
        entries: 0,
    };
    let weights: Vec<Vec<f64>> = cfg
        .blocks
        .iter()
        .map(|b| {
            b.successors
                .iter()
                .map(|&s| {
                    if cfg.blocks[s.index()].is_eh_pad {
                        1e-4
                    } else {
                        random.unit().powi(4) + 0.002
                    }
                })
                .collect()
        })
        .collect();
    for _ in 0..walks {
        let mut trail = Vec::new();
        let mut block = 0;
        let finished = loop {
            let successors = &cfg.blocks[block].successors;
            if successors.is_empty() {
                break true;
            }
            if trail.len() > 3000 {
                break false;
            }
            let mut left = random.unit() * weights[block].iter().sum::<f64>();
            let slot = weights[block].iter().position(|w| {
                left -= w;
                left <= 0.0
            });
            let slot = slot.unwrap_or(successors.len() - 1);
            let first = successors.iter().position(|s| *s == successors[slot]).unwrap_or(slot);
            trail.push((block, bases[block] as usize + first));
            block = successors[slot].index();
        };
        if finished {
            truth.entries += 1;
            truth.blocks[block] += 1;
            for (from, edge) in trail {
                truth.blocks[from] += 1;
                truth.edges[edge] += 1;
            }
        }
    }
    truth
}

/// Everything was seen.
pub fn complete(truth: &Truth, cfg: &Cfg) -> Evidence {
    let first = first_slots(cfg);
    Evidence {
        blocks: truth.blocks.iter().map(|&b| Some(b as f64)).collect(),
        edges: truth
            .edges
            .iter()
            .zip(first)
            .map(|(&e, first)| first.then_some(e as f64))
            .collect(),
        entry: None,
    }
}

/// Which slots are the first of their target.
pub fn first_slots(cfg: &Cfg) -> Vec<bool> {
    let of_block = |b: &Block| {
        let s = b.successors.clone();
        (0..s.len()).map(move |i| !s[..i].contains(&s[i])).collect::<Vec<_>>()
    };
    cfg.blocks.iter().flat_map(of_block).collect()
}

/// Independent Poisson-like noise on every count; the way into a block is known with probability `completeness`.
pub fn sample(random: &mut Random, truth: &Truth, cfg: &Cfg, probability: f64, completeness: f64) -> Evidence {
    let first = first_slots(cfg);
    let blocks = truth
        .blocks
        .iter()
        .map(|&b| Some(random.thin(b, probability) as f64))
        .collect();
    let edges = truth
        .edges
        .iter()
        .zip(first)
        .map(|(&e, first)| first.then(|| random.thin(e, probability * completeness) as f64));
    Evidence {
        blocks,
        edges: edges.collect(),
        entry: None,
    }
}

/// Takes away blocks' evidence, and that of all transitions to and from them.
pub fn drop_blocks(random: &mut Random, cfg: &Cfg, evidence: &mut Evidence, share: f64) {
    let bases = cfg.edge_bases();
    let dropped: Vec<bool> = cfg.blocks.iter().map(|_| random.chance(share)).collect();
    for (index, block) in cfg.blocks.iter().enumerate() {
        if dropped[index] {
            evidence.blocks[index] = None;
        }
        for (slot, successor) in block.successors.iter().enumerate() {
            if dropped[index] || dropped[successor.index()] {
                evidence.edges[bases[index] as usize + slot] = None;
            }
        }
    }
}

/// Counts by slot with those of one target added up in the first.
pub fn merged(cfg: &Cfg, edges: &[u64]) -> Vec<u64> {
    let bases = cfg.edge_bases();
    let mut out = vec![0; edges.len()];
    for (index, block) in cfg.blocks.iter().enumerate() {
        for (slot, successor) in block.successors.iter().enumerate() {
            let first = block.successors.iter().position(|s| s == successor).unwrap_or(slot);
            out[bases[index] as usize + first] += edges[bases[index] as usize + slot];
        }
    }
    out
}

/// Σ min of the two distributions: 1 for equal ones.
pub fn overlap(a: &[f64], b: &[f64]) -> f64 {
    let (sum_a, sum_b): (f64, f64) = (a.iter().sum(), b.iter().sum());
    if sum_a == 0.0 || sum_b == 0.0 {
        return f64::from(u8::from(sum_a == sum_b));
    }
    a.iter().zip(b).map(|(x, y)| (x / sum_a).min(y / sum_b)).sum()
}

/// Kullback–Leibler divergence of an estimate from the truth, with `add` added to every count of the estimate's
/// samples.
pub fn divergence(truth: &[f64], estimate: &[f64], add: f64) -> f64 {
    let (sum_t, sum_e): (f64, f64) = (truth.iter().sum(), estimate.iter().map(|e| e + add).sum());
    let term = |(&t, &e): (&f64, &f64)| {
        if t > 0.0 {
            t / sum_t * ((t / sum_t) / ((e + add) / sum_e)).ln()
        } else {
            0.0
        }
    };
    truth.iter().zip(estimate).map(term).sum()
}

/// Every entry of a block leaves it, and all slots exist.
pub fn assert_conserved(cfg: &Cfg, counts: &FlowCounts) {
    assert_eq!(
        (counts.blocks.len(), counts.edges.len()),
        (cfg.blocks.len(), cfg.edge_count())
    );
    let bases = cfg.edge_bases();
    let mut entering = vec![0; cfg.blocks.len()];
    if let Some(entry) = entering.first_mut() {
        *entry = counts.entry;
    }
    for (index, block) in cfg.blocks.iter().enumerate() {
        let base = bases[index] as usize;
        let leaving: u64 = counts.edges[base..base + block.successors.len()].iter().sum();
        assert_eq!(
            counts.blocks[index],
            leaving + counts.exits[index],
            "block {index} of {cfg:?}"
        );
        for (slot, successor) in block.successors.iter().enumerate() {
            entering[successor.index()] += counts.edges[base + slot];
        }
    }
    assert_eq!(counts.blocks, entering);
    assert_connected(cfg, counts);
}

/// Every block with a count can be reached from the entry over edges with counts.
fn assert_connected(cfg: &Cfg, counts: &FlowCounts) {
    let bases = cfg.edge_bases();
    let mut reached = vec![false; cfg.blocks.len()];
    let mut stack = if counts.entry > 0 { vec![0] } else { vec![] };
    while let Some(block) = stack.pop() {
        if !std::mem::replace(&mut reached[block], true) {
            for (slot, successor) in cfg.blocks[block].successors.iter().enumerate() {
                if counts.edges[bases[block] as usize + slot] > 0 {
                    stack.push(successor.index());
                }
            }
        }
    }
    assert!(
        (0..reached.len()).all(|b| reached[b] || counts.blocks[b] == 0),
        "{cfg:?} {counts:?}"
    );
}

/// Different paths of a function, at most 24.
fn some_paths(random: &mut Random, cfg: &Cfg) -> Vec<Path> {
    let graph = PathGraph::new(cfg, &NumberingOptions::default());
    let paths = (0..24).filter_map(|_| graph.path(random.word() % graph.numbers().max(1)));
    let paths: BTreeSet<Path> = paths.collect();
    paths.into_iter().collect()
}

/// Estimates of paths, the first most executed, of values that a file holds exactly.
fn estimates(paths: &[Path], times: u64) -> Vec<EstimatedPath> {
    let estimate = |(rank, path): (usize, &Path)| {
        let count = f64::from((times as f64 / (rank + 1) as f64) as f32);
        EstimatedPath {
            path: path.clone(),
            count,
            low: f64::from((count * 0.9) as f32),
            high: f64::from((count * 1.2) as f32),
            effective: f64::from((count / 700.0) as f32),
        }
    };
    paths.iter().enumerate().map(estimate).collect()
}

fn covered(blocks: &[u64], times: u64) -> Vec<Covered> {
    let state = |&count: &u64| match count * times {
        0 => Covered::Unknown,
        1..2000 => Covered::ByDominance,
        _ => Covered::Proved,
    };
    blocks.iter().map(state).collect()
}

/// A profile of made-up functions with consistent counts, a fifth of them executed, named after their numbers.
pub fn synthetic_profile(random: &mut Random, functions: usize, blocks: usize) -> Profile {
    // A few graphs are enough: records differ by their counts.
    let graphs: Vec<(Cfg, Truth, Vec<Path>)> = (0..64)
        .map(|_| {
            let size = (blocks / 2 + random.below(blocks + 1)).max(1);
            let cfg = random_cfg(random, size);
            let truth = simulate(random, &cfg, 20);
            let paths = some_paths(random, &cfg);
            (cfg, truth, paths)
        })
        .collect();
    let function = |number: usize| {
        let (cfg, truth, walked) = &graphs[random.below(graphs.len())];
        let times = if random.chance(0.2) {
            1 + random.word() % 1_000_000
        } else {
            0
        };
        let scaled = |counts: &[u64]| counts.iter().map(|c| c * times).collect::<Vec<_>>();
        let walked = if times > 0 { &walked[..] } else { &[] };
        let name = format!("_ZN9synthetic8function{number}Ev");
        FunctionProfile {
            id: FunctionId {
                guid: FunctionGuid::of_name(&name),
                module: ModuleHash(0),
            },
            cfg_hash: cfg.hash(),
            name,
            samples: truth.blocks.iter().sum::<u64>() * times / 1000,
            blocks: scaled(&truth.blocks),
            edges: scaled(&truth.edges),
            paths: estimates(walked, times),
            coverage: covered(&truth.blocks, times),
            ..FunctionProfile::default()
        }
    };
    let mut profile = Profile {
        provenance: Provenance {
            commands: vec!["synthetic".into()],
            ..Provenance::default()
        },
        scale: 1000.0,
        functions: (0..functions).map(function).collect(),
        ..Profile::default()
    };
    profile.functions.sort_by_key(|f| f.id);
    profile
}
