//! The shim's functions, and safe views of what they return. Everything that depends on LLVM's version is here and in `cpp/`.

use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMMetadataRef, LLVMModuleRef, LLVMValueRef};
use std::ffi::{c_char, c_void};

/// Text owned by the host.
#[repr(C)]
pub struct Text {
    data: *const u8,
    size: usize,
}

impl Text {
    /// A copy; empty where the option was not given.
    pub fn to_owned(&self) -> String {
        if self.data.is_null() || self.size == 0 {
            return String::new();
        }
        // SAFETY: the shim returns the storage of a string option, which lives as long as the host.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.size) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// Mirror of `PleachInstructionFacts` in `cpp/annotate.cpp`.
#[repr(C)]
pub struct InstructionFacts {
    pub callee: LLVMValueRef,
    pub line: u32,
    pub counts: u8,
    pub call: u8,
    pub may_not_return: u8,
    pub eh_pad: u8,
}

/// Mirror of `PleachSummaryEntry` in `cpp/use.cpp`.
#[repr(C)]
pub struct SummaryEntry {
    pub cutoff: u32,
    pub min_count: u64,
    pub num_counts: u64,
}

/// Mirror of `PleachSummary` in `cpp/use.cpp`.
#[repr(C)]
pub struct Summary {
    pub total_count: u64,
    pub max_count: u64,
    pub max_internal_count: u64,
    pub max_function_count: u64,
    pub num_counts: u32,
    pub num_functions: u32,
    pub entries: *const SummaryEntry,
    pub num_entries: usize,
}

/// Mirror of `PleachMarker` in `cpp/markers.cpp`.
#[repr(C)]
pub struct Marker {
    pub key: u64,
    pub context: u64,
    pub index: u32,
}

/// Mirror of `PleachNode` in `cpp/superblock.cpp`.
#[repr(C)]
pub struct Node {
    pub origin: u32,
    pub successors: *const u32,
    pub count: usize,
}

/// Mirror of `PleachOp` in `cpp/instrument.cpp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Op {
    pub kind: u32,
    pub value: i64,
}

/// Mirror of `PleachOps`.
#[repr(C)]
pub struct Ops {
    pub data: *const Op,
    pub count: usize,
}

/// Mirror of `PleachEdge`.
#[repr(C)]
pub struct EdgeOps {
    pub from: u32,
    pub to: u32,
    pub ops: Ops,
}

/// Mirror of `PleachBlock`.
#[repr(C)]
pub struct BlockOps {
    pub block: u32,
    pub ops: Ops,
}

/// Mirror of `PleachResume`.
#[repr(C)]
pub struct ResumeOps {
    pub call: LLVMValueRef,
    pub ops: Ops,
}

/// Mirror of `PleachPlan`.
#[repr(C)]
pub struct Plan {
    pub entry: Ops,
    pub edges: *const EdgeOps,
    pub edge_count: usize,
    pub exits: *const BlockOps,
    pub exit_count: usize,
    pub records: *const BlockOps,
    pub record_count: usize,
    pub resumes: *const ResumeOps,
    pub resume_count: usize,
    pub word: u64,
    pub base: u64,
    pub window: u32,
    pub hashed: u32,
    pub tag: u32,
}

/// Mirror of `PleachHashed`, and of `struct hashed` in `runtime/counts.c`.
#[repr(C)]
pub struct Hashed {
    pub function: u64,
    pub word: u64,
}

/// Mirror of `PleachPlacedFunction` in `cpp/placement.cpp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PlacedFunction {
    pub function: LLVMValueRef,
    pub instructions: u64,
    pub calls: u64,
}

/// Mirror of `PleachPlacedCalls`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PlacedCalls {
    pub caller: u64,
    pub callee: u64,
    pub count: u64,
}

/// Mirror of `PleachLoop`.
#[repr(C)]
pub struct Loop {
    pub instructions: u64,
    pub iterations: f64,
    pub entries: f64,
}

/// Decides on the alignment of a loop of a program that executes so many blocks.
pub type AlignmentFn = extern "C" fn(*const Loop, f64) -> u32;

/// Takes what `pleach_placed_functions` tells: functions, their number, calls, their number.
pub type PlacedFn = extern "C" fn(*mut c_void, *const PlacedFunction, usize, *const PlacedCalls, usize);

/// Mirror of `PleachRecurrence` in `cpp/recurrences.cpp`.
#[repr(C)]
pub struct Recurrence {
    pub select: LLVMValueRef,
    pub condition: f64,
    pub values: f64,
}

/// Mirror of `PleachArms` in `cpp/selects.cpp`.
#[repr(C)]
pub struct Arms {
    pub executed: [f64; 2],
    pub needed: [f64; 2],
    pub selects: f64,
    pub shared: f64,
    pub probability: f64,
    pub rate: f64,
}

/// Opaque: `PleachRun` in `cpp/shim.h`.
pub enum RunContext {}

/// Entry from the C++ pass: module, context, stage, LTO phase; returns whether the module changed.
pub type RunFn = extern "C" fn(LLVMModuleRef, *mut RunContext, u32, u32) -> bool;

unsafe extern "C" {
    pub fn pleach_register(pass_builder: *mut c_void, run: RunFn, uses_profile: extern "C" fn() -> bool);
    pub safe fn pleach_plugin_api_version() -> u32;
    pub safe fn pleach_plugin_info_size() -> usize;
    pub safe fn pleach_option_annotate() -> bool;
    pub safe fn pleach_option_summary() -> bool;
    pub safe fn pleach_option_use() -> Text;
    pub safe fn pleach_option_random() -> u64;
    pub safe fn pleach_option_random_paths() -> u64;
    pub safe fn pleach_option_anchor() -> Text;
    pub safe fn pleach_option_instrument() -> Text;
    pub safe fn pleach_option_iterations() -> u32;
    pub safe fn pleach_option_weights() -> Text;
    pub safe fn pleach_option_superblocks() -> bool;
    pub safe fn pleach_option_superblock_stage() -> u32;
    pub safe fn pleach_option_superblock_price() -> f64;
    pub safe fn pleach_option_aggressive() -> bool;
    pub safe fn pleach_option_verify() -> bool;
    pub safe fn pleach_option_placement() -> bool;
    pub safe fn pleach_option_align_loops() -> bool;
    pub safe fn pleach_option_recurrences() -> bool;
    pub safe fn pleach_option_selects() -> bool;
    pub safe fn pleach_option_any_selects() -> bool;

    pub fn pleach_module_is_elf(module: LLVMModuleRef) -> bool;
    pub fn pleach_diagnose(module: LLVMModuleRef, text: *const c_char, size: usize, fatal: bool);
    pub fn pleach_print(text: *const c_char, size: usize);
    pub fn pleach_remarks_enabled(module: LLVMModuleRef) -> bool;
    pub fn pleach_remark(function: LLVMValueRef, passed: bool, name: *const c_char, text: *const c_char, size: usize);

    pub fn pleach_instruction_facts(instruction: LLVMValueRef, facts: *mut InstructionFacts);
    pub fn pleach_function_is_naked(function: LLVMValueRef) -> bool;
    pub fn pleach_probe_position(block: LLVMBasicBlockRef) -> LLVMValueRef;
    pub fn pleach_ensure_subprogram(function: LLVMValueRef, unit: *mut LLVMMetadataRef);
    pub fn pleach_set_call_probe(call: LLVMValueRef, index: u32, direct: bool);
    pub fn pleach_set_probe_location(probe: LLVMValueRef, position: LLVMValueRef);

    pub fn pleach_has_profile_summary(module: LLVMModuleRef) -> bool;
    pub fn pleach_set_profile_summary(
        module: LLVMModuleRef,
        run: *mut RunContext,
        summary: *const Summary,
        at_once: bool,
    );
    pub fn pleach_is_hot_count(run: *mut RunContext, count: u64) -> bool;
    pub fn pleach_is_cold_count(run: *mut RunContext, count: u64) -> bool;
    pub fn pleach_set_entry_count(function: LLVMValueRef, count: u64);
    pub fn pleach_mark_hot(function: LLVMValueRef);
    pub fn pleach_mark_cold(function: LLVMValueRef);
    pub fn pleach_place_apart(function: LLVMValueRef);
    pub fn pleach_inline_only_call(context: *mut RunContext, call: LLVMValueRef);
    pub fn pleach_set_branch_weights(terminator: LLVMValueRef, weights: *const u64, count: usize);
    pub fn pleach_carried(terminator: LLVMValueRef, condition: *mut f64, values: *mut f64) -> bool;
    pub fn pleach_mark_unpredictable(terminator: LLVMValueRef, permille: u32) -> bool;
    pub fn pleach_may_merge_arms(function: LLVMValueRef) -> bool;
    pub fn pleach_arms(terminator: LLVMValueRef, any: bool, arms: *mut Arms) -> bool;
    pub fn pleach_merge_arms(terminator: LLVMValueRef);
    pub fn pleach_recurrences(function: LLVMValueRef, found: *mut Recurrence, most: usize) -> usize;
    pub fn pleach_branch(select: LLVMValueRef);
    pub fn pleach_set_irreducible_headers(
        module: LLVMModuleRef,
        function: LLVMValueRef,
        counts: *const u64,
        count: usize,
    );
    pub fn pleach_value_profile_id(function: LLVMValueRef) -> u64;
    pub fn pleach_set_call_targets(
        module: LLVMModuleRef,
        call: LLVMValueRef,
        targets: *const u64,
        counts: *const u64,
        count: usize,
        total: u64,
    );

    pub fn pleach_ensure_call_locations(function: LLVMValueRef);
    pub fn pleach_marker(instruction: LLVMValueRef, marker: *mut Marker) -> bool;
    pub fn pleach_forget_markers(module: LLVMModuleRef);
    pub fn pleach_erase(instruction: LLVMValueRef);
    pub fn pleach_may_unfold(function: LLVMValueRef, small: bool) -> bool;
    pub fn pleach_frequencies(function: LLVMValueRef, counts: *mut f64, probabilities: *mut f64) -> bool;
    pub fn pleach_clonable(function: LLVMValueRef, early: bool, clonable: *mut u8);
    pub fn pleach_folded(trace: *const LLVMBasicBlockRef, count: usize, saved: *mut u32);
    pub fn pleach_loops(function: LLVMValueRef, tight: *mut u8, dispatching: *mut u8);
    pub fn pleach_unfold(function: LLVMValueRef, nodes: *const Node, count: usize) -> bool;
    pub fn pleach_keep_apart(blocks: *const LLVMBasicBlockRef, count: usize);
    pub fn pleach_tidy(function: LLVMValueRef);
    pub fn pleach_is_broken(function: LLVMValueRef) -> bool;
    pub fn pleach_set_placement(module: LLVMModuleRef, value: u32);
    pub fn pleach_placement(module: LLVMModuleRef) -> u32;
    pub safe fn pleach_place_at_link(split: bool);
    pub fn pleach_place(target_machine: *mut c_void, split: bool);
    pub fn pleach_placed_functions(module: LLVMModuleRef, tell: PlacedFn, to: *mut c_void);
    pub fn pleach_may_align(target_machine: *mut c_void) -> bool;
    pub fn pleach_align_loops(function: LLVMValueRef, decide: AlignmentFn) -> u32;
    pub fn pleach_unsampled_blocks(function: LLVMValueRef) -> u32;
    /// Keeps a dispatch behind each operation of interpreters.
    pub fn pleach_keep_dispatches(module: LLVMModuleRef);
    pub fn pleach_keep_chains(function: LLVMValueRef);
    pub fn pleach_move_to_end(function: LLVMValueRef);

    pub fn pleach_keep_block_tails();
    pub fn pleach_is_x86_64(module: LLVMModuleRef) -> bool;
    pub fn pleach_is_replaceable(function: LLVMValueRef) -> bool;
    pub fn pleach_wants_no_counts(function: LLVMValueRef) -> bool;
    pub fn pleach_cannot_instrument(function: LLVMValueRef, plan: *const Plan) -> *const c_char;
    pub fn pleach_make_unit(
        module: LLVMModuleRef,
        description: *const u8,
        size: usize,
        id: u64,
        words: u64,
        tag: u32,
        hashed: *const Hashed,
        hashed_count: usize,
    ) -> LLVMValueRef;
    pub fn pleach_instrument(function: LLVMValueRef, slot: LLVMValueRef, plan: *const Plan);
    pub fn pleach_finish_counts(module: LLVMModuleRef, runtime: *const u8, size: usize) -> *const c_char;
}

/// Reports through the module's diagnostic handler: clang and lld print it in their usual form, and a fatal one makes
/// their exit status 1.
pub fn diagnose(module: LLVMModuleRef, text: &str, fatal: bool) {
    // SAFETY: the module is the one being compiled; the text is copied before the call returns.
    unsafe { pleach_diagnose(module, text.as_ptr().cast(), text.len(), fatal) }
}

/// Prints a line to the host's error stream.
pub fn print(text: &str) {
    // SAFETY: the text is copied before the call returns.
    unsafe { pleach_print(text.as_ptr().cast(), text.len()) }
}
