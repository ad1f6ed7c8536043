//! Reads of code that may be gone, and writes to code, which stays read-only for the program: through
//! `/proc/self/mem`, which the kernel allows for a process's own memory, unless it is hardened.

use crate::descriptors;
use crate::process;
use crate::sys::{self, syscall};
use crate::waiting;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU64};
use pleach_wire::coverage::PAGE;

static FD: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);

fn open_memory() -> i32 {
    let (path, flags) = (c"/proc/self/mem", libc::O_RDWR | libc::O_CLOEXEC);
    // SAFETY: Kernel: the path is terminated.
    unsafe { syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) as i32 }
}

/// Opens the process's memory. False if the kernel refuses.
pub fn open() -> bool {
    let Some(fd) = descriptors::move_up(open_memory()) else {
        return false;
    };
    let Some((device, inode)) = sys::identity(fd) else {
        return false;
    };
    DEVICE.store(device, Relaxed);
    INODE.store(inode, Relaxed);
    FD.store(fd, Relaxed);
    true
}

/// Opens it again in a child made by `fork`: the parent's descriptor leads to the parent's memory.
pub fn reopen() {
    descriptors::drop_ours(FD.swap(-1, Relaxed));
    open();
}

/// Runs `act` with a descriptor of this process's memory; `None`: there is none.
fn with_memory<R>(act: impl FnOnce(i32) -> R) -> Option<R> {
    let fd = FD.load(Relaxed);
    // The program may have closed it and used its number for another file. A child made by a raw `clone` has its
    // parent's.
    // One that waits has not opened its own yet.
    let is_ours = fd >= 0
        && process::is_own_memory()
        && !waiting::is_waiting()
        && sys::identity(fd) == Some((DEVICE.load(Relaxed), INODE.load(Relaxed)));
    if is_ours {
        return Some(act(fd));
    }
    let own = open_memory();
    if own < 0 {
        return None;
    }
    let result = act(own);
    sys::close(own);
    Some(result)
}

/// Writes bytes.
pub fn write(address: u64, bytes: &[u8]) -> bool {
    // SAFETY: Kernel: it reads the bytes, and writes within the code that the caller checked.
    let write = |fd| unsafe { syscall!(libc::SYS_pwrite64, fd, bytes.as_ptr(), bytes.len(), address) };
    with_memory(write) == Some(bytes.len() as isize)
}

/// Copies memory that the program may have unmapped since; returns the bytes copied.
pub fn read(address: u64, buffer: &mut [u8]) -> usize {
    let copied = sys::read_memory(address, buffer);
    if copied != 0 {
        return copied;
    }
    // Filters of system calls may refuse that.
    // SAFETY: Kernel: it writes within the buffer.
    let read = |fd| unsafe { syscall!(libc::SYS_pread64, fd, buffer.as_mut_ptr(), buffer.len(), address) };
    with_memory(read).map_or(0, |copied| copied.max(0) as usize)
}

/// A byte of code; `None` if nothing is there.
pub fn byte_at(address: u64) -> Option<u8> {
    let mut byte = [0];
    (read(address, &mut byte) == 1).then_some(byte[0])
}

/// Writes one byte, whatever it takes: a breakpoint that cannot be removed would be fatal. Where the kernel refuses to
/// write otherwise, the page is writable for a moment.
pub fn restore(address: u64, byte: u8) -> bool {
    if write(address, &[byte]) {
        return true;
    }
    let page = address & !(PAGE as u64 - 1);
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: Kernel: the page holds code of a module of ours; the byte is written as a whole.
    unsafe {
        if syscall!(libc::SYS_mprotect, page, PAGE, all) != 0 {
            return false;
        }
        (address as *mut u8).write_volatile(byte);
        syscall!(libc::SYS_mprotect, page, PAGE, libc::PROT_READ | libc::PROT_EXEC);
    }
    true
}
