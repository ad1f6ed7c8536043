//! Cold blocks of executed functions: LLVM optimises them for size, which leaves their loops scalar and copies
//! structures by string instructions. Where a profile does not support that, they are compiled for speed.

use crate::ffi;
use crate::ir::metadata;
use crate::stage::LtoPhase;
use inkwell::module::Module;

/// The module flag of modules whose cold blocks are compiled for speed. Linking keeps it.
const FLAG: &str = "pleach.cold-for-speed";

/// Requests speed for a module's cold blocks, now and at a link.
pub fn compile_for_speed(module: &Module<'_>) {
    // SAFETY: the module is alive.
    unsafe { metadata::set_max_module_flag(module.as_mut_ptr(), FLAG, 1) };
    ffi::compile_cold_blocks_for_speed();
}

/// At each stage of a module: follows a request from before a link.
pub fn at_stage(module: &Module<'_>, phase: LtoPhase) {
    // SAFETY: the module is alive.
    if phase.is_post_link() && unsafe { metadata::has_module_flag(module.as_mut_ptr(), FLAG) } {
        ffi::compile_cold_blocks_for_speed();
    }
}
