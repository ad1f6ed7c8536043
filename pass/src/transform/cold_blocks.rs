//! Cold blocks of executed functions: LLVM optimises them for size, which leaves their loops scalar. Where a profile does
//! not support that, the optimiser compiles them for speed. Code generation still optimises them for size, where it
//! costs less: it aligns no loops, for instance.

use crate::ffi;
use crate::ir::metadata;
use crate::stage::{LtoPhase, Stage};
use crate::transform::placement::is_compiled_by_rustc;
use inkwell::module::Module;
use std::sync::Once;

/// The module flag of modules whose cold blocks are compiled for speed. Linking keeps it.
const FLAG: &str = "pleach.cold-for-speed";

/// Requests speed for a module's cold blocks, now and at a link.
pub fn compile_for_speed(module: &Module<'_>) {
    // SAFETY: the module is alive.
    unsafe { metadata::add_max_module_flag(module.as_mut_ptr(), FLAG, 1) };
    if is_compiled_by_rustc(module) {
        set_for_good();
    } else {
        ffi::optimise_cold_blocks_for_size(false);
    }
}

/// At each stage of a module: follows a request from before a link, and ends one before code generation. Linkers and
/// rustc compile modules in several threads with one option for all, so that it does not end there.
pub fn at_stage(module: &Module<'_>, stage: Stage, phase: LtoPhase) {
    // SAFETY: the module is alive.
    if unsafe { !metadata::has_module_flag(module.as_mut_ptr(), FLAG) } {
        return;
    }
    if phase.is_post_link() {
        set_for_good();
    } else if stage == Stage::OptimizerLast && phase == LtoPhase::None && !is_compiled_by_rustc(module) {
        ffi::optimise_cold_blocks_for_size(true);
    }
}

/// Once, as several threads may come here at the same time.
fn set_for_good() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| ffi::optimise_cold_blocks_for_size(false));
}
