//! Inference on random graphs: what must always hold, and how near it comes to the truth.

use pleach_feedback_tests::support;

use pleach_annotate::cfg::Cfg;
use pleach_inference::{Evidence, infer};
use proptest::prelude::*;
use support::*;

fn floats(counts: &[u64]) -> Vec<f64> {
    counts.iter().map(|&c| c as f64).collect()
}

fn known(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().map(|v| v.unwrap_or(0.0)).collect()
}

/// Any evidence at all, consistent or not, on any graph, compiler-like or not.
fn wild(random: &mut Random) -> (Cfg, Evidence) {
    let blocks = 1 + random.below(40);
    let mut cfg = random_cfg(random, blocks);
    if random.chance(0.5) {
        for block in &mut cfg.blocks {
            for successor in &mut block.successors {
                if random.chance(0.3) {
                    successor.0 = random.below(blocks) as u32;
                }
            }
        }
    }
    let size = [1.0, 10.0, 1e4, 1e9][random.below(4)];
    let unknown = random.unit();
    let mut value = |_| {
        (!random.chance(unknown)).then(|| {
            if random.chance(0.3) {
                0.0
            } else {
                (random.unit() * size).floor()
            }
        })
    };
    let evidence = Evidence {
        blocks: (0..blocks).map(&mut value).collect(),
        edges: (0..cfg.edge_count()).map(&mut value).collect(),
        entry: value(0),
    };
    (cfg, evidence)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn flow_is_conserved_whatever_the_evidence(seed: u64, scale in prop_oneof![Just(1.0), Just(1000.0), 0.01..1e6f64]) {
        let (cfg, evidence) = wild(&mut Random(seed));
        let counts = infer(&cfg, &evidence, scale);
        assert_conserved(&cfg, &counts);
    }

    #[test]
    fn complete_evidence_comes_back(seed: u64, blocks in 1usize..60) {
        let mut random = Random(seed);
        let cfg = random_cfg(&mut random, blocks);
        let truth = simulate(&mut random, &cfg, 20);
        let counts = infer(&cfg, &complete(&truth, &cfg), 1.0);
        prop_assert_eq!(&counts.blocks, &truth.blocks);
        prop_assert_eq!(merged(&cfg, &counts.edges), truth.edges);
        prop_assert_eq!(counts.entry, truth.entries);
    }
}

/// Mean over random functions of some figure.
fn mean(functions: u64, mut figure: impl FnMut(&mut Random, &Cfg, &Truth) -> f64) -> f64 {
    let mut random = Random(7);
    let mut figures = Vec::new();
    while figures.len() < functions as usize {
        let cfg = {
            let blocks = 10 + random.below(80);
            random_cfg(&mut random, blocks)
        };
        let truth = simulate(&mut random, &cfg, 200);
        if truth.entries > 0 && truth.blocks.iter().filter(|&&b| b > 0).count() > 5 {
            figures.push(figure(&mut random, &cfg, &truth));
        }
    }
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[test]
fn missing_blocks_are_filled_in() {
    let at = |share: f64| {
        mean(100, |random, cfg, truth| {
            let mut evidence = complete(truth, cfg);
            drop_blocks(random, cfg, &mut evidence, share);
            let counts = infer(cfg, &evidence, 1000.0);
            assert_conserved(cfg, &counts);
            overlap(&floats(&merged(cfg, &counts.edges)), &floats(&truth.edges))
        })
    };
    let (some, half) = (at(0.3), at(0.5));
    println!("edge overlap: {some:.4} without 30 % of the blocks, {half:.4} without 50 %");
    assert!(some > 0.93, "{some}");
    assert!(half > 0.85, "{half}");
}

#[test]
fn noise_is_lowered() {
    for (probability, completeness) in [(0.02, 1.0), (0.1, 1.0), (0.1, 0.6), (0.5, 0.6)] {
        let divergences = |inferred: bool| {
            mean(100, |random, cfg, truth| {
                let evidence = sample(random, truth, cfg, probability, completeness);
                let counts = infer(cfg, &evidence, 1000.0);
                let estimate: Vec<f64> = match inferred {
                    true => merged(cfg, &counts.edges).iter().map(|&e| e as f64 / 1000.0).collect(),
                    false => known(&evidence.edges),
                };
                divergence(&floats(&truth.edges), &estimate, 0.5)
            })
        };
        let (raw, inferred) = (divergences(false), divergences(true));
        println!("sampled {probability}, transitions {completeness}: KL of edges {raw:.4} raw, {inferred:.4} inferred");
        assert!(inferred < raw, "{raw} {inferred}");
    }
}

#[test]
fn noise_is_lowered_in_ragged_evidence() {
    let divergences = |inferred: bool| {
        mean(100, |random, cfg, truth| {
            let mut evidence = sample(random, truth, cfg, 0.1, 0.7);
            drop_blocks(random, cfg, &mut evidence, 0.3);
            let counts = infer(cfg, &evidence, 1000.0);
            let estimate: Vec<f64> = match inferred {
                true => counts.blocks.iter().map(|&b| b as f64 / 1000.0).collect(),
                false => known(&evidence.blocks),
            };
            divergence(&floats(&truth.blocks), &estimate, 0.5)
        })
    };
    let (raw, inferred) = (divergences(false), divergences(true));
    println!("30 % dropped, sampled 0.1: KL of blocks {raw:.4} raw, {inferred:.4} inferred");
    assert!(inferred < raw / 2.0, "{raw} {inferred}");
}
