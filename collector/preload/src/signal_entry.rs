//! The parts that need assembly: the thread pointer, and the entry to our handlers and the return from them.
//!
//! The pointer is in the initial-exec part of thread-local storage, so that a handler never calls `__tls_get_addr`,
//! which may allocate. The stub reserves it, because this library is loaded later. The handlers work on a stack of their own: of the stack that the kernel put the signal frame on,
//! they use some dozen bytes.

use crate::sys::SignalsBlocked;
use crate::thread::HANDLER_STACK_SIZE;
use core::arch::{asm, global_asm};
use core::ffi::c_void;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

global_asm!(
    ".pushsection .text.pleach_restorer,\"ax\",@progbits",
    ".hidden pleach_restorer",
    ".globl pleach_restorer",
    ".type pleach_restorer,@function",
    "pleach_restorer:",
    "mov eax, 15",
    "syscall",
    ".popsection",
);

/// Offset of the word with the thread's pointer from the processor's thread pointer. The word is in the stub.
pub static THREAD_OFFSET: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// Returns from a signal frame.
    pub fn pleach_restorer();
}

/// The kernel's flag for an action that has a restorer.
pub const SA_RESTORER: u64 = 0x0400_0000;

/// Defines a signal handler that runs `$body` on the thread's handler stack, where there is one.
macro_rules! handler_on_own_stack {
    ($(#[$doc:meta])* $name:ident, $body:path) => {
        $(#[$doc])*
        #[unsafe(naked)]
        extern "C" fn $name(signal: i32, info: *mut libc::siginfo_t, context: *mut core::ffi::c_void) {
            core::arch::naked_asm!(
                "push rbp",
                "mov rbp, rsp",
                "mov rax, qword ptr [rip + {offset}]",
                "mov rax, qword ptr fs:[rax]",
                "test rax, rax",
                "jz 2f",
                "mov rsp, qword ptr [rax]", // Thread::stack_top
                "2:",
                "and rsp, -16",
                "call {body}",
                "mov rsp, rbp",
                "pop rbp",
                "ret",
                offset = sym $crate::signal_entry::THREAD_OFFSET,
                body = sym $body,
            )
        }
    };
}
pub(crate) use handler_on_own_stack;

/// Defines a signal handler that runs `$body` on the present stack, and then jumps to the handler that it returns, if
/// it returns one, with the registers and the stack as the kernel left them. During a burst, the present stack is ours.
macro_rules! handler_that_forwards {
    ($(#[$doc:meta])* $name:ident, $body:path) => {
        $(#[$doc])*
        #[unsafe(naked)]
        extern "C" fn $name(signal: i32, info: *mut libc::siginfo_t, context: *mut core::ffi::c_void) {
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "call {body}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "test rax, rax",
                "jz 3f",
                "jmp rax",
                "3:",
                "ret",
                body = sym $body,
            )
        }
    };
}
pub(crate) use handler_that_forwards;

/// The calling thread's pointer; null if it has none. A child made by `vfork` sees its parent's.
#[inline(always)]
pub fn thread_pointer() -> *mut c_void {
    let pointer: *mut c_void;
    // SAFETY: reads the word that the stub reserved.
    unsafe {
        asm!("mov {0}, qword ptr fs:[{0}]", inout(reg) THREAD_OFFSET.load(Relaxed) => pointer,
             options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// Sets the calling thread's pointer. It points to a structure whose first field is the top of the handlers' stack.
pub fn set_thread_pointer(pointer: *mut c_void) {
    // SAFETY: writes the word that the stub reserved.
    unsafe {
        asm!("mov qword ptr fs:[{0}], {1}", in(reg) THREAD_OFFSET.load(Relaxed), in(reg) pointer,
             options(nostack, preserves_flags));
    }
}

/// Runs `work` with all signals blocked on the thread's handler stack, where there is one. The program may be on an
/// alternate stack that has room for little more than a signal frame.
pub fn on_handlers_stack(work: extern "C" fn()) {
    // A handler of ours would begin at the same place.
    let _blocked = SignalsBlocked::new();
    // SAFETY: the structure that the pointer leads to lives as long as the thread.
    let top = unsafe { thread_pointer().cast::<usize>().as_ref() }.map_or(0, |top| *top);
    let here = (&raw const top) as usize;
    if top == 0 || (top.wrapping_sub(HANDLER_STACK_SIZE)..top).contains(&here) {
        return work();
    }
    // SAFETY: nothing else runs on that stack; its top is a multiple of 16, and `work` keeps r12.
    unsafe {
        asm!("xchg rsp, r12", "call {work}", "mov rsp, r12",
             work = in(reg) work, inout("r12") top => _, clobber_abi("C"));
    }
}

/// The kernel's signal frame, as the third argument of a handler points to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// `UC_…`.
    pub flags: u64,
    /// Unused.
    pub link: u64,
    /// The alternate stack.
    pub stack: [u64; 3],
    /// General registers, by `libc::REG_…`.
    pub registers: [u64; 23],
    /// Floating-point state.
    pub floating: *mut u8,
    /// Unused.
    pub reserved: [u64; 8],
    /// The mask that returning restores.
    pub mask: u64,
}

/// The trap flag.
pub const TRAP_FLAG: u64 = 0x100;

impl Context {
    /// Program counter.
    pub fn pc(&self) -> u64 {
        self.registers[libc::REG_RIP as usize]
    }

    /// Where execution goes on after the return.
    pub fn set_pc(&mut self, pc: u64) {
        self.registers[libc::REG_RIP as usize] = pc;
    }

    /// The third integer argument, at the entry of a function.
    pub fn third_argument(&self) -> u64 {
        self.registers[libc::REG_RDX as usize]
    }

    /// Whether stepping continues after the return.
    pub fn trap_flag(&self) -> bool {
        self.registers[libc::REG_EFL as usize] & TRAP_FLAG != 0
    }

    /// Switches stepping on or off.
    pub fn set_trap_flag(&mut self, on: bool) {
        let flags = &mut self.registers[libc::REG_EFL as usize];
        if on { *flags |= TRAP_FLAG } else { *flags &= !TRAP_FLAG }
    }

    /// Whether the thread runs 64-bit code.
    pub fn is_64_bit(&self) -> bool {
        self.registers[libc::REG_CSGSFS as usize] & 0xffff == 0x33
    }
}
