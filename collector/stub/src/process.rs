//! Whether this process belongs to the recording, and whether the caller runs in it.

use crate::sys;
use core::arch::asm;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8};
use pleach_wire::start::Sampler;

static STATE: AtomicU8 = AtomicU8::new(OFF);
/// No recording, or the program confined itself by seccomp.
const OFF: u8 = 0;
/// The process has no sampler: it only reports its CPU time.
const COUNTED: u8 = 1;

static PID: AtomicI32 = AtomicI32::new(0);
static SAMPLER: AtomicPtr<Sampler> = AtomicPtr::new(core::ptr::null_mut());

/// Whether the process runs in valgrind. The sampler would be checked as a part of the program, and shadow execution is
/// not possible there: signal handlers do not get the real registers.
pub fn is_in_valgrind() -> bool {
    // Valgrind's "client request" RUNNING_ON_VALGRIND (`valgrind.h`): its translator knows these instructions, which do
    // nothing elsewhere.
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    let request = [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0];
    let answer: u64;
    // SAFETY: the rotations are by 128 in sum, so that the register stays as it is.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0u64 => answer,
            options(nostack),
        );
    }
    answer != 0
}

/// Counts the CPU time of the calling process from now on.
pub fn count(pid: i32) {
    PID.store(pid, Relaxed);
    STATE.store(COUNTED, Relaxed);
}

/// Records the id of a child made by `fork`.
pub fn set_pid() {
    PID.store(sys::process_id(), Relaxed);
}

/// Process id, as recorded at the start.
pub fn pid() -> i32 {
    PID.load(Relaxed)
}

/// Says that the process has the sampler, for good.
pub fn set_sampler(sampler: &'static Sampler) {
    SAMPLER.store(core::ptr::from_ref(sampler).cast_mut(), Relaxed);
}

/// The sampler, if the process has it.
pub fn sampler() -> Option<&'static Sampler> {
    // SAFETY: null, or the sampler's structure, which stays.
    unsafe { SAMPLER.load(Relaxed).as_ref() }
}

/// Stops counting, for good.
pub fn stop() {
    STATE.store(OFF, Relaxed);
}

/// Whether the process only reports its CPU time.
pub fn is_counted() -> bool {
    STATE.load(Relaxed) == COUNTED
}

/// Whether the caller runs in such a process, and not in a child made by `vfork`.
pub fn is_counted_here() -> bool {
    is_counted() && pid() == sys::process_id()
}

/// Whether children that the process starts belong to the recording.
pub fn is_recorded() -> bool {
    match sampler() {
        Some(sampler) => (sampler.is_recorded)(),
        None => is_counted(),
    }
}
