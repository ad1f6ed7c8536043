//! Markers: they identify for later passes the recorded block that code comes from. They are removed before code
//! generation.
//!
//! Markers are debug labels, which no optimisation sees. A table in the module, `!pleach.marked`, maps each key to a
//! recorded function, and of one that has changed since then, its blocks to those that were recorded.

use crate::error::PassError;
use crate::ffi;
use crate::ir::FunctionIr;
use crate::use_profile::apply::OlderPathsOf;
use crate::use_profile::source::Source;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::{
    LLVMCountBasicBlocks, LLVMGetFirstBasicBlock, LLVMGetFirstInstruction, LLVMGetInstructionOpcode,
    LLVMGetNextBasicBlock, LLVMGetNextInstruction, LLVMGetTypeContext, LLVMTypeOf,
};
use inkwell::llvm_sys::debuginfo::{
    LLVMDIBuilderCreateDebugLocation, LLVMGetSubprogram, LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc,
};
use inkwell::llvm_sys::prelude::{LLVMMetadataRef, LLVMValueRef};
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_decide::stale::paths::OlderPaths;
use pleach_decide::superblock::Marker;
use pleach_decide::superblock::arms::arms;
use pleach_profile::file::Lookup;
use rustc_hash::FxHashMap;

const TABLE: &str = "pleach.marked";
/// Minimum share of all path executions for a function to be marked.
const MIN_SHARE: f64 = 1e-4;

/// A marked function.
#[derive(Clone, PartialEq, Debug)]
pub struct Marked {
    /// Its identifier.
    pub id: FunctionId,
    /// Its graph at the anchor.
    pub cfg_hash: CfgHash,
    /// Its recorded paths, if they are of an older version.
    pub older: Option<OlderPaths>,
}

/// Marked functions by key.
pub type Table = FxHashMap<u64, Marked>;

/// Marks the functions of a module that have hot paths in the profile, or had them before they changed.
pub fn insert<'ctx>(
    module: &Module<'ctx>,
    functions: &[FunctionIr<'ctx>],
    source: &Source,
    older: &OlderPathsOf,
) -> Result<(), PassError> {
    let mut unit: LLVMMetadataRef = std::ptr::null_mut();
    for function in functions.iter().filter(|f| f.cfg.blocks.len() > 1) {
        let (id, hash) = (function.cfg.id, function.cfg.hash());
        let older = older.get(&id);
        let flow = match (source.lookup(&function.cfg)?, older) {
            (Lookup::Found(found), _) => found.paths.iter().map(|p| p.count).sum(),
            (_, Some(older)) => older.flow,
            (_, None) => continue,
        };
        if flow <= 0.0 || flow < MIN_SHARE * source.path_flow() {
            continue;
        }
        let value = function.value.as_value_ref();
        // SAFETY: the function belongs to the module; `unit` is null or what an earlier call made.
        unsafe {
            ffi::pleach_ensure_subprogram(value, &mut unit);
            ensure_call_locations(value);
        }
        let key = key(&function.cfg);
        let arms = arms(&function.cfg);
        let blocks = function.value.get_basic_block_iter().zip(&arms).enumerate();
        for (index, (block, _)) in blocks.filter(|(_, (_, is_arm))| !**is_arm) {
            // SAFETY: the block belongs to the function, which has a subprogram.
            unsafe { ffi::pleach_insert_marker(block.as_mut_ptr(), key, index as u32) };
        }
        let context = module.get_context();
        let i64t = context.i64_type();
        let words = table_row(key, id, hash, older);
        let words: Vec<_> = words.map(|word| i64t.const_int(word, false).into()).collect();
        let node = context.metadata_node(&words);
        module
            .add_global_metadata(TABLE, &node)
            .map_err(|e| PassError::Internal(e.to_string()))?;
    }
    Ok(())
}

/// A key that is unlikely to equal the GUID of a probe.
fn key(cfg: &Cfg) -> u64 {
    cfg.hash().0.rotate_left(32) ^ cfg.id.guid.0 ^ u64::from(cfg.id.module.0) ^ 0x706c_6561_6368_6d6b
}

/// A function's row in the table. `older`: the recorded function, and for each of its blocks one more than the number of
/// the block that it is now, or 0.
fn table_row(key: u64, id: FunctionId, hash: CfgHash, older: Option<&OlderPaths>) -> impl Iterator<Item = u64> {
    let function = |id: FunctionId, hash: CfgHash| [id.guid.0, u64::from(id.module.0), hash.0];
    let new_of = |block: &Option<BlockIndex>| block.map_or(0, |block| u64::from(block.0) + 1);
    let recorded = older.into_iter().flat_map(move |older| {
        let blocks = older.new_of.iter().map(new_of);
        function(older.id, older.cfg_hash).into_iter().chain(blocks)
    });
    [key].into_iter().chain(function(id, hash)).chain(recorded)
}

/// A row of the table.
fn marked(words: &[u64]) -> Option<(u64, Marked)> {
    let function = |words: &[u64; 3]| {
        let id = FunctionId {
            guid: FunctionGuid(words[0]),
            module: ModuleHash(u32::try_from(words[1]).ok()?),
        };
        Some((id, CfgHash(words[2])))
    };
    let (&key, words) = words.split_first()?;
    let (own, words) = words.split_first_chunk()?;
    let (id, cfg_hash) = function(own)?;
    let older = match words.split_first_chunk() {
        None => None,
        Some((recorded, blocks)) => {
            let (id, cfg_hash) = function(recorded)?;
            let new_of = |&word: &u64| Some(BlockIndex(u32::try_from(word.checked_sub(1)?).ok()?));
            Some(OlderPaths {
                id,
                cfg_hash,
                new_of: blocks.iter().map(new_of).collect(),
                flow: 0.0,
            })
        }
    };
    Some((key, Marked { id, cfg_hash, older }))
}

/// The table of a module's markers.
pub fn table(module: &Module<'_>) -> Table {
    let nodes = module.get_global_metadata(TABLE);
    let words = |node: &inkwell::values::MetadataValue<'_>| -> Vec<u64> {
        let values = node.get_node_values().into_iter().flatten();
        values
            .filter_map(|value| value.into_int_value().get_zero_extended_constant())
            .collect()
    };
    nodes.iter().filter_map(|node| marked(&words(node))).collect()
}

/// The markers that a function had.
#[derive(Default)]
pub struct Found {
    /// By block, in execution order.
    pub blocks: Vec<Vec<Marker>>,
    /// The key of each inline instance.
    pub keys: Vec<u64>,
    /// The instance of the function itself, not of a function inlined into it.
    pub own: Option<usize>,
}

/// Gives locations to calls without one: in a function with a subprogram, inlining a call requires a location.
///
/// # Safety
/// The function must be alive.
unsafe fn ensure_call_locations(function: LLVMValueRef) {
    // SAFETY: as the caller promises; the walks over blocks and instructions end at the null after the last one.
    unsafe {
        let subprogram = LLVMGetSubprogram(function);
        if subprogram.is_null() {
            return;
        }
        let context = LLVMGetTypeContext(LLVMTypeOf(function));
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut instruction = LLVMGetFirstInstruction(block);
            while !instruction.is_null() {
                let is_call = matches!(
                    LLVMGetInstructionOpcode(instruction),
                    LLVMOpcode::LLVMCall | LLVMOpcode::LLVMInvoke | LLVMOpcode::LLVMCallBr
                );
                if is_call && LLVMInstructionGetDebugLoc(instruction).is_null() {
                    let none = std::ptr::null_mut();
                    let line_0 = LLVMDIBuilderCreateDebugLocation(context, 0, 0, subprogram, none);
                    LLVMInstructionSetDebugLoc(instruction, line_0);
                }
                instruction = LLVMGetNextInstruction(instruction);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
}

/// Removes the table of marked functions.
pub fn remove_table(module: &Module<'_>) {
    // SAFETY: the module is alive; the name is only read.
    unsafe { ffi::pleach_erase_named_metadata(module.as_mut_ptr(), TABLE.as_ptr().cast(), TABLE.len()) }
}

/// Removes a function's markers and returns those whose keys are in the table.
pub fn take(function: LLVMValueRef, table: &Table) -> Found {
    let mut raw: Vec<ffi::RawMarker> = Vec::new();
    loop {
        // SAFETY: the function belongs to a module that is alive; no more markers are written than there is room for.
        // Markers are removed, and all of them written, if there is room for all.
        let count = unsafe { ffi::pleach_take_markers(function, raw.as_mut_ptr(), raw.capacity()) };
        if count <= raw.capacity() {
            // SAFETY: so many were written.
            unsafe { raw.set_len(count) };
            break;
        }
        raw.reserve(count);
    }
    // SAFETY: as above.
    let blocks = unsafe { LLVMCountBasicBlocks(function) } as usize;
    let mut found = Found {
        blocks: vec![Vec::new(); blocks],
        ..Found::default()
    };
    let mut instances: FxHashMap<(u64, LLVMMetadataRef), usize> = FxHashMap::default();
    for marker in raw.iter().filter(|marker| table.contains_key(&marker.key)) {
        let instance = *instances.entry((marker.key, marker.inlined_at)).or_insert_with(|| {
            if marker.inlined_at.is_null() {
                found.own = Some(found.keys.len());
            }
            found.keys.push(marker.key);
            found.keys.len() - 1
        });
        let block = BlockIndex(marker.index);
        found.blocks[marker.block as usize].push(Marker { instance, block });
    }
    found
}
