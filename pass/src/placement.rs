//! Places code: what `use` asks of code generation, and the order of a module's functions.

use crate::ffi::{self, PlacedCalls, PlacedFunction};
use inkwell::llvm_sys::prelude::{LLVMModuleRef, LLVMValueRef};
use inkwell::module::Module;
use pleach_feedback::placement::{Arc, BYTES_OF_INSTRUCTION, Node, order};
use std::ffi::c_void;

/// Values of the module flag. Linking takes the largest: code is split where any module's profile allows it.
const PLACE: u32 = 1;
const SPLIT: u32 = 2;

/// Leaves word in the module that its code is to be placed by the profile, and whether what never ran is to be split off.
pub fn request(module: &Module<'_>, split: bool) {
    let value = if split { SPLIT } else { PLACE };
    // SAFETY: the module is alive.
    unsafe { ffi::pleach_set_placement(module.as_mut_ptr(), value) };
}

/// Does what was asked for where full LTO has linked a program and the linker has the plugin. With thin LTO options of the
/// process would reach other modules sooner or later, depending on threads.
pub fn at_link(module: &Module<'_>) {
    // SAFETY: the module is alive.
    let value = unsafe { ffi::pleach_placement(module.as_mut_ptr()) };
    if value != 0 {
        ffi::pleach_place_at_link(value >= SPLIT);
    }
}

/// Does what was asked for, just before code generation.
///
/// # Safety
/// Module and target machine must be those of the code generation at hand.
pub unsafe fn before_codegen(module: LLVMModuleRef, target_machine: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe {
        let value = ffi::pleach_placement(module);
        if value == 0 || !ffi::pleach_module_is_elf(module) {
            return;
        }
        ffi::pleach_place(target_machine, value >= SPLIT);
        let mut told = Told::default();
        ffi::pleach_placed_functions(module, remember, (&raw mut told).cast());
        for function in told.in_order() {
            ffi::pleach_keep_chains(function);
            ffi::pleach_move_to_end(function);
        }
    }
}

/// What the shim told of a module.
#[derive(Default)]
struct Told {
    functions: Vec<PlacedFunction>,
    calls: Vec<PlacedCalls>,
}

/// Only copies: a panic must not get into the shim.
extern "C" fn remember(
    to: *mut c_void,
    functions: *const PlacedFunction,
    function_count: usize,
    calls: *const PlacedCalls,
    call_count: usize,
) {
    // SAFETY: the shim passes what it was given, and arrays of these lengths that live for the call.
    unsafe {
        let told = &mut *to.cast::<Told>();
        told.functions.extend_from_slice(slice(functions, function_count));
        told.calls.extend_from_slice(slice(calls, call_count));
    }
}

impl Told {
    /// All functions, those that run first; the others keep their order.
    fn in_order(&self) -> impl Iterator<Item = LLVMValueRef> {
        let node = |f: &PlacedFunction| Node {
            size: f.instructions * BYTES_OF_INSTRUCTION,
            weight: f.calls,
        };
        let arc = |c: &PlacedCalls| Arc {
            caller: c.caller as usize,
            callee: c.callee as usize,
            weight: c.count,
        };
        let nodes: Vec<Node> = self.functions.iter().map(node).collect();
        let arcs: Vec<Arc> = self.calls.iter().map(arc).collect();
        let run = order(&nodes, &arcs).into_iter().map(|at| self.functions[at].function);
        run.chain(self.functions.iter().filter(|f| f.calls == 0).map(|f| f.function))
    }
}

/// # Safety
/// As for [`std::slice::from_raw_parts`], but null is fine where there is nothing.
unsafe fn slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(data, count) }
}
