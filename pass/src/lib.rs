//! The LLVM plugin: identifies IR for `annotate`, counts exactly for `instrument`, and applies a profile for `use`.
//! README.md lists the passes and their order.
//!
//! The shared object leaves every LLVM symbol undefined; the process that loads it (clang, opt or lld) supplies them,
//! so that there is one LLVM in the process. Decisions are made in `pleach-feedback`; here they are only applied.

#![allow(unsafe_code, reason = "LLVM and the plugin's C++ half are called")]

mod annotate;
mod decisions;
mod error;
mod ffi;
mod instrument;
mod ir;
mod optimisation;
mod remarks;
mod settings;
mod stage;
mod transform;
mod use_profile;

use error::PassError;
use inkwell::llvm_sys::prelude::LLVMModuleRef;
use inkwell::module::Module;
use ir::{FunctionIr, ModuleFacts};
use pleach_annotate::manifest::Anchor;
use pleach_decide::{counter_promotion, early_inlining, short_loops};
use settings::{ProfileSource, Settings};
use stage::{LtoPhase, NamedPass, Stage, is_at_anchor};
use std::ffi::{CStr, c_char, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use transform::{cold_blocks, if_conversion, markers, placement, select_to_branch, superblocks, switches};
use use_profile::{apply, second, source::Source, unsampled};

/// Mirror of `llvm::PassPluginLibraryInfo` for plugin API version 2.
#[repr(C)]
pub struct PassPluginLibraryInfo {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: Option<unsafe extern "C" fn(*mut c_void)>,
    pre_codegen: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, u32, *mut c_void) -> bool>,
}

const SUPPORTED_API: u32 = 2;
const NAME: &CStr = c"pleach";
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("the version has an inner NUL"),
};

/// The symbol that `-fpass-plugin=` looks up. It is defined in Rust because rustc's version script hides every symbol
/// of the C++ archive.
// SAFETY: the name is LLVM's; no other definition is linked.
#[unsafe(no_mangle)]
pub extern "C" fn llvmGetPassPluginInfo() -> PassPluginLibraryInfo {
    // A host that disagrees about the struct gets version 0, which its loader reports as a mismatch instead of reading
    // a wrong layout.
    let same_layout = ffi::pleach_plugin_api_version() == SUPPORTED_API
        && ffi::pleach_plugin_info_size() == size_of::<PassPluginLibraryInfo>();
    PassPluginLibraryInfo {
        api_version: if same_layout { SUPPORTED_API } else { 0 },
        name: NAME.as_ptr(),
        version: VERSION.as_ptr(),
        register: Some(register),
        pre_codegen: Some(pre_codegen),
    }
}

/// The limits that the passes of the C++ half observe.
const LIMITS: ffi::Limits = ffi::Limits {
    early_inline_threshold: early_inlining::THRESHOLD,
    early_inline_cold_threshold: early_inlining::COLD_THRESHOLD,
    early_inline_hint_threshold: early_inlining::HINT_THRESHOLD,
    max_promoted_counters: counter_promotion::MAX_COUNTERS,
    max_loop_exits: counter_promotion::MAX_EXITS,
    max_index_values: counter_promotion::MAX_INDEX_VALUES,
    llvm_min_trip_count: short_loops::LLVM_MIN_TRIP_COUNT,
    assumed_trip_count: short_loops::ASSUMED_TRIP_COUNT,
    max_search_iterations: pleach_decide::if_conversion::MAX_SEARCH_ITERATIONS,
};

unsafe extern "C" fn register(pass_builder: *mut c_void) {
    settings::read_options_variable();
    // SAFETY: the host passes its PassBuilder; the limits are copied; the callbacks live as long as this library.
    unsafe { ffi::pleach_register(pass_builder, run_module, settings::uses_profile, &LIMITS) }
    ffi::pleach_register_code_generation(settings::uses_profile, placement::dispatch);
    ffi::pleach_register_probe_order();
}

/// Called before code generation; false tells the host to generate code itself.
unsafe extern "C" fn pre_codegen(module: *mut c_void, target_machine: *mut c_void, _: u32, _: *mut c_void) -> bool {
    let module: LLVMModuleRef = module.cast();
    let outcome = catch_unwind(|| {
        // SAFETY: the host passes its module and target machine, both alive for the call.
        unsafe {
            if settings::annotates() && !ffi::pleach_assembles_itself(target_machine) {
                ffi::diagnose(module, &PassError::OtherAssembler.to_string(), true);
            }
            if (settings::annotates() || settings::uses_profile()) && !ffi::pleach_emits_debug_info(module) {
                ffi::follow_no_variables();
            }
            placement::before_codegen(module, target_machine);
        }
    });
    if outcome.is_err() {
        ffi::diagnose(
            module,
            "pleach: internal error while placing code, please report it",
            true,
        );
    }
    false
}

/// Entry from the C++ pass. No panic leaves it: one becomes a compile error.
extern "C" fn run_module(raw: LLVMModuleRef, context: *mut ffi::RunContext, stage: u32, phase: u32) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the host owns the module and keeps it alive for the call; it is never dropped here.
        let module = ManuallyDrop::new(unsafe { Module::new(raw) });
        run(
            &module,
            context,
            Stage::from_number(stage),
            LtoPhase::from_number(phase),
        )
    }));
    match outcome {
        Ok(Ok(changed)) => changed,
        Ok(Err(error)) => {
            // At each stage again: rustc goes on after an error of the first.
            ffi::diagnose(raw, &error.to_string(), true);
            true
        }
        Err(payload) => {
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("unknown panic");
            ffi::diagnose(raw, &PassError::Internal(text.into()).to_string(), true);
            true
        }
    }
}

fn run(module: &Module<'_>, context: *mut ffi::RunContext, stage: Stage, phase: LtoPhase) -> Result<bool, PassError> {
    let settings = Settings::read()?;
    if let Stage::Only(pass) = stage {
        return run_alone(module, context, &settings, pass);
    }
    if phase.is_pre_link() && (settings.second_profile.is_some() || settings.annotate_late) {
        return Err(PassError::SecondWithLto);
    }
    cold_blocks::at_stage(module, phase);
    let mut changed = false;
    if is_at_anchor(settings.anchor, stage, phase) && settings.has_work_at_anchor() {
        run_at_anchor(module, context, &settings)?;
        changed = true;
    }
    // With link-time optimisation, loops are vectorised at the link.
    let last = stage == Stage::OptimizerLast && !phase.is_pre_link();
    if last && settings.profile.is_some() && settings.converts_branches() {
        changed |= if_conversion::run(module, &settings);
    }
    if last
        && settings.select_to_branch
        && let Some(profile) = &settings.profile
        && (settings.if_conversion_aggressive || Source::support_of(profile)?.if_conversion())
    {
        changed |= select_to_branch::run(module, &settings)?;
    }
    // Full link-time optimisation has no early stage after the inliner.
    if stage == Stage::OptimizerEarly || stage == Stage::OptimizerLast && phase == LtoPhase::FullPostLink {
        changed |= unsampled::forget_inherited_weights(module);
    }
    if settings.superblocks == Some(stage) {
        changed |= superblocks::run(module, &settings, last)?;
    }
    if last && settings.profile.is_some() && settings.unweight_logical_selects {
        // SAFETY: the module is alive.
        changed |= unsafe { ffi::pleach_unweight_logical_selects(module.as_mut_ptr()) };
    }
    // After everything that makes switches of comparisons.
    if stage == Stage::OptimizerEnd && !phase.is_pre_link()
        || stage == Stage::OptimizerLast && phase == LtoPhase::FullPostLink
    {
        changed |= switches::run(module, &settings)?;
    }
    if stage == Stage::OptimizerEnd {
        changed |= run_second_round(module, context, &settings)?;
    }
    if stage == Stage::OptimizerLast
        && (phase.is_post_link() || settings.profile.is_some() && placement::is_compiled_by_rustc(module))
    {
        placement::at_last_pass(module, phase != LtoPhase::ThinPostLink);
        changed = true;
    }
    if stage == Stage::OptimizerLast && settings.instrument.is_some() {
        instrument::lower_counters(module)?;
        changed = true;
    }
    Ok(changed)
}

/// Runs at the anchor: applies a profile, gives blocks identifiers, inserts counters.
fn run_at_anchor(module: &Module<'_>, context: *mut ffi::RunContext, settings: &Settings) -> Result<(), PassError> {
    let (mut facts, functions) = read_functions(module, settings.anchor)?;
    if let Some(profile) = &settings.profile {
        ffi::import_callees_of_cold_calls();
        use_profile(module, &functions, &mut facts, context, settings, profile)?;
    }
    if settings.annotate && !annotate::is_annotated(module) {
        annotate::run(module, &functions, settings.anchor);
    }
    if let Some(options) = &settings.instrument {
        instrument::run(
            module,
            &functions,
            settings.anchor,
            options,
            settings.weights.as_deref(),
        )?;
    }
    Ok(())
}

/// What follows the decisions of a first profile: weights of a second one, and identifiers for its recording.
fn run_second_round(
    module: &Module<'_>,
    context: *mut ffi::RunContext,
    settings: &Settings,
) -> Result<bool, PassError> {
    let annotate = settings.annotate_late && !annotate::is_annotated(module);
    let (Some(first), true) = (&settings.profile, annotate || settings.second_profile.is_some()) else {
        return Ok(false);
    };
    let (facts, functions) = read_functions(module, Anchor::Late)?;
    if let Some(second) = &settings.second_profile {
        let splits = settings.placement && !settings.annotate_late;
        let outcome = second::run(module, &functions, context, first, second, splits)?;
        if settings.summary {
            remarks::print(&outcome.line(&facts.source_file));
        }
    }
    if annotate {
        annotate::run(module, &functions, Anchor::Late);
    }
    Ok(true)
}

/// Runs one pass by name, regardless of the options that enable it.
fn run_alone(
    module: &Module<'_>,
    context: *mut ffi::RunContext,
    settings: &Settings,
    pass: NamedPass,
) -> Result<bool, PassError> {
    match pass {
        NamedPass::Annotate => {
            let (_, functions) = read_functions(module, settings.anchor)?;
            if !annotate::is_annotated(module) {
                annotate::run(module, &functions, settings.anchor);
            }
        }
        NamedPass::Use => {
            let profile = settings.profile.as_ref().ok_or(PassError::NoProfile)?;
            let (mut facts, functions) = read_functions(module, settings.anchor)?;
            use_profile(module, &functions, &mut facts, context, settings, profile)?;
        }
        NamedPass::Instrument => {
            let (_, functions) = read_functions(module, settings.anchor)?;
            let options = settings.instrument.unwrap_or_default();
            instrument::run(
                module,
                &functions,
                settings.anchor,
                &options,
                settings.weights.as_deref(),
            )?;
        }
        NamedPass::IfConversion => return Ok(if_conversion::run(module, settings)),
        NamedPass::SelectToBranch => return select_to_branch::run(module, settings),
        NamedPass::Superblocks => {
            settings.profile.as_ref().ok_or(PassError::NoProfile)?;
            return superblocks::run(module, settings, true);
        }
        NamedPass::Switches => return switches::run(module, settings),
        NamedPass::InheritedWeights => return Ok(unsampled::forget_inherited_weights(module)),
        // SAFETY: the module is alive, and no alignment of loops is requested, which would need a target machine.
        NamedPass::FunctionOrder => unsafe {
            placement::order_functions(module.as_mut_ptr(), false, placement::Align::default())
        },
    }
    Ok(true)
}

/// The functions of a module as they are numbered at an anchor; an error if the module is not for ELF.
fn read_functions<'ctx>(
    module: &Module<'ctx>,
    anchor: Anchor,
) -> Result<(ModuleFacts, Vec<FunctionIr<'ctx>>), PassError> {
    // SAFETY: the module is alive.
    if unsafe { !ffi::target(module.as_mut_ptr()).is_elf } {
        return Err(PassError::NotElf);
    }
    if anchor == Anchor::Late {
        // SAFETY: the module is alive, and nothing of it was read yet.
        unsafe { ffi::pleach_return_after_tail_calls(module.as_mut_ptr()) };
    }
    let mut facts = ModuleFacts::from_module(module);
    let functions = ir::read_functions(module, &mut facts);
    Ok((facts, functions))
}

/// Applies a profile, and inserts the markers that superblock formation needs.
fn use_profile<'ctx>(
    module: &Module<'ctx>,
    functions: &[FunctionIr<'ctx>],
    facts: &mut ModuleFacts,
    context: *mut ffi::RunContext,
    settings: &Settings,
    profile: &ProfileSource,
) -> Result<(), PassError> {
    let source = Source::open(profile, settings.anchor, functions)?;
    let (outcome, older) = apply::run(module, functions, facts, context, &source, settings)?;
    if settings.summary {
        remarks::print(&outcome.line(&facts.source_file));
    }
    // Superblocks would change the graph for which counters are placed.
    let forms_superblocks = settings.superblocks.is_some() && settings.instrument.is_none();
    if outcome.sampled > 0 && forms_superblocks && (settings.superblocks_aggressive || source.support()?.superblocks())
    {
        markers::insert(module, functions, &source, &older)?;
    }
    Ok(())
}
