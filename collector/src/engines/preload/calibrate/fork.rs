//! What the sampler's libraries add to the cost of `fork`: the kernel copies their mappings and written pages, and
//! releases them at the child's end.

use crate::engines::lbr::sys::thread_cpu_ns;
use pleach_wire::start;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const ROUNDS: u32 = 8;
/// Pages that the sampler maps and writes to beside those of its libraries: stacks, and the state of a thread.
const PAGES: usize = 4;
const PAGE: usize = 4096;

/// CPU time of a `fork` whose child ends at once, in this process and in the child.
fn fork() -> Option<u64> {
    let before = thread_cpu_ns();
    // SAFETY: the child makes one system call, and no code of libc runs in it after `fork`.
    let child = unsafe { libc::fork() };
    if child == 0 {
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
    pages: *mut libc::c_void,
}

impl Mapped {
    fn new(stub: &CStr, sampler: &CStr) -> Option<Self> {
        let open = |name: &CStr| {
            // SAFETY: the libraries' constructors do nothing without their variables; nothing of them is used.
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }
        };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping.
        let pages = unsafe { libc::mmap(std::ptr::null_mut(), PAGES * PAGE, protection, flags, -1, 0) };
        let this = Self {
            libraries: [open(stub), open(sampler)],
            pages,
        };
        if pages == libc::MAP_FAILED || this.libraries.contains(&std::ptr::null_mut()) {
            return None;
        }
        for page in 0..PAGES {
            // SAFETY: in the mapping.
            unsafe { pages.cast::<u8>().add(page * PAGE).write_volatile(1) };
        }
        Some(this)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: opened above, and nothing refers to them.
        unsafe {
            for library in self.libraries.into_iter().filter(|library| !library.is_null()) {
                libc::dlclose(library);
            }
            if self.pages != libc::MAP_FAILED {
                libc::munmap(self.pages, PAGES * PAGE);
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
        let without = fork();
        let mapped = Mapped::new(&stub, &sampler);
        let with = mapped.is_some().then(fork).flatten();
        drop(mapped);
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
