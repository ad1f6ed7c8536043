//! How long inference takes on large functions with ragged, noisy evidence, and on many small ones.

#[path = "../tests/support/mod.rs"]
mod support;

use pleach_feedback::inference::infer;
use std::time::Instant;
use support::{Random, drop_blocks, random_cfg, sample, simulate};

fn main() {
    for (blocks, walks) in [(3000, 3000), (10_000, 10_000)] {
        let mut worst: f64 = 0.0;
        for seed in 0..5 {
            let mut random = Random(seed);
            let cfg = random_cfg(&mut random, blocks);
            let truth = simulate(&mut random, &cfg, walks);
            let mut evidence = sample(&mut random, &truth, &cfg, 0.3, 0.7);
            drop_blocks(&mut random, &cfg, &mut evidence, 0.3);
            // Walks cover a part of a large function: noise everywhere else too.
            for value in evidence.blocks.iter_mut().chain(&mut evidence.edges).flatten() {
                if *value == 0.0 && random.chance(0.7) {
                    *value = (random.unit() * 3000.0).floor();
                }
            }
            let start = Instant::now();
            let counts = infer(&cfg, &evidence, 1000.0);
            worst = worst.max(start.elapsed().as_secs_f64());
            assert_eq!(counts.blocks.len(), blocks);
            if seed == 0 {
                println!("{} blocks, {} edges", blocks, cfg.edge_count());
            }
        }
        println!("  worst of 5: {worst:.3} s");
    }
    let mut random = Random(1);
    let small: Vec<_> = (0..1000)
        .map(|_| {
            let blocks = 2 + random.below(40);
            let cfg = random_cfg(&mut random, blocks);
            let truth = simulate(&mut random, &cfg, 20);
            let mut evidence = sample(&mut random, &truth, &cfg, 0.5, 0.7);
            drop_blocks(&mut random, &cfg, &mut evidence, 0.3);
            (cfg, evidence)
        })
        .collect();
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
