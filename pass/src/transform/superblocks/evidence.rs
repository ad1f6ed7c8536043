//! The evidence for choosing superblocks: recorded paths that lead into blocks, and LLVM's facts about the blocks.

use super::Former;
use crate::error::PassError;
use crate::ffi;
use crate::ir::FunctionIr;
use crate::ir::frequencies::Frequencies;
use crate::transform::markers::Found;
use inkwell::llvm_sys::prelude::LLVMBasicBlockRef;
use inkwell::values::AsValueRef;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_decide::superblock::history::{PathHistory, RecordedPaths, caller_block};
use pleach_decide::superblock::{Candidates, Folding, Formation, Subject, form};
use pleach_profile::Caller;
use rustc_hash::{FxHashMap, FxHashSet};

/// Asks LLVM which instructions fold.
struct DuplicationSimulation {
    blocks: Vec<LLVMBasicBlockRef>,
}

impl Folding for DuplicationSimulation {
    fn saved(&self, trace: &[BlockIndex]) -> Vec<u32> {
        let blocks: Vec<_> = trace.iter().map(|b| self.blocks[b.index()]).collect();
        let mut saved = vec![0; trace.len() - 1];
        // SAFETY: edges join consecutive blocks of a trace; one number less than blocks is written.
        unsafe { ffi::pleach_simulate_duplication(blocks.as_ptr(), blocks.len(), saved.as_mut_ptr()) };
        saved
    }
}

impl Former {
    /// Chooses a function's superblocks.
    pub(super) fn decide(
        &mut self,
        function: &FunctionIr<'_>,
        found: &Found,
        frequencies: &Frequencies,
        candidates: Candidates,
    ) -> Result<Formation, PassError> {
        let (cfg, value) = (&function.cfg, function.value.as_value_ref());
        let [mut duplicable, mut tight, mut dispatching] = [const { Vec::new() }; 3].map(|mut flags: Vec<u8>| {
            flags.resize(cfg.blocks.len(), 0);
            flags
        });
        // SAFETY: the function belongs to the module; a number is written for each block.
        unsafe {
            ffi::pleach_duplicable(value, self.early, duplicable.as_mut_ptr());
            ffi::pleach_loops(value, tight.as_mut_ptr(), dispatching.as_mut_ptr());
        }
        let [duplicable, tight, dispatching] =
            [duplicable, tight, dispatching].map(|flags| flags.into_iter().map(|flag| flag != 0).collect::<Vec<_>>());
        let functions = numbered(&found.keys);
        let subject = Subject {
            cfg,
            counts: &frequencies.counts,
            probabilities: &frequencies.probabilities,
            clonable: &duplicable,
            tight: &tight,
            dispatching: &dispatching,
            markers: &found.blocks,
            histories: &self.histories(found, &functions)?,
            functions: &functions,
            total: self.total,
        };
        let blocks = function.value.get_basic_blocks();
        let simulation = DuplicationSimulation {
            blocks: blocks.iter().map(|b| b.as_mut_ptr()).collect(),
        };
        Ok(form(&subject, &simulation, self.budget, &self.options, candidates))
    }

    /// The recorded paths of each inline instance.
    fn histories(&mut self, found: &Found, functions: &[usize]) -> Result<Vec<PathHistory>, PassError> {
        let mut visible = vec![FxHashSet::default(); found.keys.len()];
        let mut callers: FxHashSet<(usize, BlockIndex)> = FxHashSet::default();
        for marker in found.blocks.iter().flatten() {
            visible[marker.instance].insert(marker.block);
            callers.insert((functions[marker.instance], marker.block));
        }
        let named = found.keys.iter().zip(functions);
        let numbers: FxHashMap<(FunctionId, CfgHash), usize> = named
            .map(|(key, &n)| ((self.table[key].id, self.table[key].cfg_hash), n))
            .collect();
        let caller_block = |caller: &Caller, block| {
            let &number = numbers.get(&(caller.id, caller.cfg_hash))?;
            callers
                .contains(&(number, block))
                .then(|| caller_block(number, block))?
        };
        let mut histories = Vec::new();
        for (key, visible) in found.keys.iter().zip(&visible) {
            let known = self
                .recorded(*key)?
                .map_or_else(RecordedPaths::default, |p| RecordedPaths {
                    paths: &p.paths,
                    windows: &p.windows,
                    called: &p.called,
                });
            histories.push(PathHistory::new(known, |block| visible.contains(&block), caller_block));
        }
        Ok(histories)
    }
}

/// Numbers functions: for each inline instance, the first instance of the same function.
fn numbered(keys: &[u64]) -> Vec<usize> {
    let first = |key| keys.iter().position(|k| k == key).unwrap_or_default();
    keys.iter().map(first).collect()
}
