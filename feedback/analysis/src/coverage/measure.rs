//! Coverage against exact counts (thesis §5.3, §5.5 and §5.6). The operations of the thesis are IR instructions here.

use super::{Coverage, Key};
use pleach_ball_larus::counts::exact::{ExactFunction, ExactProfile};
use pleach_profile::Covered;
use std::collections::{BTreeMap, BTreeSet};

/// The executed blocks: exact counts of one or several runs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Executed {
    /// Blocks of functions whose counts are complete.
    blocks: BTreeMap<Key, Vec<Block>>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Block {
    instructions: u64,
    count: u64,
}

/// Instructions of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Instructions of all counted functions.
    pub instructions: u64,
    /// Executed instructions.
    pub executed: u64,
}

/// The covered share of the executed instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recall {
    /// Executed instructions.
    pub executed: u64,
    /// Executed instructions in covered blocks, proved or predicted.
    pub covered: u64,
}

impl Recall {
    fn add(&mut self, executed: &Block, is_covered: bool) {
        self.executed += executed.instructions;
        self.covered += if is_covered { executed.instructions } else { 0 };
    }

    /// The covered share; 1 if nothing was executed.
    pub fn share(&self) -> f64 {
        if self.executed == 0 {
            1.0
        } else {
            self.covered as f64 / self.executed as f64
        }
    }
}

/// A block that is covered but was not executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FalsePositive {
    /// The function.
    pub function: Key,
    /// Position of the block.
    pub block: usize,
    /// Its coverage.
    pub covered: Covered,
}

impl FalsePositive {
    /// Whether it is covered as proved.
    pub fn is_proved(&self) -> bool {
        self.covered >= Covered::ByDominance
    }
}

/// What a recording proves of the blocks of counted functions, beside the truth.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proofs {
    /// Of all executed instructions, those in blocks that are proved executed.
    pub executed: Recall,
    /// The same for blocks with code of their own.
    pub with_code: Recall,
    /// Blocks that are said to be proved not executed.
    pub not_executed: u64,
    /// Those of them that were executed.
    pub refuted: Vec<(Key, usize)>,
}

impl Executed {
    /// The executed blocks of one run.
    pub fn from_exact(exact: &ExactProfile) -> Self {
        let mut executed = Self::default();
        executed.add(exact);
        executed
    }

    /// Adds a run. A function that was counted in several modes is added once.
    pub fn add(&mut self, exact: &ExactProfile) {
        let mut seen = std::collections::BTreeSet::new();
        for function in &exact.functions {
            let key = (function.cfg.id, function.cfg.hash());
            if !seen.insert(key) {
                continue;
            }
            let blocks = self.blocks.entry(key).or_insert_with(|| empty(function));
            for (sum, count) in blocks.iter_mut().zip(&function.flow.blocks) {
                sum.count = sum.count.saturating_add(*count);
            }
        }
    }

    /// The instructions of the program (thesis, table 5.1).
    pub fn totals(&self) -> Totals {
        let blocks = || self.blocks.values().flatten();
        let sum = |blocks: &mut dyn Iterator<Item = &Block>| blocks.map(|block| block.instructions).sum();
        Totals {
            instructions: sum(&mut blocks()),
            executed: sum(&mut blocks().filter(|block| block.count > 0)),
        }
    }

    /// The recall of executed instructions (thesis §5.3). `least`: the minimum that counts as covered.
    pub fn recall(&self, coverage: &Coverage, least: Covered) -> Recall {
        let mut recall = Recall::default();
        for (_, _, block, covered) in self.executed_blocks(coverage) {
            recall.add(&block, covered >= least);
        }
        recall
    }

    /// What is proved, executed or not. `with_code`: the blocks that have code of their own in the recorded program.
    pub fn proofs(&self, coverage: &Coverage, with_code: &BTreeSet<(Key, usize)>) -> Proofs {
        let mut proofs = Proofs::default();
        for (&key, blocks) in &self.blocks {
            let states = coverage.blocks(&key);
            for (position, block) in blocks.iter().enumerate() {
                let state = states.get(position).copied().unwrap_or_default();
                proofs.not_executed += u64::from(state == Covered::NotExecuted);
                if block.count == 0 {
                    continue;
                }
                if state == Covered::NotExecuted {
                    proofs.refuted.push((key, position));
                }
                let is_proved = state >= Covered::ByDominance;
                proofs.executed.add(block, is_proved);
                if with_code.contains(&(key, position)) {
                    proofs.with_code.add(block, is_proved);
                }
            }
        }
        proofs
    }

    /// [`Self::recall`] with each instruction weighted by its executions.
    pub fn recall_of_executions(&self, coverage: &Coverage, least: Covered) -> f64 {
        let (mut executed, mut covered) = (0.0, 0.0);
        for (_, _, block, known) in self.executed_blocks(coverage) {
            let times = block.instructions as f64 * block.count as f64;
            executed += times;
            covered += if known >= least { times } else { 0.0 };
        }
        covered / f64::max(executed, 1.0)
    }

    /// The recall of the most frequently executed instructions (thesis §5.6): for each share of all executed
    /// instructions, such as 0.1. Among instructions with the same count, those of one block stay together.
    pub fn recall_of_hottest(&self, coverage: &Coverage, shares: &[f64]) -> Vec<Recall> {
        let mut blocks: Vec<_> = self.executed_blocks(coverage).collect();
        blocks.sort_by_key(|(key, position, block, _)| (std::cmp::Reverse(block.count), *key, *position));
        let all: u64 = blocks.iter().map(|(_, _, block, _)| block.instructions).sum();
        let of_share = |share: &f64| {
            let most = (share * all as f64).round() as u64;
            let mut recall = Recall::default();
            for (_, _, block, covered) in &blocks {
                let counted = block.instructions.min(most - recall.executed);
                recall.executed += counted;
                recall.covered += if *covered > Covered::Unknown { counted } else { 0 };
            }
            recall
        };
        shares.iter().map(of_share).collect()
    }

    /// Covered blocks that were not executed, in functions that were counted.
    pub fn false_positives(&self, coverage: &Coverage) -> Vec<FalsePositive> {
        let mut found = Vec::new();
        for (&function, blocks) in &self.blocks {
            for (block, (&covered, exact)) in coverage.blocks(&function).iter().zip(blocks).enumerate() {
                if covered > Covered::Unknown && exact.count == 0 {
                    found.push(FalsePositive {
                        function,
                        block,
                        covered,
                    });
                }
            }
        }
        found
    }

    /// Relative entropy of the exact distribution of executed instructions with respect to the sampled one, in bits
    /// (thesis §5.5): d = Σ p log₂(p ∕ q), over the instructions of all counted functions. One is added to the sampled
    /// count of each instruction, because d is undefined if an executed instruction was never sampled, which the thesis
    /// does not mention.
    pub fn divergence(&self, coverage: &Coverage) -> f64 {
        let passed = |key: &Key, block: usize| {
            let function = coverage.functions.get(key);
            function
                .and_then(|function| function.passed.get(block))
                .map_or(0, |passed| *passed) as f64
                + 1.0
        };
        let blocks = || {
            self.blocks.iter().flat_map(|(key, blocks)| {
                blocks
                    .iter()
                    .enumerate()
                    .map(move |(position, block)| (key, position, block))
            })
        };
        let weigh = |block: &Block, count: f64| block.instructions as f64 * count;
        let exact: f64 = blocks().map(|(_, _, block)| weigh(block, block.count as f64)).sum();
        let sampled: f64 = blocks()
            .map(|(key, position, block)| weigh(block, passed(key, position)))
            .sum();
        let term = |(key, position, block): (&Key, usize, &Block)| {
            let (p, q) = (block.count as f64 / exact, passed(key, position) / sampled);
            if block.count == 0 {
                0.0
            } else {
                weigh(block, p * (p / q).log2())
            }
        };
        blocks().map(term).sum()
    }

    fn executed_blocks<'a>(
        &'a self,
        coverage: &'a Coverage,
    ) -> impl Iterator<Item = (Key, usize, Block, Covered)> + 'a {
        self.blocks.iter().flat_map(|(key, blocks)| {
            let covered = coverage.blocks(key);
            let of_block = move |(position, block): (usize, &Block)| {
                (
                    *key,
                    position,
                    *block,
                    covered.get(position).copied().unwrap_or_default(),
                )
            };
            blocks
                .iter()
                .enumerate()
                .map(of_block)
                .filter(|(_, _, block, _)| block.count > 0)
        })
    }
}

fn empty(function: &ExactFunction) -> Vec<Block> {
    let block = |block: &pleach_annotate::cfg::Block| Block {
        instructions: block.instructions.into(),
        count: 0,
    };
    function.cfg.blocks.iter().map(block).collect()
}
