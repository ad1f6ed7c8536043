//! Isolation: whether threads, signals or shared memory cannot change the program's control flow.
//!
//! If the program is isolated, it will execute the shadow burst. Otherwise it may differ: other threads and processes
//! store to memory that it reads, and signal handlers run in between. Isolation covers all threads of the process; all
//! actions for signals, except for those that instructions raise; memory that the program maps as shared through
//! libc; and shared files in a snapshot of its mappings. It does not cover debuggers, `process_vm_writev`, processes
//! made by a raw `clone` that share all memory, and asynchronous input into private memory.

use crate::counters;
use crate::dispositions;
use crate::owned_signals::FAULTS;
use crate::settings;
use crate::sys::{self, syscall};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

/// Other processes may store to memory of this one.
pub static SHARES_MEMORY: AtomicBool = AtomicBool::new(false);
/// The program has, or had, a handler of some signal.
pub static HANDLES_SIGNALS: AtomicBool = AtomicBool::new(false);
/// One bit for each signal that is known to have a handler now.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Records an action that the program sets for a signal.
pub fn note_action(signal: i32, handler: usize) {
    set_handled(signal, !matches!(handler, libc::SIG_DFL | libc::SIG_IGN));
}

fn set_handled(signal: i32, is_handled: bool) {
    let bit = 1_u64.checked_shl(signal as u32 - 1).unwrap_or(0);
    if is_handled && !FAULTS.contains(&signal) {
        HANDLES_SIGNALS.store(true, Relaxed);
        HANDLED.fetch_or(bit, Relaxed);
    } else {
        HANDLED.fetch_and(!bit, Relaxed);
    }
}

/// Whether the program is isolated now. Actions set through libc are known. A handler set by a raw system call is found
/// only within 32 ticks, because checking all signals at each tick would cost a fifth of a burst.
pub fn is_isolated_now() -> bool {
    for signal in [dispositions::next_in_turn(), dispositions::next_in_turn()] {
        set_handled(signal, dispositions::has_handler(signal));
    }
    !SHARES_MEMORY.load(Relaxed) && HANDLED.load(Relaxed) == 0 && is_single()
}

/// Whether the process has never had a second thread or a signal handler.
pub fn was_always_isolated() -> bool {
    let counters = counters::snapshot();
    counters.threads <= 1
        && counters.unsampled_threads == 0
        && !HANDLES_SIGNALS.load(Relaxed)
        && is_single()
        && !dispositions::has_handlers()
}

/// Whether the process has one thread: the kernel says so, or the folder of its threads has two links, and one more for
/// each thread.
pub fn is_single() -> bool {
    // A filter that this process inherited may forbid the call that asks the kernel.
    let is_free = settings::get().seccomp_filters == 0;
    if let Some(is_single) = is_free.then(sys::has_one_thread).flatten() {
        return is_single;
    }
    const OF_FOLDER: u64 = 2;
    let path = c"/proc/self/task";
    // SAFETY: all zeroes is valid for this plain structure.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: Kernel: the path is terminated; `stat` lives here.
    let result = unsafe { syscall!(libc::SYS_newfstatat, libc::AT_FDCWD, path.as_ptr(), &raw mut stat, 0) };
    result == 0 && stat.st_nlink == OF_FOLDER + 1
}

/// Start of the vDSO, whose functions read clocks that advance during a shadow burst; 0: there is none.
pub fn vdso_start() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }
}
