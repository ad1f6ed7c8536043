//! Coverage of random programs: nothing that is called proved may lack from what was executed.

use pleach_feedback_tests::support;

use pleach_analysis::coverage::closure::Known;
use pleach_analysis::coverage::seeds::{Evidence, Seed, Seeds};
use pleach_analysis::coverage::{Coverage, Key};
use pleach_annotate::cfg::{Callee, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionGuid};
use pleach_profile::Covered;
use proptest::prelude::*;
use std::collections::BTreeSet;
use support::{Random, random_cfg};

/// Functions that call each other; the first is `main`.
fn random_program(random: &mut Random) -> Vec<Cfg> {
    let count = 1 + random.below(5);
    let name = |function: usize| FunctionGuid::of_name(&format!("f{function}"));
    (0..count)
        .map(|function| {
            let blocks = 1 + random.below(14);
            let mut cfg = random_cfg(random, blocks);
            (cfg.id.guid, cfg.name) = (name(function), format!("f{function}"));
            for call in &mut cfg.calls {
                if random.chance(0.6) {
                    call.callee = Callee::Direct(name(random.below(count + 1)));
                }
            }
            cfg
        })
        .collect()
}

/// Where an activation is.
struct Frame {
    function: usize,
    block: usize,
    /// Position in the function's calls: the next one to look at.
    call: usize,
    /// It is in a call that may not return.
    may_be_left: bool,
}

/// One execution.
struct Run {
    /// Blocks in the order in which they were entered.
    trace: Vec<(usize, usize)>,
    /// It ended by `exit`, or by returning from `main`.
    ended: bool,
}

/// Executes a program until it ends or is killed.
fn execute(random: &mut Random, program: &[Cfg]) -> Run {
    let most = 1 + random.below(400);
    let mut run = Run {
        trace: Vec::new(),
        ended: false,
    };
    let mut stack = Vec::new();
    call(&mut stack, &mut run, 0);
    while run.trace.len() < most && stack.len() < 40 {
        let Some(top): Option<&mut Frame> = stack.last_mut() else {
            run.ended = true;
            break;
        };
        let cfg = &program[top.function];
        if let Some(next) = cfg.calls.get(top.call).filter(|call| call.block.index() <= top.block) {
            top.call += 1;
            if next.block.index() < top.block {
                continue;
            }
            top.may_be_left = next.may_not_return;
            let callee = program
                .iter()
                .position(|cfg| Callee::Direct(cfg.id.guid) == next.callee);
            match callee {
                Some(callee) => call(&mut stack, &mut run, callee),
                // Code that is not annotated may end the process, or leave activations behind.
                None if next.may_not_return && may_end(&stack) && random.chance(0.1) => {
                    run.ended = true;
                    break;
                }
                None if next.may_not_return && random.chance(0.1) => leave(random, &mut stack),
                None => {}
            }
            continue;
        }
        match cfg.blocks[top.block].successors[..] {
            [] if cfg.blocks[top.block].terminator == Terminator::Unreachable => break,
            [] => {
                stack.pop();
            }
            ref successors => {
                top.block = successors[random.below(successors.len())].index();
                top.call = 0;
                run.trace.push((top.function, top.block));
            }
        }
    }
    run
}

/// `exit` may be called where everything is in calls that may not return.
fn may_end(stack: &[Frame]) -> bool {
    stack.iter().all(|frame| frame.may_be_left)
}

fn call(stack: &mut Vec<Frame>, run: &mut Run, function: usize) {
    stack.push(Frame {
        function,
        block: 0,
        call: 0,
        may_be_left: false,
    });
    run.trace.push((function, 0));
}

/// `longjmp` to an activation below, which goes on after its call: only out of calls that may not return.
fn leave(random: &mut Random, stack: &mut Vec<Frame>) {
    while stack.len() > 1 && stack.iter().rev().take(2).all(|frame| frame.may_be_left) && random.chance(0.6) {
        stack.pop();
    }
}

fn key(cfg: &Cfg) -> Key {
    (cfg.id, cfg.hash())
}

/// What a part of a run shows.
fn sample(random: &mut Random, program: &[Cfg], run: &Run, evidence: Evidence, seeds: &mut Seeds) {
    let start = random.below(run.trace.len());
    for (function, block) in run.trace.iter().skip(start).take(1 + random.below(6)) {
        let cfg = &program[*function];
        let blocks = seeds.functions.entry(key(cfg));
        let blocks = blocks.or_insert_with(|| vec![Seed::default(); cfg.blocks.len()]);
        blocks[*block].evidence = blocks[*block].evidence.max(evidence);
        blocks[*block].passed += 1;
    }
}

/// Blocks that are called proved and were not executed, and blocks that dominance proved rightly.
fn judge(program: &[Cfg], coverage: &Coverage, executed: &BTreeSet<(usize, usize)>) -> (usize, usize) {
    let (mut wrong, mut implied) = (0, 0);
    for (function, cfg) in program.iter().enumerate() {
        for (block, covered) in coverage.blocks(&key(cfg)).iter().enumerate() {
            let was = executed.contains(&(function, block));
            wrong += usize::from(*covered >= Covered::ByDominance && !was);
            implied += usize::from(*covered == Covered::ByDominance && was);
        }
    }
    (wrong, implied)
}

/// Several runs of a random program and what they prove, where a run's evidence is `of_run(ended)`.
fn trial(seed: u64, of_run: impl Fn(bool) -> Evidence, change: impl Fn(&mut Cfg)) -> (usize, usize) {
    let random = &mut Random(seed);
    let program = random_program(random);
    let (mut seeds, mut executed) = (Seeds::default(), BTreeSet::new());
    for _ in 0..1 + random.below(3) {
        let run = execute(random, &program);
        for _ in 0..random.below(3) {
            sample(random, &program, &run, of_run(run.ended), &mut seeds);
        }
        executed.extend(run.trace);
    }
    // What shadow execution predicts may be anywhere.
    let elsewhere = execute(random, &program);
    sample(random, &program, &elsewhere, Evidence::Predicted, &mut seeds);
    let mut graphs = program.clone();
    graphs.iter_mut().for_each(change);
    judge(&program, &Known::from_graphs(&graphs).close(&seeds), &executed)
}

fn rule(ended: bool) -> Evidence {
    if ended { Evidence::Completed } else { Evidence::Proved }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn what_is_proved_was_executed(seed in any::<u64>()) {
        prop_assert_eq!(trial(seed, rule, |_| ()).0, 0);
    }
}

#[test]
fn dominance_proves_something() {
    let implied: usize = (0..500).map(|seed| trial(seed, rule, |_| ()).1).sum();
    assert!(implied > 300, "{implied}");
}

#[test]
fn post_dominators_of_what_was_killed_would_be_wrong() {
    let wrong: usize = (0..500)
        .map(|seed| trial(seed, |_| Evidence::Completed, |_| ()).0)
        .sum();
    assert!(wrong > 20, "{wrong}");
}

#[test]
fn calls_that_do_not_return_matter() {
    let all_return = |cfg: &mut Cfg| cfg.calls.iter_mut().for_each(|call| call.may_not_return = false);
    let wrong: usize = (0..500).map(|seed| trial(seed, rule, all_return).0).sum();
    assert!(wrong > 20, "{wrong}");
}

/// Successors by block; 0 is the entry.
fn graph(successors: &[&[u32]]) -> Cfg {
    let mut cfg = random_cfg(&mut Random(1), successors.len());
    cfg.calls.clear();
    for (block, successors) in cfg.blocks.iter_mut().zip(successors) {
        block.successors = successors.iter().copied().map(BlockIndex).collect();
        block.terminator = if successors.is_empty() {
            Terminator::Return
        } else {
            Terminator::Branch
        };
    }
    cfg
}

fn seen(cfg: &Cfg, block: usize, evidence: Evidence) -> Vec<Covered> {
    let mut seeds = Seeds::default();
    let mut blocks = vec![Seed::default(); cfg.blocks.len()];
    blocks[block] = Seed { evidence, passed: 1 };
    seeds.functions.insert(key(cfg), blocks);
    let graphs = [cfg.clone()];
    Known::from_graphs(&graphs).close(&seeds).blocks(&key(cfg)).to_vec()
}

#[test]
fn provenance_is_told() {
    use Covered::{ByDominance, Predicted, PredictedByDominance, Proved, Unknown};
    // A loop of 1 and 2 between the entry and 4; 3 is beside.
    let cfg = graph(&[&[1, 3], &[2], &[1, 4], &[4], &[]]);
    assert_eq!(
        seen(&cfg, 2, Evidence::Completed),
        [ByDominance, ByDominance, Proved, Unknown, ByDominance]
    );
    assert_eq!(
        seen(&cfg, 2, Evidence::Proved),
        [ByDominance, ByDominance, Proved, Unknown, PredictedByDominance]
    );
    assert_eq!(
        seen(&cfg, 3, Evidence::Predicted),
        [PredictedByDominance, Unknown, Unknown, Predicted, PredictedByDominance]
    );
    // No way leads out of 1.
    let endless = graph(&[&[1, 2], &[1], &[]]);
    assert_eq!(seen(&endless, 0, Evidence::Completed), [Proved, Unknown, Unknown]);
}
