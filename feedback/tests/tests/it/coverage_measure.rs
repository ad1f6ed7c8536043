//! Coverage against exact counts: figures worked out by hand.

use pleach_feedback_tests::counts_support;

use Covered::{ByDominance, Predicted, Proved, Unknown};
use counts_support::cfg;
use pleach_analysis::coverage::measure::{Executed, Recall};
use pleach_analysis::coverage::{Coverage, FunctionCoverage};
use pleach_ball_larus::counts::exact::{ExactFunction, ExactProfile};
use pleach_ball_larus::edges::ExactFlow;
use pleach_profile::Covered;

/// A graph of four blocks with these counts and instructions.
fn exact(counts: [u64; 4], instructions: [u32; 4]) -> ExactProfile {
    let mut cfg = cfg("f", &[&[1, 2], &[3], &[3], &[]]);
    for (block, instructions) in cfg.blocks.iter_mut().zip(instructions) {
        block.instructions = instructions;
    }
    let function = ExactFunction {
        cfg,
        anchor: Default::default(),
        options: Default::default(),
        window: 0,
        paths: vec![],
        flow: ExactFlow {
            entries: counts[0],
            blocks: counts.to_vec(),
            edges: Default::default(),
            exits: vec![0; 4],
        },
    };
    ExactProfile {
        functions: vec![function],
        problems: vec![],
    }
}

fn coverage(exact: &ExactProfile, blocks: [Covered; 4], passed: [u64; 4]) -> Coverage {
    let cfg = &exact.functions[0].cfg;
    let function = FunctionCoverage {
        blocks: blocks.to_vec(),
        passed: passed.to_vec(),
        counted: Vec::new(),
    };
    Coverage {
        functions: [((cfg.id, cfg.hash()), function)].into(),
    }
}

#[test]
fn recall_is_by_instructions() {
    let exact = exact([100, 60, 0, 100], [10, 20, 40, 30]);
    let executed = Executed::from_exact(&exact);
    assert_eq!((executed.totals().instructions, executed.totals().executed), (100, 60));
    let coverage = coverage(&exact, [ByDominance, Predicted, Predicted, Unknown], [0; 4]);
    let recall = |least| executed.recall(&coverage, least);
    assert_eq!(
        recall(ByDominance),
        Recall {
            executed: 60,
            covered: 10
        }
    );
    assert_eq!(
        recall(Predicted),
        Recall {
            executed: 60,
            covered: 30
        }
    );
    // Block 2 was not executed, and is only predicted.
    let wrong = executed.false_positives(&coverage);
    assert_eq!(wrong.len(), 1);
    assert_eq!((wrong[0].block, wrong[0].is_proved()), (2, false));
    assert_eq!(Executed::default().recall(&coverage, Proved).share(), 1.0);
}

#[test]
fn the_hottest_come_first() {
    let exact = exact([100, 60, 40, 100], [10, 20, 40, 30]);
    let executed = Executed::from_exact(&exact);
    // The hottest 40 instructions are those of blocks 0 and 3, the next 20 of block 1.
    let coverage = coverage(&exact, [Proved, Unknown, Proved, Proved], [0; 4]);
    let found: Vec<_> = executed.recall_of_hottest(&coverage, &[0.2, 0.5, 1.0]);
    let recall = |executed, covered| Recall { executed, covered };
    assert_eq!(found, [recall(20, 20), recall(50, 40), recall(100, 80)]);
}

#[test]
fn divergence_is_in_bits() {
    let one = exact([8, 0, 8, 8], [1; 4]);
    let executed = Executed::from_exact(&one);
    // q = (4, 1, 4, 4) / 13, p = 1/3 each but for block 1.
    let sampled = coverage(&one, [Proved, Unknown, Proved, Proved], [3, 0, 3, 3]);
    assert!((executed.divergence(&sampled) - (13.0_f64 / 12.0).log2()).abs() < 1e-12);
    // Nothing sampled at all: q is even.
    let none = Coverage::default();
    assert!((executed.divergence(&none) - (4.0_f64 / 3.0).log2()).abs() < 1e-12);
}

#[test]
fn runs_add_up() {
    let (first, second) = (exact([5, 5, 0, 5], [1; 4]), exact([5, 0, 5, 5], [1; 4]));
    let mut executed = Executed::from_exact(&first);
    executed.add(&second);
    assert_eq!(executed.totals().executed, 4);
    let mut both = coverage(&first, [Proved, Predicted, Unknown, Unknown], [2, 1, 0, 0]);
    both.add(&coverage(
        &second,
        [ByDominance, Unknown, Proved, Unknown],
        [0, 0, 4, 0],
    ));
    assert_eq!(
        both,
        coverage(&first, [Proved, Predicted, Proved, Unknown], [2, 1, 4, 0])
    );
}
