//! The C++ half's functions and structs: the mirror of `cpp/pleach.h`. Only this file, `ir/` and `cpp/` depend on
//! LLVM's version.

use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMMetadataRef, LLVMModuleRef, LLVMValueRef};
use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::sync::Once;

/// Asserts a struct's size and the offsets of fields, as `cpp/pleach.h` does with the same numbers.
macro_rules! layout {
    ($name:ident: $size:literal $(, $field:ident: $offset:literal)*) => {
        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(offset_of!($name, $field) == $offset);)*
        };
    };
}

/// Text owned by the host.
#[repr(C)]
pub struct Text {
    data: *const u8,
    size: usize,
}

impl Text {
    /// A copy; empty if the option was not given.
    pub fn to_owned(&self) -> String {
        if self.data.is_null() || self.size == 0 {
            return String::new();
        }
        // SAFETY: the shim returns the storage of a string option, which lives as long as the host.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.size) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

layout!(Text: 16, size: 8);

/// Mirror of `PleachOptions`.
#[repr(C)]
pub struct RawOptions {
    pub profile: Text,
    pub second_profile: Text,
    pub anchor: Text,
    pub instrument: Text,
    pub weights: Text,
    pub only: Text,
    pub decisions: Text,
    pub random_profile: u64,
    pub random_paths: u64,
    pub superblock_min_gain: f64,
    pub superblock_min_function_gain: f64,
    pub iterations: u32,
    pub superblock_stage: u32,
    pub annotate: bool,
    pub summary: bool,
    pub superblocks: bool,
    pub superblocks_aggressive: bool,
    pub verify: bool,
    pub placement: bool,
    pub align_loops: bool,
    pub align_entries: bool,
    pub if_conversion: bool,
    pub if_conversion_aggressive: bool,
    pub select_to_branch: bool,
    pub salvage: bool,
    pub unweight_logical_selects: bool,
    pub keep_recursive_calls: bool,
    pub annotate_late: bool,
    pub switches: bool,
}
layout!(RawOptions: 168, random_profile: 112, superblock_min_gain: 128, iterations: 144, annotate: 152, switches: 167);

/// A piece of a remark: `PleachRemarkPiece` in `cpp/pleach.h`.
#[repr(C)]
pub struct RemarkPiece {
    /// Its name; `String` for plain text.
    pub name: *const c_char,
    /// The text, which is not terminated.
    pub text: *const c_char,
    /// Bytes of the text.
    pub size: usize,
}

layout!(RemarkPiece: 24, text: 8, size: 16);

/// Mirror of `PleachLimits`.
#[repr(C)]
pub struct Limits {
    pub early_inline_threshold: i32,
    pub early_inline_cold_threshold: i32,
    pub early_inline_hint_threshold: i32,
    pub max_promoted_counters: u32,
    pub max_loop_exits: u32,
    pub max_index_values: u32,
    pub llvm_min_trip_count: u32,
    pub assumed_trip_count: u32,
    pub max_search_iterations: u32,
}
layout!(Limits: 36, max_promoted_counters: 12);

/// Mirror of `PleachTarget`.
#[repr(C)]
pub struct Target {
    pub is_elf: bool,
    pub is_x86_64: bool,
    pub is_aarch64: bool,
}
layout!(Target: 3, is_x86_64: 1);

/// Mirror of `PleachInstructionFacts`.
#[repr(C)]
pub struct InstructionFacts {
    pub callee: LLVMValueRef,
    pub line: u32,
    pub is_real_instruction: u8,
    pub call: u8,
    pub may_not_return: u8,
    pub is_eh_pad: u8,
}
layout!(InstructionFacts: 16, line: 8, is_real_instruction: 12, is_eh_pad: 15);

/// Mirror of `PleachSummaryEntry`.
#[repr(C)]
pub struct SummaryEntry {
    pub cutoff: u32,
    pub min_count: u64,
    pub num_counts: u64,
}
layout!(SummaryEntry: 24, min_count: 8);

/// Mirror of `PleachSummary`.
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
layout!(Summary: 56, num_counts: 32, entries: 40);

/// Mirror of `PleachOnlyCall`.
#[repr(C)]
pub struct OnlyCall {
    pub instructions: u64,
    pub stack_bytes: u64,
}
layout!(OnlyCall: 16, stack_bytes: 8);

/// Mirror of `PleachLoop`.
#[repr(C)]
pub struct Loop {
    pub instructions: u64,
    pub iterations: f64,
    pub entries: f64,
}
layout!(Loop: 24, entries: 16);

/// Mirror of `PleachAlignmentFn`: the alignment of a loop, given the executions of all blocks of the program.
pub type AlignmentFn = extern "C" fn(*const Loop, f64) -> u32;

/// Mirror of `PleachMarker`.
#[repr(C)]
pub struct RawMarker {
    pub key: u64,
    pub inlined_at: LLVMMetadataRef,
    pub index: u32,
    pub block: u32,
}
layout!(RawMarker: 24, inlined_at: 8, block: 20);

/// Mirror of `PleachNode`.
#[repr(C)]
pub struct Node {
    pub origin: u32,
    pub successors: *const u32,
    pub count: usize,
}
layout!(Node: 24, successors: 8, count: 16);

/// Mirror of `PleachArms`.
#[repr(C)]
pub struct Arms {
    pub executed: [f64; 2],
    pub needed: [f64; 2],
    pub selects: f64,
    pub shared: f64,
    pub probability: f64,
    pub rate: f64,
    pub chain: f64,
    pub results: [f64; 2],
}
layout!(Arms: 88, needed: 16, selects: 32, rate: 56, chain: 64, results: 72);

/// Mirror of `PleachTests`.
#[repr(C)]
pub struct Tests {
    pub size: f64,
    pub selects: f64,
    pub first_succeeds: f64,
    pub second_succeeds: f64,
    pub rate: f64,
    pub results: f64,
    pub is_loop_carried: bool,
}
layout!(Tests: 56, rate: 32, is_loop_carried: 48);

/// Mirror of `PleachLatencies`.
#[repr(C)]
pub struct Latencies {
    pub load: f64,
    pub division: f64,
    pub moves: f64,
    pub intrinsic: f64,
    pub call: f64,
    pub multiply: f64,
    pub other: f64,
}
layout!(Latencies: 56, other: 48);

/// Mirror of `PleachLoopCarriedSelect`.
#[repr(C)]
pub struct LoopCarriedSelect {
    pub select: LLVMValueRef,
    pub condition: f64,
    pub waiting: f64,
    pub predicted: f64,
}
layout!(LoopCarriedSelect: 32, condition: 8);

/// Mirror of `PleachSwitch`.
#[repr(C)]
pub struct HotSwitch {
    pub switch: LLVMValueRef,
    pub executions: f64,
    pub default_weight: f64,
    pub mispredicted_low: i32,
    pub mispredicted_high: i32,
    pub ranges: u32,
    pub default_is_possible: bool,
}
layout!(HotSwitch: 40, mispredicted_low: 24, default_is_possible: 36);

/// Mirror of `PleachCaseRange`.
#[repr(C)]
pub struct CaseRange {
    pub first: i64,
    pub last: i64,
    pub weight: f64,
    pub destination: u32,
}
layout!(CaseRange: 32, destination: 24);

/// Mirror of `PleachCallKindFn`: the kind of calls, by the callee's name.
pub type CallKindFn = extern "C" fn(*const u8, usize) -> u32;

/// Mirror of `PleachOp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Op {
    pub kind: u32,
    pub value: i64,
}
layout!(Op: 16, value: 8);

/// Mirror of `PleachOps`.
#[repr(C)]
pub struct Ops {
    pub data: *const Op,
    pub count: usize,
}
layout!(Ops: 16);

/// Mirror of `PleachEdge`.
#[repr(C)]
pub struct EdgeOps {
    pub from: u32,
    pub to: u32,
    pub ops: Ops,
}
layout!(EdgeOps: 24, ops: 8);

/// Mirror of `PleachBlock`.
#[repr(C)]
pub struct BlockOps {
    pub block: u32,
    pub ops: Ops,
}
layout!(BlockOps: 24, ops: 8);

/// Mirror of `PleachResume`.
#[repr(C)]
pub struct ResumeOps {
    pub call: LLVMValueRef,
    pub ops: Ops,
}
layout!(ResumeOps: 24, ops: 8);

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
    pub call_kind: CallKindFn,
}
layout!(Plan: 120, edges: 16, word: 80, window: 96, tag: 104, call_kind: 112);

/// Mirror of `PleachHashed`, and of `struct hashed` in `runtime/layout.h`.
#[repr(C)]
pub struct Hashed {
    pub function: u64,
    pub word: u64,
}
layout!(Hashed: 16, word: 8);

/// Opaque: `PleachRun`.
pub enum RunContext {}

/// Mirror of `PleachRunFn`: module, context, stage, LTO phase; returns whether the module changed.
pub type RunFn = extern "C" fn(LLVMModuleRef, *mut RunContext, u32, u32) -> bool;

// The order is that of `cpp/pleach.h`.
unsafe extern "C" {
    pub fn pleach_register(
        pass_builder: *mut c_void,
        run: RunFn,
        uses_profile: extern "C" fn() -> bool,
        limits: *const Limits,
    );
    pub safe fn pleach_register_code_generation(uses_profile: extern "C" fn() -> bool, decide: AlignmentFn);
    pub safe fn pleach_register_probe_order();
    pub safe fn pleach_plugin_api_version() -> u32;
    pub safe fn pleach_plugin_info_size() -> usize;

    fn pleach_read_options(out: *mut RawOptions);
    fn pleach_import_callees_of_cold_calls();
    fn pleach_set_host_option(name: *const c_char, name_size: usize, value: *const c_char, value_size: usize) -> bool;

    fn pleach_diagnose(module: LLVMModuleRef, text: *const c_char, size: usize, is_fatal: bool);
    pub fn pleach_remarks_enabled(module: LLVMModuleRef) -> bool;
    pub fn pleach_remark(
        function: LLVMValueRef,
        passed: bool,
        name: *const c_char,
        pieces: *const RemarkPiece,
        count: usize,
    );

    pub fn pleach_set_target_options(target_machine: *mut c_void, split: bool);
    pub fn pleach_may_align(target_machine: *mut c_void) -> bool;
    pub fn pleach_assembles_itself(target_machine: *mut c_void) -> bool;
    pub fn pleach_emits_debug_info(module: LLVMModuleRef) -> bool;
    pub fn pleach_align_loops(function: LLVMValueRef, decide: AlignmentFn) -> u32;
    pub fn pleach_keep_host_block_order(function: LLVMValueRef);
    pub fn pleach_prepare_computed_gotos(module: LLVMModuleRef) -> u32;
    pub fn pleach_move_to_end(function: LLVMValueRef);

    fn pleach_target(module: LLVMModuleRef, out: *mut Target);
    pub fn pleach_chooses_extreme(terminator: LLVMValueRef) -> bool;
    pub fn pleach_instruction_facts(instruction: LLVMValueRef, out: *mut InstructionFacts);
    pub fn pleach_is_replaceable(function: LLVMValueRef) -> bool;
    pub fn pleach_value_profile_id(function: LLVMValueRef) -> u64;
    pub fn pleach_only_call(context: *mut RunContext, call: LLVMValueRef, out: *mut OnlyCall) -> bool;

    pub fn pleach_execution_share(function: LLVMValueRef) -> f64;
    pub fn pleach_frequencies(function: LLVMValueRef, counts: *mut f64, probabilities: *mut f64) -> bool;
    pub fn pleach_set_max_module_flag(module: LLVMModuleRef, name: *const u8, size: usize, value: u32);
    pub fn pleach_set_irreducible_headers(
        module: LLVMModuleRef,
        function: LLVMValueRef,
        counts: *const u64,
        count: usize,
    );
    pub fn pleach_set_short_visits(
        latches: *const LLVMValueRef,
        latch_count: usize,
        permille: *const u32,
        permille_count: usize,
        rest: u32,
    );
    pub fn pleach_mark_steady_loop(latches: *const LLVMValueRef, latch_count: usize);
    pub fn pleach_unsampled_blocks(function: LLVMValueRef, cutoff: u32, found: *mut LLVMBasicBlockRef) -> usize;

    pub fn pleach_set_profile_summary(
        module: LLVMModuleRef,
        run: *mut RunContext,
        summary: *const Summary,
        at_once: bool,
    );
    pub fn pleach_is_hot_count(run: *mut RunContext, count: u64) -> bool;
    pub fn pleach_is_cold_count(run: *mut RunContext, count: u64) -> bool;

    pub fn pleach_may_duplicate(function: LLVMValueRef, also_where_small: bool) -> bool;
    pub fn pleach_duplicable(function: LLVMValueRef, early: bool, duplicable: *mut u8);
    pub fn pleach_loops(function: LLVMValueRef, tight: *mut u8, dispatching: *mut u8);

    pub fn pleach_simulate_duplication(trace: *const LLVMBasicBlockRef, count: usize, saved: *mut u32);

    pub fn pleach_ensure_subprogram(function: LLVMValueRef, unit: *mut LLVMMetadataRef);
    pub fn pleach_set_call_probe(call: LLVMValueRef, index: u32, is_direct: bool, is_early: bool);
    pub fn pleach_set_probe_location(probe: LLVMValueRef, position: LLVMValueRef);
    pub fn pleach_erase_named_metadata(module: LLVMModuleRef, name: *const c_char, size: usize);

    pub fn pleach_insert_marker(block: LLVMBasicBlockRef, key: u64, index: u32);
    pub fn pleach_take_markers(function: LLVMValueRef, found: *mut RawMarker, capacity: usize) -> usize;

    pub fn pleach_duplicate_blocks(function: LLVMValueRef, nodes: *const Node, count: usize) -> bool;
    pub fn pleach_remove_dead_blocks(function: LLVMValueRef);
    pub fn pleach_prevent_tail_merge(blocks: *const LLVMBasicBlockRef, count: usize);

    pub fn pleach_may_if_convert(function: LLVMValueRef) -> bool;
    pub fn pleach_put_rates_back(function: LLVMValueRef);
    pub fn pleach_arms(terminator: LLVMValueRef, any: bool, latencies: *const Latencies, out: *mut Arms) -> bool;
    pub fn pleach_if_convert(terminator: LLVMValueRef);
    pub fn pleach_tests(terminator: LLVMValueRef, any: bool, latencies: *const Latencies, out: *mut Tests) -> bool;
    pub fn pleach_join_tests(terminator: LLVMValueRef);

    pub fn pleach_find_loop_carried_selects(
        function: LLVMValueRef,
        latencies: *const Latencies,
        found: *mut LoopCarriedSelect,
        capacity: usize,
    ) -> usize;
    pub fn pleach_select_to_branch(select: LLVMValueRef);

    pub fn pleach_find_hot_switches(
        function: LLVMValueRef,
        min_ranges: u32,
        any: bool,
        found: *mut HotSwitch,
        capacity: usize,
    ) -> usize;
    pub fn pleach_switch_ranges(switch: LLVMValueRef, out: *mut CaseRange);
    pub fn pleach_compare_before_switch(switch: LLVMValueRef, ranges: *const u32, count: usize);

    pub fn pleach_unweight_logical_selects(module: LLVMModuleRef) -> bool;
    pub fn pleach_return_after_tail_calls(module: LLVMModuleRef) -> bool;

    pub fn pleach_cannot_instrument(function: LLVMValueRef, plan: *const Plan) -> *const c_char;
    pub fn pleach_instrument(function: LLVMValueRef, slot: LLVMValueRef, plan: *const Plan) -> *const c_char;
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
    pub fn pleach_lower_counters(module: LLVMModuleRef, runtime: *const u8, size: usize) -> *const c_char;
}

/// The plugin's options on the command line.
pub fn options() -> RawOptions {
    let mut out = std::mem::MaybeUninit::uninit();
    // SAFETY: the C++ half writes every field.
    unsafe {
        pleach_read_options(out.as_mut_ptr());
        out.assume_init()
    }
}

/// Sets an option of the host or of the plugin for the whole process, unless the user has set it. Returns whether there
/// is one of that name which takes the value.
pub fn set_host_option(name: &str, value: &str) -> bool {
    // SAFETY: the texts are copied before the call returns.
    unsafe { pleach_set_host_option(name.as_ptr().cast(), name.len(), value.as_ptr().cast(), value.len()) }
}

/// Makes tail merging share equal blocks only, not common ends of different blocks, for the whole process.
pub fn merge_only_equal_blocks() {
    // The minimum of instructions in a common end. Equal blocks are merged whatever their size.
    set_host_option("tail-merge-size", "1000");
}

/// Keeps calls that may throw apart, for the whole process: LLVM would merge those of one function that differ in their
/// arguments only.
pub fn keep_invokes_apart() {
    set_host_option("simplifycfg-merge-compatible-invokes", "0");
}

/// Has ThinLTO import small callees of cold calls, for the whole process: rustc imports between the units of a crate. What
/// a call that is not inlined has the address of, though it is made once, stays in memory in all loops around.
pub fn import_callees_of_cold_calls() {
    static ONCE: Once = Once::new();
    // SAFETY: it sets an option of the process.
    ONCE.call_once(|| unsafe { pleach_import_callees_of_cold_calls() });
}

/// Turns off the analysis that follows variables through machine code, for the whole process: it takes time for each
/// function with locations, as of probes and markers, even without a variable.
pub fn follow_no_variables() {
    // Threads of linkers come here at once.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| _ = set_host_option("experimental-debug-variable-locations", "0"));
}

/// Turns LLVM's optimisation of cold blocks for size off for the whole process, unless the user has turned it on.
pub fn compile_cold_blocks_for_speed() {
    // Threads of linkers and of rustc come here at once.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| _ = set_host_option("pgso", "0"));
}

/// Facts about a module's target.
///
/// # Safety
/// The module must be alive.
pub unsafe fn target(module: LLVMModuleRef) -> Target {
    let mut out = std::mem::MaybeUninit::uninit();
    // SAFETY: as the caller promises; the C++ half writes every field.
    unsafe {
        pleach_target(module, out.as_mut_ptr());
        out.assume_init()
    }
}

/// Reports through the module's diagnostic handler: clang and lld print it in their usual form, and a fatal one makes
/// their exit status 1.
pub fn diagnose(module: LLVMModuleRef, text: &str, fatal: bool) {
    // SAFETY: the module is the one being compiled; the text is copied before the call returns.
    unsafe { pleach_diagnose(module, text.as_ptr().cast(), text.len(), fatal) }
}
