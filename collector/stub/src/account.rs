//! The account of the recording ([`pleach_wire::account`]), as a process without the sampler uses it: it counts its start,
//! and reports its CPU time at its end.

use crate::process;
use crate::sys;
use core::ffi::CStr;
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use pleach_wire::account::{self, Account, Kind};
use pleach_wire::start::{Decision, StartSettings};

/// The page; null: there is none.
static PAGE: AtomicPtr<Account> = AtomicPtr::new(null_mut());
/// The kind of this process; null: there is no page.
static KIND: AtomicPtr<Kind> = AtomicPtr::new(null_mut());
/// CPU time of the stub and of its loading.
static OWN_NS: AtomicU64 = AtomicU64::new(0);
/// Reported CPU time: of the process, and of the stub in it.
static REPORTED_CPU_NS: AtomicU64 = AtomicU64::new(0);
static REPORTED_OWN_NS: AtomicU64 = AtomicU64::new(0);
/// Whether this is a child made by `fork`. Its start and end are not counted for its kind, because its parent's are.
static IS_FORKED: AtomicBool = AtomicBool::new(false);
/// Whether the end of this process was reported.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// The page; null if there is none.
pub fn page() -> *const Account {
    PAGE.load(Relaxed)
}

/// The kind of this process; null if there is no page.
pub fn kind() -> *const Kind {
    KIND.load(Relaxed)
}

/// CPU time of the process that an earlier image reported.
pub fn base() -> u64 {
    REPORTED_CPU_NS.load(Relaxed)
}

/// Maps the page in the directory of the shards.
fn map(directory: &[u8]) -> Option<&'static Account> {
    let mut path = [0u8; 1024];
    let mut at = 0;
    for part in [directory, b"/", account::FILE.to_bytes_with_nul()] {
        path.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    // SAFETY: terminated, by its last part.
    let path = unsafe { CStr::from_ptr(path.as_ptr().cast()) };
    let fd = sys::open(path, libc::O_RDWR | libc::O_NOFOLLOW);
    if fd < 0 {
        return None;
    }
    // A page beyond the end of the file would be no memory.
    let is_whole = sys::file_size(fd).is_some_and(|size| size >= account::SIZE);
    let address = is_whole.then(|| sys::map(account::SIZE, Some(fd))).flatten();
    sys::close(fd);
    let address = address?;
    // SAFETY: mapped for good, large enough, and aligned to pages; all of it is atomic, and any value is valid.
    let page = unsafe { &*(address as *const Account) };
    if page.is_valid() {
        return Some(page);
    }
    // SAFETY: nobody else knows the mapping.
    unsafe { sys::unmap(address, account::SIZE) };
    None
}

/// Name of the executable, as `execve` got it.
pub fn executable() -> &'static CStr {
    // SAFETY: no preconditions; the kernel's string, on the initial stack.
    unsafe {
        let name = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
        if name.is_null() { c"" } else { CStr::from_ptr(name) }
    }
}

/// A random number of this process, without a system call.
fn seed() -> u64 {
    // SAFETY: no preconditions; 16 random bytes of the kernel. The stack protector uses the other eight.
    let random = unsafe {
        let random = libc::getauxval(libc::AT_RANDOM) as *const u64;
        if random.is_null() {
            0
        } else {
            random.add(1).read_unaligned()
        }
    };
    random ^ sys::now_ns()
}

/// Maps the page, counts the start of this process, and decides. Call once, in the constructor.
pub fn begin(directory: &[u8], settings: &StartSettings, pid: i32) -> Decision {
    let Some(page) = map(directory) else {
        return Decision::without_page(settings, sys::now_ns);
    };
    let kind = page.kind(executable().to_bytes());
    PAGE.store(from_ref(page).cast_mut(), Relaxed);
    KIND.store(from_ref(kind).cast_mut(), Relaxed);
    REPORTED_CPU_NS.store(page.take_over(pid as u32, sys::process_cpu_ns), Relaxed);
    Decision::new(page, kind, settings, sys::now_ns, seed)
}

/// Notes that this process runs in valgrind, where none of what it executes is known. Call in place of [`begin`].
pub fn note_valgrind(directory: &[u8]) {
    let Some(page) = map(directory) else { return };
    page.in_valgrind.fetch_add(1, Relaxed);
    // SAFETY: nobody else knows the mapping.
    unsafe { sys::unmap(from_ref(page) as usize, account::SIZE) };
}

/// Adds to the CPU time of the stub.
pub fn spend(ns: u64) {
    OWN_NS.fetch_add(ns, Relaxed);
}

/// Counts a process without breakpoints. False if it is not known which modules there are of this signature.
pub fn count_unobserved(signature: u64) -> bool {
    // SAFETY: null, or mapped for good; all of it is atomic.
    unsafe { page().as_ref() }.is_some_and(|page| page.count_unobserved(signature))
}

/// Notes that it is not known which modules this process has.
pub fn note_modules_unknown() {
    // SAFETY: null, or mapped for good; all of it is atomic.
    if let Some(page) = unsafe { page().as_ref() } {
        page.modules_unknown.fetch_add(1, Relaxed);
    }
}

/// Reports the end of the process, or before its next image (not `ends`) what that has to know. Only where the process
/// has no sampler.
pub fn conclude(ends: bool) {
    // SAFETY: null, or mapped for good; all of it is atomic.
    let (page, kind) = unsafe { (page().as_ref(), kind().as_ref()) };
    let Some(page) = page.filter(|_| process::is_counted_here()) else {
        return;
    };
    if !ends {
        // The next image reports the time of this one, too.
        let base = REPORTED_CPU_NS.load(Relaxed);
        if base > 0 {
            page.hand_over(process::pid() as u32, base);
        }
        return;
    }
    let new = |reported: &AtomicU64, now: u64| now.saturating_sub(reported.fetch_max(now, Relaxed));
    let cpu = new(&REPORTED_CPU_NS, sys::process_cpu_ns());
    let own = new(&REPORTED_OWN_NS, OWN_NS.load(Relaxed));
    page.report(kind, cpu, own, own);
    page.unsampled_cpu_ns.fetch_add(cpu, Relaxed);
    page.unsampled_own_ns.fetch_add(own, Relaxed);
    if !HAS_ENDED.swap(true, Relaxed) {
        page.unsampled.fetch_add(1, Relaxed);
        if let Some(kind) = kind.filter(|_| !IS_FORKED.load(Relaxed)) {
            kind.ended.fetch_add(1, Relaxed);
        }
    }
}

/// Counts from zero in a child made by `fork`.
pub extern "C" fn begin_child() {
    if !process::is_counted() {
        return;
    }
    process::set_pid();
    IS_FORKED.store(true, Relaxed);
    HAS_ENDED.store(false, Relaxed);
    for word in [&OWN_NS, &REPORTED_CPU_NS, &REPORTED_OWN_NS] {
        word.store(0, Relaxed);
    }
}
