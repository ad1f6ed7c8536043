//! The LLVM plugin: identifies IR for `annotate` and applies a profile for `use`.
//!
//! The shared object leaves every LLVM symbol undefined; the process that loads it (clang, opt or lld) supplies them,
//! so that there is one LLVM in the process. Decisions are made in `pleach-feedback`; here they are only applied.

mod annotate;
mod apply;
mod ffi;
mod frequencies;
mod instrument;
mod ir;
mod markers;
mod paths;
mod placement;
mod recurrences;
mod selects;
mod settings;
mod source;
mod superblock;

use inkwell::llvm_sys::prelude::{LLVMModuleRef, LLVMValueRef};
use inkwell::module::Module;
use pleach_annotate::manifest::Anchor;
use settings::Settings;
use source::Source;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// The symbol that `-fpass-plugin=` looks up. It is defined in Rust because rustc's version script hides every symbol of
/// the C++ archive.
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

unsafe extern "C" fn register(pass_builder: *mut c_void) {
    // SAFETY: the host passes its PassBuilder; the callbacks live as long as this library.
    unsafe { ffi::pleach_register(pass_builder, run_module, settings::uses_profile) }
}

/// Called before code generation; false tells the host to generate code itself.
unsafe extern "C" fn pre_codegen(module: *mut c_void, target_machine: *mut c_void, _: u32, _: *mut c_void) -> bool {
    let module: LLVMModuleRef = module.cast();
    let outcome = catch_unwind(|| {
        // SAFETY: the host passes its module and target machine, both alive for the call.
        unsafe { placement::before_codegen(module, target_machine) }
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

/// Where in the pipeline a run happens; the numbers are those of `Stage` in `cpp/plugin.cpp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    EarlySimplification,
    OptimizerLast,
    OptimizerEarly,
}

/// `llvm::ThinOrFullLTOPhase`, in its declaration order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LtoPhase {
    None,
    ThinPreLink,
    ThinPostLink,
    FullPreLink,
    FullPostLink,
}

impl LtoPhase {
    fn is_pre_link(self) -> bool {
        matches!(self, Self::ThinPreLink | Self::FullPreLink)
    }

    fn is_post_link(self) -> bool {
        matches!(self, Self::ThinPostLink | Self::FullPostLink)
    }
}

/// Entry from the C++ pass. No panic leaves it: one becomes a compile error.
extern "C" fn run_module(raw: LLVMModuleRef, context: *mut ffi::RunContext, stage: u32, phase: u32) -> bool {
    let stage = match stage {
        0 => Stage::EarlySimplification,
        1 => Stage::OptimizerLast,
        _ => Stage::OptimizerEarly,
    };
    let phase = match phase {
        0 => LtoPhase::None,
        1 => LtoPhase::ThinPreLink,
        2 => LtoPhase::ThinPostLink,
        3 => LtoPhase::FullPreLink,
        _ => LtoPhase::FullPostLink,
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the host owns the module and keeps it alive for the call; it is never dropped here.
        let module = ManuallyDrop::new(unsafe { Module::new(raw) });
        run(&module, context, stage, phase)
    }));
    match outcome {
        Ok(Ok(changed)) => changed,
        Ok(Err(message)) => {
            ffi::diagnose(raw, &message, true);
            true
        }
        Err(payload) => {
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("unknown panic");
            ffi::diagnose(raw, &format!("pleach: internal error, please report it: {text}"), true);
            true
        }
    }
}

/// Whether this run is the one at the anchor. The early anchor is before linking, the late one is the last run before
/// code generation.
fn at_anchor(anchor: Anchor, stage: Stage, phase: LtoPhase) -> bool {
    match anchor {
        Anchor::Early => stage == Stage::EarlySimplification && !phase.is_post_link(),
        Anchor::Late => stage == Stage::OptimizerLast && !phase.is_pre_link(),
    }
}

fn run(module: &Module<'_>, context: *mut ffi::RunContext, stage: Stage, phase: LtoPhase) -> Result<bool, String> {
    let settings = Settings::read()?;
    let mut changed = false;
    if at_anchor(settings.anchor, stage, phase) && settings.does_something() {
        // SAFETY: the module is alive.
        if unsafe { !ffi::pleach_module_is_elf(module.as_mut_ptr()) } {
            return Err("pleach: only ELF targets are supported".into());
        }
        run_at_anchor(module, context, &settings)?;
        changed = true;
    }
    // With link-time optimisation, loops are vectorised at the link.
    let last = stage == Stage::OptimizerLast && !phase.is_pre_link();
    if last && settings.profile.is_some() && ffi::pleach_option_selects() {
        changed |= selects::run(module, &settings);
    }
    if last
        && let Some(wanted) = settings.profile.as_ref().filter(|_| ffi::pleach_option_recurrences())
        && (ffi::pleach_option_any_selects() || Source::support_of(wanted)?.selects())
    {
        changed |= recurrences::run(module, &settings);
    }
    if settings.superblocks == Some(stage) {
        changed |= superblock::run(module, &settings, last)?;
    }
    if stage == Stage::OptimizerLast && phase == LtoPhase::FullPostLink {
        placement::at_link(module);
    }
    if stage == Stage::OptimizerLast && settings.instrument.is_some() {
        instrument::finish(module)?;
        changed = true;
    }
    Ok(changed)
}

fn run_at_anchor(module: &Module<'_>, context: *mut ffi::RunContext, settings: &Settings) -> Result<(), String> {
    let mut facts = ir::ModuleFacts::of(module);
    let functions = ir::functions(module, &mut facts);
    if let Some(profile) = &settings.profile {
        let source = Source::open(profile, settings.anchor, &functions)?;
        let outcome = apply::run(module, &functions, &mut facts, context, &source, settings)?;
        if settings.summary {
            ffi::print(&outcome.line(&facts.source_file));
        }
        // Counters are placed for the graph as it is.
        if outcome.sampled > 0 && settings.superblocks.is_some() && settings.instrument.is_none() {
            markers::insert(module, &functions, &source)?;
        }
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

/// `-Rpass=pleach` where passed, `-Rpass-missed=pleach` where not.
fn remark(function: LLVMValueRef, passed: bool, name: &str, text: &str) {
    if let Ok(name) = CString::new(name) {
        // SAFETY: the function belongs to the module being compiled; the texts are copied.
        unsafe { ffi::pleach_remark(function, passed, name.as_ptr(), text.as_ptr().cast(), text.len()) };
    }
}
