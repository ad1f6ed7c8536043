//! Code placement: options of code generation, and the order of a module's functions.
//!
//! `use` stores its request in a module flag, which link-time optimisation carries to the linker.

use crate::ir::lines::first_own_line;
use crate::ir::{self, attributes, metadata};
use crate::remarks::{self, Text};
use crate::{ffi, settings};
use inkwell::llvm_sys::LLVMLinkage;
use inkwell::llvm_sys::core::{
    LLVMCountBasicBlocks, LLVMGetAlignment, LLVMGetFirstFunction, LLVMGetLinkage, LLVMGetNextFunction,
    LLVMIsDeclaration, LLVMSetAlignment,
};
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMModuleRef, LLVMValueRef};
use inkwell::module::Module;
use inkwell::values::BasicMetadataValueEnum;
use pleach_decide::placement::{
    Arc, BYTES_PER_INSTRUCTION, Loop, MIN_INTERPRETER_LABELS, Node, alignment, dispatch_alignment, entry_alignment,
    order,
};
use rustc_hash::FxHashMap;
use std::ffi::c_void;
use std::sync::Once;

/// Values of the module flag. Linking keeps the largest: code is split if any module's profile supports it.
const PLACE: u32 = 1;
const SPLIT: u32 = 2;

/// The module flag's name.
const FLAG: &str = "pleach.placement";
/// The cut-off, in parts per million of all executions, below which code generation splits a block off. `use` sets the
/// count at this cut-off to half a sample.
const SPLIT_CUTOFF: u32 = 999_999;
/// What it costs to save a register, for LLVM's allocation of registers: two accesses, where one in each execution of the
/// function costs 2¹⁴. LLVM's own value on x86 is 0: registers that only rare calls need are saved at each entry.
const SAVE_COST: u32 = 2 << 14;

/// Requests placement by the profile in a module flag, in place of an earlier request. `split`: also requests splitting
/// off blocks without samples.
pub fn request(module: &Module<'_>, split: bool) {
    let value = if split { SPLIT } else { PLACE };
    // SAFETY: the module is alive.
    unsafe { metadata::set_max_module_flag(module.as_mut_ptr(), FLAG, value) };
    if is_compiled_by_rustc(module) {
        // All modules of the process have the same profile, and none is compiled before it was at the anchor.
        set_options_without_target(value);
    }
}

/// Whether placement by the profile is requested.
pub fn is_requested(module: &Module<'_>) -> bool {
    // SAFETY: the module is alive.
    unsafe { requested(module.as_mut_ptr()) > 0 }
}

/// The request in a module; 0 if there is none.
///
/// # Safety
/// The module must be alive.
unsafe fn requested(module: LLVMModuleRef) -> u32 {
    // SAFETY: as the caller promises.
    let value = unsafe { metadata::module_flag_number(module, FLAG) };
    value.map_or(0, |value| value as u32)
}

/// Sets LLVM's options where the plugin has no access to the target machine. Threads of rustc and of linkers come here
/// at once. With these options and without, code without a profile is compiled the same but for its registers.
fn set_options_without_target(request: u32) {
    static SPLITTING: Once = Once::new();
    set_host_options();
    if request >= SPLIT {
        SPLITTING.call_once(|| _ = ffi::set_host_option("enable-split-machine-functions", "1"));
    }
}

/// Sets options of code generation, once per process: only if a module requests placement, and never options that the
/// user has set.
fn set_host_options() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Block order by the extended travelling-salesman model (Newell and Pupyrev, *Improved Basic Block Reordering*,
        // 2020), applied to the chains of LLVM's block placement. Functions without a profile keep their order.
        ffi::set_host_option("enable-ext-tsp-block-placement", "1");
        ffi::set_host_option("ext-tsp-apply-without-profile", "0");
        ffi::set_host_option("regalloc-csr-first-time-cost", &SAVE_COST.to_string());
        ffi::set_host_option("mfs-psi-cutoff", &SPLIT_CUTOFF.to_string());
        // Every linker groups `.text.unlikely.*`; only lld groups LLVM's default `.text.split.*`.
        ffi::set_host_option("bbsections-cold-text-prefix", ".text.unlikely.");
    });
}

/// Whether rustc compiles the module. It does not call plugins before code generation.
pub fn is_compiled_by_rustc(module: &Module<'_>) -> bool {
    let compilers = module.get_global_metadata("llvm.ident");
    let mut names = compilers.iter().flat_map(|node| node.get_node_values()).flatten();
    names.any(|name| match name {
        BasicMetadataValueEnum::MetadataValue(name) => {
            name.get_string_value().is_some_and(|name| name.starts_with(b"rustc "))
        }
        _ => false,
    })
}

/// Places a module's code as requested, as the last pass: for rustc and linkers, which do not call plugins before code
/// generation. `is_alone`: no other module is compiled in this process at the same time.
pub fn at_last_pass(module: &Module<'_>, is_alone: bool) {
    let raw = module.as_mut_ptr();
    // SAFETY: the module is alive and about to be compiled.
    unsafe {
        let (value, options) = (requested(raw), ffi::options());
        if is_alone && (value != 0 || settings::uses_profile()) {
            keep_dispatches(raw);
        }
        if value == 0 || !ffi::target(raw).is_elf {
            return;
        }
        set_options_without_target(value);
        let x86_64 = ffi::target(raw).is_x86_64;
        let align = Align {
            loops: options.align_loops && x86_64,
            entries: options.align_entries && x86_64,
        };
        order_functions(raw, value >= SPLIT, align);
    }
}

/// Places a module's code as requested, just before code generation.
///
/// # Safety
/// Module and target machine must be those of the current code generation.
pub unsafe fn before_codegen(module: LLVMModuleRef, target_machine: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe {
        if settings::uses_profile() {
            keep_dispatches(module);
        }
        let value = requested(module);
        if value == 0 || !ffi::target(module).is_elf {
            return;
        }
        let split = value >= SPLIT;
        set_host_options();
        ffi::pleach_set_target_options(target_machine, split);
        let options = ffi::options();
        let align = Align {
            loops: options.align_loops && ffi::pleach_may_align(target_machine),
            entries: options.align_entries && ffi::target(module).is_x86_64,
        };
        order_functions(module, split, align);
    }
}

/// Keeps one dispatch per operation of an interpreter with computed gotos.
///
/// Tail merging would merge the dispatches before code generation duplicates them. It is an option of the process, so
/// it is restricted for the whole module.
///
/// # Safety
/// The module must be alive.
unsafe fn keep_dispatches(module: LLVMModuleRef) {
    // SAFETY: as the caller promises.
    let labels = unsafe { ffi::pleach_prepare_computed_gotos(module) };
    if labels >= MIN_INTERPRETER_LABELS {
        ffi::merge_only_equal_blocks();
    }
}

/// What is aligned by the profile.
#[derive(Clone, Copy, Default)]
pub struct Align {
    /// Innermost loops.
    pub loops: bool,
    /// Entries of hot functions.
    pub entries: bool,
}

/// Orders a module's functions by call-chain clustering.
///
/// # Safety
/// The module must be alive; where loops are aligned, it must be about to be compiled.
pub unsafe fn order_functions(module: LLVMModuleRef, split: bool, align: Align) {
    let remarks = remarks::are_enabled(module);
    // SAFETY: as the caller promises.
    unsafe {
        let graph = CallGraph::read(module);
        let run = graph.order();
        for (place, &at) in run.iter().enumerate() {
            let function = graph.functions[at].function;
            let aligned = Aligned {
                loops: if align.loops {
                    ffi::pleach_align_loops(function, loop_alignment)
                } else {
                    0
                },
                entry: if align.entries { align_entry(function) } else { 0 },
            };
            if remarks {
                let unsampled = if split { unsampled_blocks(function) } else { Vec::new() };
                let text = graph.describe(&run, place, aligned, &unsampled);
                remarks::emit(function, true, "Placed", text);
            }
            ffi::pleach_keep_host_block_order(function);
            ffi::pleach_move_to_end(function);
        }
        // Functions without calls follow in their given order.
        for other in graph.functions.iter().filter(|f| f.calls == 0) {
            ffi::pleach_keep_host_block_order(other.function);
            ffi::pleach_move_to_end(other.function);
        }
    }
}

/// What was aligned in a function.
#[derive(Clone, Copy)]
struct Aligned {
    /// Number of loops.
    loops: u32,
    /// Alignment of the entry in bytes; 0 if it is LLVM's.
    entry: u32,
}

/// Aligns a function's entry by the profile, unless it has an alignment of its own or is optimised for size.
///
/// # Safety
/// The function must be alive.
unsafe fn align_entry(function: LLVMValueRef) -> u32 {
    // SAFETY: as the caller promises.
    unsafe {
        let for_size = attributes::has(function, "optsize") || attributes::has(function, "minsize");
        if for_size || LLVMGetAlignment(function) != 0 {
            return 0;
        }
        let alignment = entry_alignment(ffi::pleach_execution_share(function));
        if alignment > 0 {
            LLVMSetAlignment(function, alignment);
        }
        alignment
    }
}

/// The blocks of a function that code generation splits off.
///
/// # Safety
/// The function must be alive.
unsafe fn unsampled_blocks(function: LLVMValueRef) -> Vec<LLVMBasicBlockRef> {
    // SAFETY: as the caller promises; there is room for all blocks, and so many were written.
    unsafe {
        let mut found = Vec::with_capacity(LLVMCountBasicBlocks(function) as usize);
        let number = ffi::pleach_unsampled_blocks(function, SPLIT_CUTOFF, found.as_mut_ptr());
        found.set_len(number);
        found
    }
}

/// The alignment of an innermost loop.
extern "C" fn loop_alignment(raw: *const ffi::Loop, total: f64) -> u32 {
    decide(raw, total, alignment)
}

/// The alignment of a dispatch.
pub extern "C" fn dispatch(raw: *const ffi::Loop, total: f64) -> u32 {
    decide(raw, total, dispatch_alignment)
}

/// Only arithmetic: no panic may reach C++.
fn decide(raw: *const ffi::Loop, total: f64, alignment: fn(&Loop, f64) -> u64) -> u32 {
    // SAFETY: the shim passes a loop that lives for the call.
    let raw = unsafe { &*raw };
    let innermost = Loop {
        instructions: raw.instructions,
        iterations: raw.iterations,
        entries: raw.entries,
    };
    alignment(&innermost, total) as u32
}

/// A defined function.
struct PlacedFunction {
    function: LLVMValueRef,
    instructions: u64,
    /// Entry count; 0 without a profile.
    calls: u64,
}

/// Calls between functions. Functions are indices.
struct PlacedCalls {
    caller: usize,
    callee: usize,
    count: u64,
}

/// A module's functions, and the calls between them after inlining, from LLVM's call-graph profile.
struct CallGraph {
    functions: Vec<PlacedFunction>,
    calls: Vec<PlacedCalls>,
}

impl CallGraph {
    /// # Safety
    /// The module must be alive.
    unsafe fn read(module: LLVMModuleRef) -> Self {
        let mut functions = Vec::new();
        let mut position = FxHashMap::default();
        // SAFETY: as the caller promises; the walk ends at the null after the last function.
        unsafe {
            let mut function = LLVMGetFirstFunction(module);
            while !function.is_null() {
                let is_defined = LLVMIsDeclaration(function) == 0
                    && LLVMGetLinkage(function) != LLVMLinkage::LLVMAvailableExternallyLinkage;
                if is_defined {
                    position.insert(function, functions.len());
                    functions.push(PlacedFunction {
                        function,
                        instructions: ir::instruction_count(function),
                        calls: metadata::entry_count(function).unwrap_or(0),
                    });
                }
                function = LLVMGetNextFunction(function);
            }
            let profile = metadata::call_graph_profile(module).into_iter();
            let calls = profile.filter_map(|(caller, callee, count)| {
                Some(PlacedCalls {
                    caller: *position.get(&caller)?,
                    callee: *position.get(&callee)?,
                    count,
                })
            });
            Self {
                calls: calls.collect(),
                functions,
            }
        }
    }

    /// Indices of the functions that run, in placement order.
    fn order(&self) -> Vec<usize> {
        let node = |f: &PlacedFunction| Node {
            size: f.instructions * BYTES_PER_INSTRUCTION,
            weight: f.calls,
        };
        let arc = |c: &PlacedCalls| Arc {
            caller: c.caller,
            callee: c.callee,
            weight: c.count,
        };
        let nodes: Vec<Node> = self.functions.iter().map(node).collect();
        let arcs: Vec<Arc> = self.calls.iter().map(arc).collect();
        order(&nodes, &arcs)
    }

    /// The remark about the function at a place of the order. `unsampled`: blocks that are split off.
    fn describe(&self, run: &[usize], place: usize, aligned: Aligned, unsampled: &[LLVMBasicBlockRef]) -> Text {
        let mut text = format!("placed {} of {}", place + 1, run.len());
        if let Some(&before) = place.checked_sub(1).and_then(|place| run.get(place)) {
            text += &format!(", after {}", ir::name_of(self.functions[before].function));
            let (called, calls) = (self.calls(before, run[place]), self.calls(run[place], before));
            if called > 0 {
                text += ", which calls it";
            } else if calls > 0 {
                text += ", which it calls";
            }
        }
        if aligned.entry > 0 {
            text += &format!("; entry aligned to {} bytes", aligned.entry);
        }
        if aligned.loops > 0 {
            text += &format!("; loops aligned to 32 bytes: {}", aligned.loops);
        }
        if !unsampled.is_empty() {
            // SAFETY: the blocks belong to the module.
            let lines = unsampled.iter().filter_map(|&block| unsafe { first_own_line(block) });
            let text = Text::from(text + "; unsampled blocks split off: ");
            return text.value("SplitBlocks", unsampled.len()).lines(lines);
        }
        text.into()
    }

    /// The number of calls of one function by another.
    fn calls(&self, caller: usize, callee: usize) -> u64 {
        let between = |c: &&PlacedCalls| c.caller == caller && c.callee == callee;
        self.calls.iter().filter(between).map(|c| c.count).sum()
    }
}
