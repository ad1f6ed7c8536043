//! Entry to a burst, and its abandonment at a fault.

use super::Engine;
use super::state::{FRAME_FLAGS, FRAME_RDI, FRAME_RIP, FRAME_RSP, frame_registers};
use core::arch::naked_asm;
use core::ffi::c_void;
use core::mem::offset_of;

/// The flags TF, DF and AC.
const FLAGS_TO_CLEAR: u64 = 1 << 8 | 1 << 10 | 1 << 18;

/// Calls `body(engine)`. [`leave`] may return in place of `body`.
///
/// # Safety
/// The burst invariant holds while `body` runs.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn enter(engine: *mut Engine, body: unsafe extern "C" fn(*mut Engine)) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov [rdi + {stack}], rsp",
        "call rsi",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        stack = const offset_of!(Engine, stack),
    );
}

/// Returns from [`enter`], with the engine in rdi.
///
/// # Safety
/// Called within a burst of the engine.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn leave(engine: *mut Engine) -> ! {
    naked_asm!(
        "cld",
        "mov rsp, [rdi + {stack}]",
        "ldmxcsr [rdi + {mxcsr}]",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        stack = const offset_of!(Engine, stack),
        mxcsr = const offset_of!(Engine, state) + offset_of!(super::State, host_mxcsr),
    );
}

/// Ends a burst that faulted; called by the handler of SIGSEGV, SIGBUS, SIGFPE or SIGILL with its third argument.
///
/// Returns true if a burst faulted: returning from the handler then ends it with [`super::End::Fault`]. Otherwise
/// nothing is changed.
///
/// # Safety
/// `engine` is null or an engine that only the calling thread uses, and `context` is the handler's.
pub unsafe fn recover(engine: *mut Engine, context: *mut c_void) -> bool {
    // SAFETY: Exclusive (burst invariant): if `running` is set, the fault interrupted this engine's burst in this
    // thread, so that its stack frame still exists; the caller passes the handler's frame.
    unsafe {
        if engine.is_null() || !(&raw const (*engine).running).read_volatile() {
            return false;
        }
        (&raw mut (*engine).running).write_volatile(false);
        let registers = frame_registers(context);
        *registers.add(FRAME_RIP) = leave as *const () as u64;
        *registers.add(FRAME_RSP) = (*engine).stack;
        *registers.add(FRAME_RDI) = engine as u64;
        *registers.add(FRAME_FLAGS) &= !FLAGS_TO_CLEAR;
    }
    true
}
