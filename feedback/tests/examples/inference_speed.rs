//! How long inference takes on large functions with ragged, noisy evidence, and on many small ones.

use pleach_feedback_tests::support;

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_inference::{Evidence, infer};
use std::time::Instant;
use support::{Random, drop_blocks, random_cfg, sample, simulate};

fn main() {
    let mut random = Random(1);
    for blocks in [3000, 10_000] {
        for (name, shape) in SHAPES {
            let mut worst: f64 = 0.0;
            let mut edges = 0;
            for _ in 0..3 {
                let cfg = shape(&mut random, blocks);
                let evidence = noise(&mut random, &cfg);
                let start = Instant::now();
                infer(&cfg, &evidence, 1000.0);
                worst = worst.max(start.elapsed().as_secs_f64());
                edges = cfg.edge_count();
            }
            println!("{blocks} blocks, {edges} edges, {name}: worst of 3: {worst:.3} s");
        }
    }
    many_small(&mut random);
}

type Shape = fn(&mut Random, usize) -> Cfg;

const SHAPES: [(&str, Shape); 4] = [
    ("like a compiler's", random_cfg),
    ("irreducible", |random, blocks| {
        let mut cfg = random_cfg(random, blocks);
        for block in cfg.blocks.iter_mut().filter(|b| b.successors.len() > 1) {
            block.successors.push(BlockIndex(1 + random.below(blocks - 1) as u32));
        }
        cfg
    }),
    ("one long loop", |random, blocks| {
        let mut cfg = random_cfg(random, blocks);
        for (index, block) in cfg.blocks.iter_mut().enumerate() {
            let next = if index + 2 == blocks { 1 } else { index + 1 };
            block.successors = if index + 1 == blocks {
                vec![]
            } else {
                vec![BlockIndex(next as u32)]
            };
        }
        cfg.blocks[blocks - 2].successors.push(BlockIndex(blocks as u32 - 1));
        cfg
    }),
    ("an interpreter's loop", |random, blocks| {
        let mut cfg = random_cfg(random, blocks);
        let last = blocks - 1;
        for (index, block) in cfg.blocks.iter_mut().enumerate() {
            block.successors = match index {
                0 => vec![BlockIndex(1)],
                1 => (2..blocks as u32).map(BlockIndex).collect(),
                _ if index == last => vec![],
                _ => vec![BlockIndex(1)],
            };
        }
        cfg
    }),
];

/// Evidence without any consistency: half of the blocks cold, 30 % unknown.
fn noise(random: &mut Random, cfg: &Cfg) -> Evidence {
    let count = |random: &mut Random| {
        let size = 10f64.powf(random.unit() * 5.0);
        Some(if random.chance(0.5) {
            0.0
        } else {
            (random.unit() * size).floor()
        })
    };
    let mut evidence = Evidence {
        blocks: cfg.blocks.iter().map(|_| count(random)).collect(),
        edges: (0..cfg.edge_count()).map(|_| count(random)).collect(),
        entry: None,
    };
    drop_blocks(random, cfg, &mut evidence, 0.3);
    evidence
}

fn many_small(random: &mut Random) {
    let mut one = || {
        let blocks = 2 + random.below(40);
        let cfg = random_cfg(random, blocks);
        let truth = simulate(random, &cfg, 20);
        let mut evidence = sample(random, &truth, &cfg, 0.5, 0.7);
        drop_blocks(random, &cfg, &mut evidence, 0.3);
        (cfg, evidence)
    };
    let small: Vec<_> = (0..1000).map(|_| one()).collect();
    let start = Instant::now();
    let total: u64 = (0..100)
        .flat_map(|_| &small)
        .map(|(cfg, evidence)| infer(cfg, evidence, 1000.0).entry)
        .sum();
    println!(
        "100 000 functions of 2…41 blocks: {:.2} s (entries {total})",
        start.elapsed().as_secs_f64()
    );
}
