//! Places code: what `use` asks of code generation, and the order of a module's functions.

use crate::ffi::{self, PlacedCalls, PlacedFunction};
use crate::{ir, remark, settings};
use inkwell::llvm_sys::prelude::LLVMModuleRef;
use inkwell::module::Module;
use pleach_feedback::placement::{Arc, BYTES_OF_INSTRUCTION, Loop, Node, alignment, order};
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
        if settings::uses_profile() {
            ffi::pleach_keep_dispatches(module);
        }
        let value = ffi::pleach_placement(module);
        if value == 0 || !ffi::pleach_module_is_elf(module) {
            return;
        }
        let split = value >= SPLIT;
        ffi::pleach_place(target_machine, split);
        let align = ffi::pleach_option_align_loops() && ffi::pleach_may_align(target_machine);
        let remarks = ffi::pleach_remarks_enabled(module);
        let mut told = Told::default();
        ffi::pleach_placed_functions(module, remember, (&raw mut told).cast());
        let run = told.order();
        for (place, &at) in run.iter().enumerate() {
            let function = told.functions[at].function;
            let aligned = if align {
                ffi::pleach_align_loops(function, decide)
            } else {
                0
            };
            if remarks {
                let unsampled = if split {
                    ffi::pleach_unsampled_blocks(function)
                } else {
                    0
                };
                remark(function, true, "Placed", &told.said(&run, place, aligned, unsampled));
            }
            ffi::pleach_keep_chains(function);
            ffi::pleach_move_to_end(function);
        }
        // The others keep their order.
        for other in told.functions.iter().filter(|f| f.calls == 0) {
            ffi::pleach_keep_chains(other.function);
            ffi::pleach_move_to_end(other.function);
        }
    }
}

/// A loop's alignment; no more than arithmetic, of which no panic gets into the shim.
extern "C" fn decide(of: *const ffi::Loop, total: f64) -> u32 {
    // SAFETY: the shim passes a loop that lives for the call.
    let of = unsafe { &*of };
    let known = Loop {
        instructions: of.instructions,
        iterations: of.iterations,
        entries: of.entries,
    };
    alignment(&known, total) as u32
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
    /// Positions of the functions that run, in the order in which they are to be placed.
    fn order(&self) -> Vec<usize> {
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
        order(&nodes, &arcs)
    }

    /// What was done with the function at a place of the order.
    fn said(&self, run: &[usize], place: usize, aligned: u32, unsampled: u32) -> String {
        let mut said = format!("placed {} of {}", place + 1, run.len());
        if let Some(&before) = place.checked_sub(1).and_then(|place| run.get(place)) {
            said += &format!(", behind {}", ir::name_of(self.functions[before].function));
            let (called, calls) = (self.calls(before, run[place]), self.calls(run[place], before));
            if called > 0 {
                said += &format!(", which calls it {called} times");
            } else if calls > 0 {
                said += &format!(", which it calls {calls} times");
            }
        }
        if aligned > 0 {
            said += &format!("; loops aligned to 32 bytes: {aligned}");
        }
        if unsampled > 0 {
            said += &format!("; blocks never sampled, put apart: {unsampled}");
        }
        said
    }

    /// How often one function calls another.
    fn calls(&self, caller: usize, callee: usize) -> u64 {
        let between = |c: &&PlacedCalls| c.caller as usize == caller && c.callee as usize == callee;
        self.calls.iter().filter(between).map(|c| c.count).sum()
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
