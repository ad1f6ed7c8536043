//! What the sampler adds to the cost of `fork`: the kernel copies its mappings and written pages, and releases them at
//! the child's end, and the child does a little. None of that can be measured where it happens.

#![allow(unsafe_code, reason = "system calls")]

use crate::engines::lbr::sys::thread_cpu_ns;
use pleach_wire::start;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const ROUNDS: u32 = 10;
/// Pages that the sampler maps and writes to beside those of its libraries: stacks, and the state of a thread.
const PAGES: usize = 4;
const PAGE: usize = 4096;
/// Readings of a clock that take as long as the system calls of a child that waits, beside those of its timer.
const CALLS: u32 = 4;

/// CPU time of a `fork`, in this process and in the child, which does `act` and ends.
fn fork(act: impl FnOnce()) -> Option<u64> {
    let before = thread_cpu_ns();
    // SAFETY: the child makes system calls and reads and writes memory; no code of libc that could wait runs in it.
    let child = unsafe { libc::fork() };
    if child == 0 {
        act();
        // SAFETY: ends the child.
        unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    }
    let forked = thread_cpu_ns();
    // SAFETY: all zeroes is valid for this plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: our child; `usage` lives here.
    let ended = unsafe { libc::wait4(child, std::ptr::null_mut(), 0, &mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    (child > 0 && ended == child).then(|| forked.saturating_sub(before) + ns(usage.ru_utime) + ns(usage.ru_stime))
}

/// What a process with the sampler has in memory.
struct Mapped {
    libraries: [*mut libc::c_void; 2],
    /// Private memory, and the shared page of the account.
    memory: [*mut libc::c_void; 2],
    /// Code of the sampler.
    code: *const u8,
}

impl Mapped {
    fn new(stub: &CStr, sampler: &CStr) -> Option<Self> {
        let open = |name: &CStr| {
            // SAFETY: the libraries' constructors do nothing without their variables; nothing of them is used.
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }
        };
        let memory = [libc::MAP_PRIVATE, libc::MAP_SHARED].map(|kind| {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, kind | libc::MAP_ANONYMOUS);
            // SAFETY: a new mapping.
            unsafe { libc::mmap(std::ptr::null_mut(), PAGES * PAGE, protection, flags, -1, 0) }
        });
        let libraries = [open(stub), open(sampler)];
        let code = if libraries.contains(&std::ptr::null_mut()) {
            std::ptr::null()
        } else {
            // SAFETY: the library is open, the name is terminated.
            unsafe { libc::dlsym(libraries[1], start::BEGIN.as_ptr()) }
        };
        let this = Self {
            libraries,
            memory,
            code: code.cast(),
        };
        if memory.contains(&libc::MAP_FAILED) || this.code.is_null() {
            return None;
        }
        for page in 0..PAGES {
            this.write(0, page);
        }
        this.write(1, 0);
        Some(this)
    }

    fn write(&self, memory: usize, page: usize) {
        // SAFETY: in the mapping.
        unsafe { self.memory[memory].cast::<u8>().add(page * PAGE).write_volatile(1) };
    }

    /// What a child does that waits for its first tick: it reads code of the sampler, writes to a page of its own and
    /// to the account, sets a timer, and asks for the time.
    fn act_as_child(&self) {
        // SAFETY: code of the sampler.
        std::hint::black_box(unsafe { self.code.read_volatile() });
        self.write(0, 0);
        self.write(1, 0);
        let (mut timer, clock) = (0i32, libc::CLOCK_THREAD_CPUTIME_ID);
        // SAFETY: all zeroes is valid for these plain structures, which live here.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_NONE;
            let mut time: libc::itimerspec = std::mem::zeroed();
            time.it_value.tv_sec = 1;
            libc::syscall(libc::SYS_timer_create, clock, &raw mut event, &raw mut timer);
            libc::syscall(libc::SYS_timer_settime, timer, 0, &raw const time, 0);
        }
        for _ in 0..CALLS {
            std::hint::black_box(thread_cpu_ns());
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: opened and mapped above, and nothing refers to them.
        unsafe {
            for library in self.libraries.into_iter().filter(|library| !library.is_null()) {
                libc::dlclose(library);
            }
            for memory in self.memory.into_iter().filter(|memory| *memory != libc::MAP_FAILED) {
                libc::munmap(memory, PAGES * PAGE);
            }
        }
    }
}

/// The cost, in nanoseconds; 0 if it cannot be measured. `preload`: the stub, beside which the sampler is.
pub fn cost(preload: &Path) -> u64 {
    let sampler = preload.with_file_name(OsStr::from_bytes(start::SAMPLER.to_bytes()));
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
    let (Some(stub), Some(sampler)) = (name(preload), name(&sampler)) else {
        return 0;
    };
    // Other programs may delay any of them, so the minimum counts.
    let mut least = [u64::MAX; 2];
    for _ in 0..ROUNDS {
        let without = fork(|| {});
        let with = Mapped::new(&stub, &sampler).and_then(|mapped| fork(|| mapped.act_as_child()));
        for (least, cost) in least.iter_mut().zip([without, with]) {
            *least = (*least).min(cost.unwrap_or(u64::MAX));
        }
    }
    let [without, with] = least;
    if with == u64::MAX {
        0
    } else {
        with.saturating_sub(without)
    }
}
