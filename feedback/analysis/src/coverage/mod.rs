//! Coverage: which blocks a recorded program certainly executed (Shye 2005, thesis §3.5.2 and §5).
//!
//! *Seeds* are the blocks that bursts passed ([`seeds`]). What the graphs have no way around is added ([`closure`]): dominators, post-dominators
//! and the entries of functions that are called. Everything is kept in two tiers: what is proved, and what is only predicted,
//! because shadow execution may have seen what the program then did not do. [`measure`] compares coverage with exact counts.
//!
//! # What is proved
//!
//! A block is *executed* if control enters it in the graph at the anchor; an *activation* is one call of a function, from
//! its entry block on. Optimisation keeps the sequence of probes, so a probe that was passed means that its block was executed.
//!
//! 1. **Seen.** A block whose probe lies in a stretch that a proved burst executed was executed ([`Burst::proved`] says when shadow
//!    execution is proof). So was the block of the caller that holds the call through which it was inlined: its inline stack names
//!    that call.
//! 2. **Dominators.** Each activation begins with the entry block and moves along edges, so it has passed every dominator of a
//!    block that it executes. `longjmp` is no exception: it continues after a call of `setjmp` that the activation has made before, so that leaving
//!    out what was between gives a way from the entry through the graph.
//! 3. **Post-dominators.** p is on every way from b to where activations end. That b was executed shows p only if the activation did end there:
//!    - The graph's ends are returns, `resume`, `unreachable`, blocks that hold a call that may not return (the activation may
//!      end in it: `exit`, `longjmp`, unwinding), and blocks from which no other end can be reached (loops for ever). A block with such
//!      an end implies no post-dominators, and lets no other block imply any through it.
//!    - The process must have ended of its own accord, without ever having had a second thread or a signal handler ([`Process::undisturbed`]). Then every activation
//!      has returned, was unwound, or was cut in a call that may not return: those of `exit` itself, or of
//!      what called it. All are ends of the graph. A process that is killed cuts activations anywhere, and so do the
//!      thread that calls `exit` while others run, and handlers that jump out.
//! 4. **Callees.** In such a process a block that is entered makes its calls in order, up to and with the first that may not return. A
//!    direct call enters the callee's entry block; it is known which callee where exactly one graph has the name:
//!    a local function of the caller's module, or one whose own body the program (not a library, whose symbols others can override) holds under that name.
//!
//! 2–4 are applied until nothing is new. What follows from blocks of undisturbed processes holds for them again, because it
//! happened in the same processes, or in those that they were forked from.
//!
//! The thesis adds all post-dominators: that is not sound, because of calls that do not return, and of activations that
//! still run when the program ends (a test shows both). Not done: that a local function with a single call site was entered shows its caller only where it is
//! inlined, because manifests do not say whether addresses are taken.
//!
//! [`Burst::proved`]: pleach_collector::vector::Burst::proved
//! [`Process::undisturbed`]: pleach_collector::vector::Process::undisturbed

pub mod closure;
pub mod measure;
pub mod seeds;

use crate::program::Program;
use closure::Known;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_collector::vector::VectorSet;
use pleach_profile::Covered;
use seeds::{Seeds, View};
use std::collections::BTreeMap;

/// A function: its identifier, and the graph that it has.
pub type Key = (FunctionId, CfgHash);

/// What is known about each block of each function.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Coverage {
    /// Functions of which something is covered.
    pub functions: BTreeMap<Key, FunctionCoverage>,
}

/// What is known about each block of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionCoverage {
    /// In block order.
    pub blocks: Vec<Covered>,
    /// How often bursts passed each block, in block order.
    pub passed: Vec<u64>,
}

/// Coverage by a recording. `view`: how much of each burst is used; `implied`: whether dominance adds to it.
pub fn from_vectors(program: &Program, vectors: &VectorSet, view: View, implied: bool) -> Coverage {
    let seeds = Seeds::from_vectors(program, vectors, view);
    if implied {
        Known::from_program(program).close(&seeds)
    } else {
        Coverage::seen(&seeds)
    }
}

impl Coverage {
    /// The seeds alone.
    pub fn seen(seeds: &Seeds) -> Self {
        let function = |blocks: &Vec<seeds::Seed>| FunctionCoverage {
            blocks: blocks.iter().map(|seed| seed.covered()).collect(),
            passed: blocks.iter().map(|seed| seed.passed).collect(),
        };
        Self {
            functions: seeds
                .functions
                .iter()
                .map(|(key, blocks)| (*key, function(blocks)))
                .collect(),
        }
    }

    /// What is known about the blocks of a function; empty where that is nothing.
    pub fn blocks(&self, key: &Key) -> &[Covered] {
        self.functions.get(key).map_or(&[], |function| &function.blocks)
    }

    /// Adds what another recording of the same program shows.
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
