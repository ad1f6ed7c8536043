//! Gives every block its identifier and writes the manifest.

use crate::ffi;
use crate::ir::{self, FunctionIr};
use crate::remarks;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::{LLVMAppendModuleInlineAsm, LLVMGetModuleInlineAsm};
use inkwell::llvm_sys::prelude::LLVMMetadataRef;
use inkwell::module::Module;
use inkwell::values::{AsValueRef, FunctionValue, InstructionValue};
use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::manifest::{self, Anchor};
use pleach_ball_larus::returns::mark_returning_calls;
use std::fmt::Write as _;

/// LLVM's list of probed functions; a module that has it is probed already.
const DESCRIPTORS: &str = "llvm.pseudo_probe_desc";
/// A distribution factor of one, in LLVM's fixed-point form.
const FULL_FACTOR: u64 = u64::MAX;
/// Call identifiers travel in 16 bits of a location's discriminator.
const MAX_PROBES: usize = 0xffff;

/// Whether the module already has probes: from an earlier run (LTO), from IR input, or from clang. A second numbering
/// would make both ambiguous.
pub fn is_annotated(module: &Module<'_>) -> bool {
    module.get_global_metadata_size(DESCRIPTORS) > 0
}

/// Why a function cannot be annotated: it is too large for its calls to be numbered.
pub fn why_not(cfg: &Cfg) -> Option<String> {
    let probes = cfg.blocks.len() + cfg.calls.len();
    let reason =
        || format!("it has {probes} blocks and calls, more than the {MAX_PROBES} that can be numbered: not profiled");
    (probes > MAX_PROBES).then(reason)
}

/// Annotates every function of a module.
pub fn run<'ctx>(module: &Module<'ctx>, functions: &[FunctionIr<'ctx>], anchor: Anchor) {
    let probe = probe(module);
    // Merged ends of blocks lack probes and have inferred counts only: an interpreter's cases could not be told apart
    // by their ends. Equal blocks are merged, since apart they would enlarge the code of generated scanners by a third.
    ffi::merge_only_equal_blocks();
    if anchor == Anchor::Early {
        // Nothing that is left of them would show which one was executed. They are merged behind the anchor, so that
        // graphs are the same with the profile.
        ffi::keep_invokes_apart();
    }
    let mut unit: LLVMMetadataRef = std::ptr::null_mut();
    let mut assembly = String::new();
    for (function, cfg) in functions.iter().zip(final_graphs(functions)) {
        if let Some(why) = why_not(&cfg) {
            remarks::emit(function.value.as_value_ref(), false, "FunctionTooLarge", why);
            continue;
        }
        // SAFETY: the function belongs to the module; `unit` is null or what an earlier call made.
        unsafe { ffi::pleach_ensure_subprogram(function.value.as_value_ref(), &mut unit) };
        let is_early = anchor == Anchor::Early;
        insert_block_probes(module, function, probe);
        mark_calls(function, is_early);
        describe(module, &function.cfg);
        write_entry(&mut assembly, &cfg, anchor);
    }
    append_assembly(module, &assembly);
}

/// The functions' graphs, with calls that always return marked by the definitions in the module. Exact counting uses
/// the same graphs, so that paths have the same numbers.
pub fn final_graphs(functions: &[FunctionIr<'_>]) -> Vec<Cfg> {
    // SAFETY: the functions belong to the module.
    let replaceable = |i: usize| unsafe { ffi::pleach_is_replaceable(functions[i].value.as_value_ref()) };
    let mut cfgs: Vec<Cfg> = functions.iter().map(|f| f.cfg.clone()).collect();
    mark_returning_calls(&mut cfgs, replaceable);
    cfgs
}

/// The intrinsic whose calls are probes.
fn probe<'ctx>(module: &Module<'ctx>) -> FunctionValue<'ctx> {
    let Some(probe) = Intrinsic::find("llvm.pseudoprobe").and_then(|i| i.get_declaration(module, &[])) else {
        unreachable!("every LLVM that loads this plugin has llvm.pseudoprobe")
    };
    probe
}

/// A probe in each block.
fn insert_block_probes<'ctx>(module: &Module<'ctx>, function: &FunctionIr<'ctx>, probe: FunctionValue<'ctx>) {
    let context = module.get_context();
    let (i32t, i64t) = (context.i32_type(), context.i64_type());
    let builder = context.create_builder();
    for (index, block) in function.value.get_basic_block_iter().enumerate() {
        let index = BlockIndex(index as u32);
        // SAFETY: the block belongs to the function being annotated.
        let Some(position) = (unsafe { ir::probe_position(block.as_mut_ptr()) }) else {
            continue; // catchswitch: it keeps its number
        };
        // SAFETY: the position is an instruction of this block.
        builder.position_before(&unsafe { InstructionValue::new(position) });
        let args = [
            i64t.const_int(function.cfg.id.guid.0, false).into(),
            i64t.const_int(u64::from(function.cfg.block_probe(index)), false).into(),
            i32t.const_zero().into(),
            i64t.const_int(FULL_FACTOR, false).into(),
        ];
        let call = builder
            .build_call(probe, &args, "")
            .expect("the builder has a position");
        // SAFETY: both are instructions of this block, and the function has a subprogram.
        unsafe { ffi::pleach_set_probe_location(call.as_value_ref(), position) };
    }
}

fn mark_calls(function: &FunctionIr<'_>, is_early: bool) {
    let first = function.cfg.blocks.len() as u32 + 1;
    for (index, (value, call)) in function.calls.iter().zip(&function.cfg.calls).enumerate() {
        if call.callee == Callee::InlineAsm {
            continue; // never inlined, and not a call in the emitted code
        }
        let direct = matches!(call.callee, Callee::Direct(_) | Callee::Memory);
        // SAFETY: the value is a call of this function, which has a subprogram.
        unsafe { ffi::pleach_set_call_probe(*value, first + index as u32, direct, is_early) };
    }
}

/// The record that LLVM turns into `.pseudo_probe_desc`.
fn describe(module: &Module<'_>, cfg: &Cfg) {
    let context = module.get_context();
    let i64t = context.i64_type();
    let node = context.metadata_node(&[
        i64t.const_int(cfg.id.guid.0, false).into(),
        i64t.const_int(cfg.hash().0, false).into(),
        context.metadata_string(&cfg.name).into(),
    ]);
    module
        .add_global_metadata(DESCRIPTORS, &node)
        .expect("the node is well-formed");
}

/// One manifest entry, in a section group of its own so that linkers keep one copy of each identifier and graph, and
/// keep it for functions without text of their own.
pub fn write_entry(assembly: &mut String, cfg: &Cfg, anchor: Anchor) {
    let section = manifest::SECTION;
    // Pushed and popped, so that the user's assembly after it remains in its own section.
    let _ = writeln!(
        assembly,
        ".pushsection {section},\"G\",@progbits,{section}.{}.{},comdat",
        cfg.id,
        cfg.hash()
    );
    for line in manifest::encode(cfg, anchor).chunks(8 * 8) {
        assembly.push_str(".quad ");
        for (i, word) in line.chunks_exact(8).enumerate() {
            let value = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
            let _ = write!(assembly, "{}{value:#x}", if i == 0 { "" } else { "," });
        }
        assembly.push('\n');
    }
    assembly.push_str(".popsection\n");
}

pub fn append_assembly(module: &Module<'_>, assembly: &str) {
    if assembly.is_empty() {
        return;
    }
    // SAFETY: the module is alive and the text is copied.
    unsafe {
        let mut len = 0;
        LLVMGetModuleInlineAsm(module.as_mut_ptr(), &mut len);
        // The user's assembly may not end with a newline.
        let newline = if len > 0 { "\n" } else { "" };
        let text = format!("{newline}{assembly}");
        LLVMAppendModuleInlineAsm(module.as_mut_ptr(), text.as_ptr().cast(), text.len());
    }
}
