//! Markers: where the blocks that paths were recorded of are, later in the pipeline.
//!
//! They are pseudo-probes without an entry in the list of probed functions, so that no tool takes them for annotations. A table in the
//! module, `!pleach.marked`, says which recorded function each key stands for.

use crate::annotate;
use crate::ffi;
use crate::ir::FunctionIr;
use crate::use_profile::source::Source;
use inkwell::llvm_sys::core::{
    LLVMGetFirstBasicBlock, LLVMGetFirstInstruction, LLVMGetNextBasicBlock, LLVMGetNextInstruction,
};
use inkwell::llvm_sys::prelude::{LLVMMetadataRef, LLVMValueRef};
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_feedback::profile::file::Lookup;
use pleach_feedback::superblock::Marker;
use pleach_feedback::superblock::arms::arms;
use rustc_hash::FxHashMap;
use std::mem::MaybeUninit;

const TABLE: &str = "pleach.marked";
/// The share of all executions of paths from which on a function is worth marking.
const WORTH_MARKING: f64 = 1e-4;

/// Recorded functions by key.
pub type Table = FxHashMap<u64, (FunctionId, CfgHash)>;

/// Marks the functions of a module that a profile has hot paths of.
pub fn insert<'ctx>(module: &Module<'ctx>, functions: &[FunctionIr<'ctx>], source: &Source) -> Result<(), String> {
    let probe = annotate::probe(module);
    let mut unit: LLVMMetadataRef = std::ptr::null_mut();
    for function in functions.iter().filter(|f| f.cfg.blocks.len() > 1) {
        let (id, hash) = (function.cfg.id, function.cfg.hash());
        let Lookup::Found(found) = source.lookup(&function.cfg)? else {
            continue;
        };
        let flow: f64 = found.paths.iter().map(|p| p.count).sum();
        if flow <= 0.0 || flow < WORTH_MARKING * source.path_flow() {
            continue;
        }
        let value = function.value.as_value_ref();
        // SAFETY: the function belongs to the module; `unit` is null or what an earlier call made.
        unsafe {
            ffi::pleach_ensure_subprogram(value, &mut unit);
            ffi::pleach_ensure_call_locations(value);
        }
        let key = key(&function.cfg);
        let arms = arms(&function.cfg);
        annotate::insert_block_probes(module, function, probe, key, |block| !arms[block.index()]);
        let context = module.get_context();
        let i64t = context.i64_type();
        let words = [key, id.guid.0, u64::from(id.module.0), hash.0].map(|word| i64t.const_int(word, false).into());
        let node = context.metadata_node(&words);
        module
            .add_global_metadata(TABLE, &node)
            .map_err(|e| format!("pleach: {e}"))?;
    }
    Ok(())
}

/// Differs from any probe's GUID, as far as 64 bits can.
fn key(cfg: &Cfg) -> u64 {
    cfg.hash().0.rotate_left(32) ^ cfg.id.guid.0 ^ u64::from(cfg.id.module.0) ^ 0x706c_6561_6368_6d6b
}

/// What the module's markers stand for.
pub fn table(module: &Module<'_>) -> Table {
    let nodes = module.get_global_metadata(TABLE);
    let words = |node: &inkwell::values::MetadataValue<'_>| -> Vec<u64> {
        let values = node.get_node_values().into_iter().flatten();
        values
            .filter_map(|value| value.into_int_value().get_zero_extended_constant())
            .collect()
    };
    nodes
        .iter()
        .filter_map(|node| match words(node)[..] {
            [key, guid, module, hash] => {
                let id = FunctionId {
                    guid: FunctionGuid(guid),
                    module: ModuleHash(u32::try_from(module).ok()?),
                };
                Some((key, (id, CfgHash(hash))))
            }
            _ => None,
        })
        .collect()
}

/// The markers of a function, which are removed from it.
#[derive(Default)]
pub struct Found {
    /// By block, in execution order.
    pub blocks: Vec<Vec<Marker>>,
    /// The key of each context.
    pub keys: Vec<u64>,
    /// The context that is the function itself, and nothing that was inlined into it.
    pub own: Option<usize>,
}

/// Takes a function's markers out.
pub fn take(function: LLVMValueRef, table: &Table) -> Found {
    let mut found = Found::default();
    let mut contexts: FxHashMap<(u64, u64), usize> = FxHashMap::default();
    // SAFETY: the function belongs to a module that is alive; its blocks and instructions are walked to the null behind the last one, and
    // an instruction is erased only after its successor was asked for.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut markers = Vec::new();
            let mut instruction = LLVMGetFirstInstruction(block);
            while !instruction.is_null() {
                let next = LLVMGetNextInstruction(instruction);
                let mut marker = MaybeUninit::uninit();
                if ffi::pleach_marker(instruction, marker.as_mut_ptr()) {
                    let marker: ffi::Marker = marker.assume_init();
                    if table.contains_key(&marker.key) {
                        let context = *contexts.entry((marker.key, marker.context)).or_insert_with(|| {
                            if marker.context == 0 {
                                found.own = Some(found.keys.len());
                            }
                            found.keys.push(marker.key);
                            found.keys.len() - 1
                        });
                        let block = BlockIndex(marker.index.saturating_sub(1));
                        markers.push(Marker { context, block });
                        ffi::pleach_erase(instruction);
                    }
                }
                instruction = next;
            }
            found.blocks.push(markers);
            block = LLVMGetNextBasicBlock(block);
        }
    }
    found
}
