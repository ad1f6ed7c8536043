//! The few things that need assembly: the thread's pointer, and the way into and out of our handlers.
//!
//! The pointer is in the initial-exec part of thread-local storage, so that a handler never calls `__tls_get_addr`,
//! which may allocate. The handlers do their work on a stack of their own: of the stack that the kernel put the signal
//! frame on, they use some dozen bytes.

use crate::thread::Thread;
use core::arch::{asm, global_asm};
use core::ffi::c_void;

global_asm!(
    ".pushsection .tbss.pleach_thread,\"awT\",@nobits",
    ".balign 8",
    ".hidden pleach_thread",
    ".globl pleach_thread",
    ".type pleach_thread,@object",
    ".size pleach_thread, 8",
    "pleach_thread: .zero 8",
    ".popsection",
    ".macro pleach_entry name, body",
    ".hidden \\name",
    ".globl \\name",
    ".type \\name,@function",
    "\\name:",
    "push rbp",
    "mov rbp, rsp",
    "mov rax, qword ptr [rip + pleach_thread@GOTTPOFF]",
    "mov rax, qword ptr fs:[rax]",
    "test rax, rax",
    "jz 2f",
    "mov rsp, qword ptr [rax]", // Thread::stack_top
    "2:",
    "and rsp, -16",
    "call \\body",
    "mov rsp, rbp",
    "pop rbp",
    "ret",
    ".size \\name, . - \\name",
    ".endm",
    "pleach_entry pleach_tick_entry, {tick}",
    "pleach_entry pleach_trap_entry, {trap}",
    // A fault goes to the handler that the program set for it, as if the kernel had called that, unless the burst of
    // this thread caused it. The burst runs on our stack, where the frame of its fault lies too.
    ".hidden pleach_fault_entry",
    ".globl pleach_fault_entry",
    ".type pleach_fault_entry,@function",
    "pleach_fault_entry:",
    "push rdi",
    "push rsi",
    "push rdx",
    "call {fault}",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "test rax, rax",
    "jz 3f",
    "jmp rax",
    "3:",
    "ret",
    ".size pleach_fault_entry, . - pleach_fault_entry",
    ".hidden pleach_restorer",
    ".globl pleach_restorer",
    ".type pleach_restorer,@function",
    "pleach_restorer:",
    "mov eax, 15",
    "syscall",
    tick = sym crate::tick::on_tick,
    trap = sym crate::burst::stepped_burst::on_trap,
    fault = sym crate::interpose::faults::on_fault,
);

unsafe extern "C" {
    /// Handler of the tick signal.
    pub fn pleach_tick_entry(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void);
    /// Handler of SIGTRAP.
    pub fn pleach_trap_entry(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void);
    /// Handler of the signals that instructions raise.
    pub fn pleach_fault_entry(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void);
    /// Returns from a signal frame.
    pub fn pleach_restorer();
}

/// What the calling thread is to the sampler; null if nothing.
///
/// A child made by `vfork` sees its parent's.
#[inline(always)]
pub fn current_thread() -> *mut Thread {
    let thread: *mut Thread;
    // SAFETY: reads the slot declared above.
    unsafe {
        asm!("mov {0}, qword ptr [rip + pleach_thread@GOTTPOFF]", "mov {0}, qword ptr fs:[{0}]",
             out(reg) thread, options(nostack, readonly, preserves_flags));
    }
    thread
}

/// Sets it.
pub fn set_current_thread(thread: *mut Thread) {
    // SAFETY: writes the slot declared above.
    unsafe {
        asm!("mov {0}, qword ptr [rip + pleach_thread@GOTTPOFF]", "mov qword ptr fs:[{0}], {1}",
             out(reg) _, in(reg) thread, options(nostack, preserves_flags));
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

    /// Whether returning goes on stepping.
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
