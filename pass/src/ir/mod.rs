//! Reads a function's graph at the anchor. `annotate` and `use` see the same graph because both come here.

pub mod attributes;
pub mod frequencies;
pub mod lines;
pub mod metadata;

use crate::ffi;
use inkwell::llvm_sys::core::{
    LLVMGetCalledValue, LLVMGetFirstBasicBlock, LLVMGetFirstInstruction, LLVMGetInstructionOpcode, LLVMGetIntrinsicID,
    LLVMGetNextBasicBlock, LLVMGetNextInstruction, LLVMGetNumSuccessors, LLVMGetOperand, LLVMGetPreviousInstruction,
    LLVMGetSuccessor, LLVMGetTypeKind, LLVMIsADbgInfoIntrinsic, LLVMIsAFunction, LLVMIsConstant, LLVMLookupIntrinsicID,
    LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};
use inkwell::llvm_sys::{LLVMOpcode, LLVMTypeKind};
use inkwell::module::{Linkage, Module};
use inkwell::values::{AsValueRef, FunctionValue};
use pleach_annotate::cfg::{Block, Call, Callee, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionGuid, FunctionId, ModuleHash};
use rustc_hash::FxHashMap;
use std::mem::MaybeUninit;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Facts that all functions of a module share.
pub struct ModuleFacts {
    /// Distinguishes this module's local functions from those of other modules.
    pub hash: ModuleHash,
    /// The source file's name, without its folder.
    pub source_file: String,
    /// GUIDs by function, cached because every call needs its callee's.
    guids: FxHashMap<LLVMValueRef, FunctionGuid>,
}

impl ModuleFacts {
    /// Reads the facts. The hash covers the source file's base name and the names of defined functions but not the
    /// directory, so that the two builds may be in different directories.
    pub fn from_module(module: &Module<'_>) -> Self {
        let path = module.get_source_file_name().to_string_lossy().into_owned();
        let source_file = Path::new(&path)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut names: Vec<Vec<u8>> = module
            .get_functions()
            .filter(|f| f.count_basic_blocks() > 0)
            .map(|f| f.get_name().to_bytes().to_vec())
            .collect();
        names.sort_unstable();
        let mut hasher = Xxh3::new();
        hasher.update(source_file.as_bytes());
        for name in &names {
            hasher.update(&[0]);
            hasher.update(name);
        }
        // Zero stands for functions that are not local.
        let hash = ModuleHash((hasher.digest() as u32).max(1));
        Self {
            hash,
            source_file,
            guids: FxHashMap::default(),
        }
    }

    /// The function's GUID: that of its linkage name.
    pub fn guid(&mut self, function: LLVMValueRef) -> FunctionGuid {
        *self
            .guids
            .entry(function)
            .or_insert_with(|| FunctionGuid::of_name(&name_of(function)))
    }
}

/// A function's linkage name.
pub fn name_of(function: LLVMValueRef) -> String {
    // SAFETY: only called on functions of the module being compiled.
    let function = unsafe { FunctionValue::new(function) };
    function
        .map(|f| f.get_name().to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// A function with its graph and the instructions that the graph's parts stand for.
pub struct FunctionIr<'ctx> {
    /// The function.
    pub value: FunctionValue<'ctx>,
    /// Its graph.
    pub cfg: Cfg,
    /// Terminators, by block.
    pub terminators: Vec<LLVMValueRef>,
    /// Call instructions, by call index.
    pub calls: Vec<LLVMValueRef>,
}

/// Reads every function that has a body, except naked functions, which cannot hold probes. `available_externally`
/// bodies are included, because their inlined copies are emitted.
pub fn read_functions<'ctx>(module: &Module<'ctx>, facts: &mut ModuleFacts) -> Vec<FunctionIr<'ctx>> {
    module
        .get_functions()
        .filter(|f| f.count_basic_blocks() > 0)
        // SAFETY: the function belongs to the module being compiled.
        .filter(|f| unsafe { !attributes::has(f.as_value_ref(), "naked") })
        .map(|f| read(f, facts))
        .collect()
}

/// Reads one function.
pub fn read<'ctx>(function: FunctionValue<'ctx>, facts: &mut ModuleFacts) -> FunctionIr<'ctx> {
    let guid = facts.guid(function.as_value_ref());
    let local = matches!(function.get_linkage(), Linkage::Internal | Linkage::Private);
    let block_values = function.get_basic_blocks();
    let index_of: FxHashMap<_, _> = block_values
        .iter()
        .enumerate()
        .map(|(i, b)| (b.as_mut_ptr(), BlockIndex(i as u32)))
        .collect();

    let mut blocks = Vec::with_capacity(block_values.len());
    let mut terminators = Vec::with_capacity(block_values.len());
    let (mut calls, mut memory_operations) = (Vec::new(), Vec::new());
    for (position, block) in block_values.iter().enumerate() {
        let mut out = Block {
            successors: Vec::new(),
            terminator: Terminator::Other,
            is_eh_pad: false,
            instructions: 0,
            line: 0,
        };
        let mut last = std::ptr::null_mut();
        // SAFETY: the block belongs to the function; the walk ends at the null after its last instruction.
        let mut instruction = unsafe { LLVMGetFirstInstruction(block.as_mut_ptr()) };
        while !instruction.is_null() {
            let facts_of = facts_of(instruction);
            out.instructions += u32::from(facts_of.is_real_instruction);
            out.is_eh_pad |= facts_of.is_eh_pad != 0;
            if out.line == 0 {
                out.line = facts_of.line;
            }
            let callee = match facts_of.call {
                1 => Some(Callee::Direct(facts.guid(facts_of.callee))),
                2 => Some(Callee::Indirect),
                3 => Some(Callee::InlineAsm),
                4 => Some(Callee::Memory),
                _ => None,
            };
            if let Some(callee) = callee {
                let may_not_return = facts_of.may_not_return != 0;
                let call = Call {
                    block: BlockIndex(position as u32),
                    callee,
                    may_not_return,
                };
                let list = if callee == Callee::Memory {
                    &mut memory_operations
                } else {
                    &mut calls
                };
                list.push((call, instruction));
            }
            last = instruction;
            // SAFETY: as above.
            instruction = unsafe { LLVMGetNextInstruction(instruction) };
        }
        if !last.is_null() {
            // SAFETY: a well-formed block ends in a terminator, whose successors are blocks of this function.
            unsafe {
                out.terminator = terminator_kind(LLVMGetInstructionOpcode(last));
                let count = LLVMGetNumSuccessors(last);
                out.successors = (0..count).map(|i| index_of[&LLVMGetSuccessor(last, i)]).collect();
            }
        }
        blocks.push(out);
        terminators.push(last);
    }
    // LLVM numbers the other calls as if there were no intrinsics.
    calls.append(&mut memory_operations);
    let (calls, call_values) = calls.into_iter().unzip();
    let cfg = Cfg {
        id: FunctionId {
            guid,
            module: if local { facts.hash } else { ModuleHash(0) },
        },
        module: facts.hash,
        name: function.get_name().to_string_lossy().into_owned(),
        source_file: facts.source_file.clone(),
        blocks,
        calls,
    };
    FunctionIr {
        value: function,
        cfg,
        terminators,
        calls: call_values,
    }
}

/// The instruction before which a block's probe is inserted: after φs, and after the entry block's allocas, which must
/// remain together. `None` if the block cannot hold a call (catchswitch).
///
/// # Safety
/// The block must be alive and well-formed.
pub unsafe fn probe_position(block: LLVMBasicBlockRef) -> Option<LLVMValueRef> {
    // SAFETY: as the caller promises; the walk ends at the terminator at the latest.
    unsafe {
        let mut at = LLVMGetFirstInstruction(block);
        while LLVMGetInstructionOpcode(at) == LLVMOpcode::LLVMPHI {
            at = LLVMGetNextInstruction(at);
        }
        match LLVMGetInstructionOpcode(at) {
            LLVMOpcode::LLVMCatchSwitch => return None,
            LLVMOpcode::LLVMLandingPad | LLVMOpcode::LLVMCatchPad | LLVMOpcode::LLVMCleanupPad => {
                at = LLVMGetNextInstruction(at);
            }
            _ => {}
        }
        while LLVMGetInstructionOpcode(at) == LLVMOpcode::LLVMAlloca
            || !LLVMIsADbgInfoIntrinsic(at).is_null()
            || is_probe(at)
        {
            at = LLVMGetNextInstruction(at);
        }
        Some(at)
    }
}

/// The integer divisions of a block, by its terminator, if all divide by the same variable: the recording does not tell
/// divisions of a block apart. Empty otherwise.
///
/// # Safety
/// The terminator must be alive.
pub unsafe fn divisions_by_one_value(terminator: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut divisions = Vec::new();
    let mut divisor = None;
    // SAFETY: as the caller promises; the walk ends at the null before the first instruction. Divisions have two operands.
    unsafe {
        let mut at = LLVMGetPreviousInstruction(terminator);
        while !at.is_null() {
            let is_division = matches!(
                LLVMGetInstructionOpcode(at),
                LLVMOpcode::LLVMUDiv | LLVMOpcode::LLVMSDiv | LLVMOpcode::LLVMURem | LLVMOpcode::LLVMSRem
            );
            if is_division {
                let (kind, by) = (LLVMGetTypeKind(LLVMTypeOf(at)), LLVMGetOperand(at, 1));
                // A division by a constant needs no instruction that divides.
                if LLVMIsConstant(by) == 0 {
                    let is_same = divisor.replace(by).is_none_or(|other| other == by);
                    if kind != LLVMTypeKind::LLVMIntegerTypeKind || !is_same {
                        return Vec::new();
                    }
                    divisions.push(at);
                }
            }
            at = LLVMGetPreviousInstruction(at);
        }
    }
    divisions
}

/// Instructions of a function.
///
/// # Safety
/// The function must be alive.
pub unsafe fn instruction_count(function: LLVMValueRef) -> u64 {
    let mut count = 0;
    // SAFETY: as the caller promises; both walks end at the null after the last element.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut instruction = LLVMGetFirstInstruction(block);
            while !instruction.is_null() {
                count += 1;
                instruction = LLVMGetNextInstruction(instruction);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    count
}

/// Whether an instruction is a pseudo-probe.
///
/// # Safety
/// The instruction must be alive.
pub unsafe fn is_probe(instruction: LLVMValueRef) -> bool {
    const NAME: &str = "llvm.pseudoprobe";
    // SAFETY: as the caller promises; the name is only read.
    unsafe {
        if LLVMGetInstructionOpcode(instruction) != LLVMOpcode::LLVMCall {
            return false;
        }
        let callee = LLVMIsAFunction(LLVMGetCalledValue(instruction));
        !callee.is_null() && LLVMGetIntrinsicID(callee) == LLVMLookupIntrinsicID(NAME.as_ptr().cast(), NAME.len())
    }
}

fn facts_of(instruction: LLVMValueRef) -> ffi::InstructionFacts {
    let mut facts = MaybeUninit::uninit();
    // SAFETY: the shim fills every field.
    unsafe {
        ffi::pleach_instruction_facts(instruction, facts.as_mut_ptr());
        facts.assume_init()
    }
}

fn terminator_kind(opcode: LLVMOpcode) -> Terminator {
    match opcode {
        LLVMOpcode::LLVMRet => Terminator::Return,
        LLVMOpcode::LLVMBr => Terminator::Branch,
        LLVMOpcode::LLVMSwitch => Terminator::Switch,
        LLVMOpcode::LLVMIndirectBr => Terminator::IndirectBranch,
        LLVMOpcode::LLVMInvoke => Terminator::Invoke,
        LLVMOpcode::LLVMUnreachable => Terminator::Unreachable,
        LLVMOpcode::LLVMResume => Terminator::Resume,
        _ => Terminator::Other,
    }
}
