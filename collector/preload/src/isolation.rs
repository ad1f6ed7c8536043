//! Whether nothing but the program itself decides what it does next.
//!
//! Then a burst of shadow execution shows what will happen; else it may come differently: other threads and processes
//! store to memory that the program reads, and handlers of signals run in between. What is looked at: threads of the
//! process, made in whatever way; actions for signals, however they were set, except for those that instructions
//! raise, which nobody sends; memory that the program maps as shared through libc, and shared files seen in a
//! snapshot of its mappings. Not noticed: debuggers, `process_vm_writev`, processes made by a raw `clone` that share
//! all memory, and asynchronous input into private memory.

use crate::counters;
use crate::dispositions;
use crate::owned_signals::FAULTS;
use crate::sys::syscall;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

/// Other processes may store to memory of this one.
pub static SHARES_MEMORY: AtomicBool = AtomicBool::new(false);
/// The program has, or had, a handler of some signal.
pub static HANDLES_SIGNALS: AtomicBool = AtomicBool::new(false);
/// One bit for each signal that it handles now, as far as we know.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Takes note of an action that the program sets for a signal.
pub fn note_action(signal: i32, handler: usize) {
    note(signal, !matches!(handler, libc::SIG_DFL | libc::SIG_IGN));
}

fn note(signal: i32, is_handled: bool) {
    let bit = 1_u64.checked_shl(signal as u32 - 1).unwrap_or(0);
    if is_handled && !FAULTS.contains(&signal) {
        HANDLES_SIGNALS.store(true, Relaxed);
        HANDLED.fetch_or(bit, Relaxed);
    } else {
        HANDLED.fetch_and(!bit, Relaxed);
    }
}

/// Whether it is so now. What the program set through libc is known; a handler that it set behind our back is found
/// within 32 ticks, for asking about all signals at each would cost as much as a fifth of a burst.
pub fn is_isolated_now() -> bool {
    for signal in [dispositions::next_in_turn(), dispositions::next_in_turn()] {
        note(signal, dispositions::has_handler(signal));
    }
    !SHARES_MEMORY.load(Relaxed) && HANDLED.load(Relaxed) == 0 && is_single()
}

/// Whether nothing from outside has ever cut a function short: never a second thread, nor a handler of any signal.
pub fn was_always_isolated() -> bool {
    let threads = counters::snapshot();
    threads.threads <= 1
        && threads.unsampled_threads == 0
        && !HANDLES_SIGNALS.load(Relaxed)
        && is_single()
        && !dispositions::has_handlers()
}

/// The kernel adds the number of threads to the links of this folder.
fn is_single() -> bool {
    const OF_FOLDER: u64 = 2;
    let path = c"/proc/self/task";
    // SAFETY: all zeroes is valid for this plain structure.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: Kernel: the path is terminated; `stat` lives here.
    let result = unsafe { syscall!(libc::SYS_newfstatat, libc::AT_FDCWD, path.as_ptr(), &raw mut stat, 0) };
    result == 0 && stat.st_nlink == OF_FOLDER + 1
}

/// Where the vDSO begins: it reads clocks, which go on meanwhile. 0: there is none.
pub fn vdso_start() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }
}
