//! Coverage: which blocks a recorded program certainly executed (Shye 2005, thesis §3.5.2 and §5).
//!
//! *Seeds* are the blocks that bursts passed ([`seeds`]), or in which a breakpoint was hit ([`breakpoints`]). The blocks that they imply are added ([`closure`]):
//! dominators, post-dominators and the entries of called functions. There are two tiers: proved blocks, and predicted
//! ones, because shadow execution may pass blocks that the program then did not. [`measure`] compares coverage with
//! exact counts.
//!
//! # Proofs
//!
//! A block is *executed* if control enters it in the graph at the anchor; an *activation* is one call of a function,
//! from its entry block on. Optimisation keeps the sequence of probes, so a passed probe means that its block was
//! executed.
//!
//! 1. **Seen.** A block whose probe lies in a fall-through range of a proved burst was executed ([`Burst::proved`] says
//!    when shadow execution is a proof). So was the caller's block with the call through which it was inlined, which the
//!    inline stack names.
//! 2. **Dominators.** Each activation begins with the entry block and moves along edges, so it has passed every
//!    dominator of a block that it executes. `longjmp` is no exception: it continues after a call of `setjmp` that the
//!    activation has made before, so without the blocks between there is a path from the entry through the graph.
//! 3. **Post-dominators.** A post-dominator p of b is on every path from b to the end of an activation. That b was
//!    executed proves p only if the activation ended there:
//!    - The graph's ends are returns, `resume`, `unreachable`, blocks with a call that may not return (the activation
//!      may end in it: `exit`, `longjmp`, unwinding), and blocks from which no other end can be reached (infinite
//!      loops). A block with such an end implies no post-dominators, and no other block implies any through it.
//!    - The process must have ended of its own accord, without ever having had a second thread or a signal handler
//!      ([`Process::undisturbed`]). Then every activation has returned, was unwound, or was cut in a call that may not
//!      return: those of `exit` itself and of its callers. All are ends of the graph. A killed process cuts activations
//!      anywhere; so do a thread that calls `exit` while others run, and handlers that jump out.
//! 4. **Callees.** In such a process an entered block makes its calls in order, up to and including the first that may
//!    not return. A direct call enters the callee's entry block. The callee is known if exactly one graph has the name:
//!    a local function of the caller's module, or a function whose body the program holds under that name (not a
//!    library, whose symbols others can override).
//!
//! Rules 2–4 are applied to a fixpoint. The conclusions from blocks of undisturbed processes hold for such processes
//! again, because they concern the same processes, or those that they were forked from.
//!
//! The thesis adds all post-dominators. That is unsound, because of calls that do not return, and of activations that
//! still run when the program ends (a test shows both). Not done: concluding from the entry of a local function with a
//! single call site to its caller, except where it is inlined, because manifests do not say whether addresses are
//! taken.
//!
//! [`Burst::proved`]: pleach_collector::vector::Burst::proved
//! [`Process::undisturbed`]: pleach_collector::vector::Process::undisturbed

pub mod breakpoints;
mod bypass;
pub mod closure;
pub mod measure;
pub mod seeds;
mod vanished;

use crate::program::Program;
use breakpoints::Breakpoints;
use closure::Known;
use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_collector::vector::VectorSet;
use pleach_profile::{Covered, Executions};
use seeds::{Seeds, View};
use std::collections::{BTreeMap, BTreeSet};

/// A function: its identifier, and the graph that it has.
pub type Key = (FunctionId, CfgHash);

/// The coverage of each block of each function.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Coverage {
    /// Functions with at least one covered block.
    pub functions: BTreeMap<Key, FunctionCoverage>,
}

/// The coverage of each block of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionCoverage {
    /// In block order.
    pub blocks: Vec<Covered>,
    /// Number of times that bursts passed each block, in block order.
    pub passed: Vec<u64>,
    /// Executions that breakpoints counted, in block order; empty if none.
    pub counted: Vec<Executions>,
}

/// The coverage of a recording. `view`: how much of each burst is used; `implied`: whether implied blocks are added.
pub fn from_vectors(program: &Program, vectors: &VectorSet, view: View, implied: bool) -> Coverage {
    let seeds = Seeds::from_vectors(program, vectors, view);
    if implied {
        Known::from_program(program).close(&seeds)
    } else {
        Coverage::seen(&seeds)
    }
}

/// The coverage of a recording, with everything that its bursts and breakpoints showed.
pub fn with_breakpoints(program: &Program, vectors: &VectorSet) -> Coverage {
    let mut seeds = Seeds::from_vectors(program, vectors, View::ALL);
    let breakpoints = Breakpoints::read(program, vectors, &mut seeds);
    let mut coverage = Known::from_program(program).close(&seeds);
    breakpoints.complete(&mut coverage);
    coverage
}

/// The blocks that have code of their own in the program: at least one probe was emitted.
pub fn blocks_with_code(program: &Program) -> BTreeSet<(Key, usize)> {
    let mut blocks = BTreeSet::new();
    for (_, map) in program.annotated() {
        for probe in &map.probes {
            if let ProbeTarget::Block(block) = probe.target {
                let function = map.function_of(probe.instance);
                blocks.insert(((function.cfg.id, function.hash), block.index()));
            }
        }
    }
    blocks
}

impl Coverage {
    /// The seeds alone.
    pub fn seen(seeds: &Seeds) -> Self {
        let function = |blocks: &Vec<seeds::Seed>| FunctionCoverage {
            blocks: blocks.iter().map(|seed| seed.covered()).collect(),
            passed: blocks.iter().map(|seed| seed.passed).collect(),
            counted: Vec::new(),
        };
        Self {
            functions: seeds
                .functions
                .iter()
                .map(|(key, blocks)| (*key, function(blocks)))
                .collect(),
        }
    }

    /// The coverage of a function's blocks; empty for an unknown function.
    pub fn blocks(&self, key: &Key) -> &[Covered] {
        self.functions.get(key).map_or(&[], |function| &function.blocks)
    }

    /// Adds the coverage of another recording of the same program.
    pub fn add(&mut self, other: &Self) {
        for (key, function) in &other.functions {
            match self.functions.get_mut(key) {
                Some(sum) => {
                    for (sum, covered) in sum.blocks.iter_mut().zip(&function.blocks) {
                        *sum = (*sum).max(*covered);
                    }
                    for (sum, passed) in sum.passed.iter_mut().zip(&function.passed) {
                        *sum += passed;
                    }
                }
                None => {
                    self.functions.insert(*key, function.clone());
                }
            }
        }
    }
}
