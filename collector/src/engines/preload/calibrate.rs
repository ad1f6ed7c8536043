//! Measures the costs of a single step, of a signal and of `int3` on this machine, in the recorder.
//!
//! A sampled process needs these figures before its first burst. Measuring them in each process would cost a
//! millisecond per process.

#![allow(unsafe_code, reason = "system calls")]

mod fork;
mod handled;
mod tick;
mod trap;

pub use trap::TrapCosts;

use crate::engines::lbr::sys::thread_cpu_ns;
use pleach_wire::shard;
use std::arch::asm;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Costs in nanoseconds of CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A trap and its handler.
    pub step_ns: u64,
    /// Delivery of a signal and return from an empty handler, as by a timer at the kernel's pace.
    pub signal_ns: u64,
    /// `int3`, the instruction of a software breakpoint, and an empty handler. Where a step leaves a virtual machine's
    /// guest, this costs a fraction of it.
    pub int3_ns: u64,
    /// A tick of a perf event: interrupt, signal, return, and arming the next tick; `None` without such events.
    pub tick_ns: Option<u64>,
    /// A hardware breakpoint; `None` without one.
    pub trap: Option<TrapCosts>,
    /// Loading the stub into a process.
    pub load_ns: u64,
    /// What the sampler adds to the cost of `fork`.
    pub fork_ns: u64,
}

static MEASURING: Mutex<()> = Mutex::new(());
static TRAPS: AtomicU32 = AtomicU32::new(0);
const STEPS: u32 = 64;
const SIGNALS: u32 = 16;
const BATCHES: usize = 4;
const LOADS: u32 = 5;

extern "C" fn on_signal(_signal: i32, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let count = TRAPS.fetch_add(1, Ordering::Relaxed);
    if count + 1 >= STEPS {
        // SAFETY: the kernel's frame, which belongs to this handler.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !0x100;
    }
}

/// The cost of loading the stub. It stays inactive here, because its environment variables are not set.
fn load_cost(preload: &Path) -> u64 {
    let Ok(name) = CString::new(preload.as_os_str().as_bytes()) else {
        return 0;
    };
    if std::env::var_os(shard::DIRECTORY_VARIABLE).is_some() {
        return 0;
    }
    // The first load may read the file, and other programs may delay any load, so the minimum counts.
    let costs = (0..LOADS).map(|_| {
        let start = thread_cpu_ns();
        // SAFETY: the library's constructor only looks for its variables; nothing of it is used.
        unsafe {
            let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            let loaded = thread_cpu_ns();
            if !handle.is_null() {
                libc::dlclose(handle);
            }
            loaded.saturating_sub(start)
        }
    });
    costs.min().unwrap_or(0)
}

/// The cost of forking with the sampler's libraries. They would be loaded already in a recorder that is recorded
/// itself.
fn fork_cost(preload: &Path) -> u64 {
    if std::env::var_os(shard::DIRECTORY_VARIABLE).is_some() {
        return 0;
    }
    fork::cost(preload)
}

/// Costs of one batch, see [`Costs`].
#[derive(Clone, Copy)]
struct Batch {
    step_ns: u64,
    signal_ns: u64,
    int3_ns: u64,
}

/// Steps through some instructions, raises some signals and executes some `int3`; returns the cost of one each.
///
/// # Safety
/// [`on_signal`] handles SIGTRAP, which is not blocked.
unsafe fn measure() -> Batch {
    TRAPS.store(0, Ordering::Relaxed);
    let start = thread_cpu_ns();
    // SAFETY: the trap flag is set for the loop alone: the handler clears it.
    unsafe {
        asm!(
            "pushfq",
            "or qword ptr [rsp], 0x100",
            "popfq",
            "2:",
            "cmp dword ptr [{traps}], {steps}",
            "jb 2b",
            traps = in(reg) TRAPS.as_ptr(),
            steps = const STEPS,
        );
    }
    let stepped = thread_cpu_ns();
    TRAPS.store(0, Ordering::Relaxed);
    for _ in 0..SIGNALS {
        // SAFETY: the handler returns.
        unsafe { libc::raise(libc::SIGTRAP) };
    }
    let signalled = thread_cpu_ns();
    TRAPS.store(0, Ordering::Relaxed);
    for _ in 0..SIGNALS {
        // SAFETY: the handler returns, to the next instruction.
        unsafe { asm!("int3") };
    }
    let passed = thread_cpu_ns();
    Batch {
        step_ns: stepped.saturating_sub(start) / u64::from(STEPS),
        signal_ns: signalled.saturating_sub(stepped) / u64::from(SIGNALS),
        int3_ns: passed.saturating_sub(signalled) / u64::from(SIGNALS),
    }
}

/// Measures the costs, those of hardware breakpoints only on request. Replaces the process's handler of SIGTRAP meanwhile.
pub fn costs(preload: &Path, breakpoints: bool) -> Costs {
    let load_ns = load_cost(preload);
    let fork_ns = fork_cost(preload);
    let _guard = MEASURING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let tick_ns = tick::cost();
    let breakpoint = if breakpoints { trap::costs() } else { None };
    // SAFETY: plain structures; the handler does what handlers may do, and what was there before comes back. The trap
    // flag is set for the loop alone: the handler clears it.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        let mut old: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_signal as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut new.sa_mask);
        let (mut trap, mut before) = (new.sa_mask, new.sa_mask);
        libc::sigaddset(&mut trap, libc::SIGTRAP);
        if libc::sigaction(libc::SIGTRAP, &new, &mut old) != 0 {
            return Costs {
                step_ns: 5_000,
                signal_ns: 2_000,
                int3_ns: 3_000,
                tick_ns,
                trap: breakpoint,
                load_ns,
                fork_ns,
            };
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &trap, &mut before);

        // The first batch warms up, and other programs may delay any of them: the minimum counts.
        let batches: [Batch; BATCHES] = std::array::from_fn(|_| measure());
        let least = |part: fn(&Batch) -> u64| batches.iter().map(part).min().unwrap_or(0);

        libc::sigaction(libc::SIGTRAP, &old, std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        Costs {
            step_ns: least(|batch| batch.step_ns),
            signal_ns: least(|batch| batch.signal_ns),
            int3_ns: least(|batch| batch.int3_ns),
            tick_ns,
            trap: breakpoint,
            load_ns,
            fork_ns,
        }
    }
}
