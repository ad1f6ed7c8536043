//! Whether a module's code in memory is that of its file, byte for byte.
//!
//! The first process compares all pages with those that the recorder read. Later ones need not, if the file has not
//! changed since and the kernel says that none of their pages was written to: then memory shows the file.

use super::modules::Module;
use crate::mappings;
use crate::sys::{self, syscall};
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::coverage::{Failure, PAGE, Plan, changed_ns, page_hash};

/// Compares a module's code with its plan. `path` and `inode`: its file.
pub fn verify(module: &Module, plan: &Plan, path: &[u8], inode: u64) -> Result<(), Failure> {
    let is_same_file = is_unchanged(plan, path, inode);
    let head = plan.head();
    if is_same_file && head.verified.load(Relaxed) > 0 && is_untouched(&module.range()) {
        return Ok(());
    }
    compare(module, plan)?;
    if is_same_file {
        head.verified.fetch_add(1, Relaxed);
    }
    Ok(())
}

fn compare(module: &Module, plan: &Plan) -> Result<(), Failure> {
    super::note_preparation();
    for page in plan.pages() {
        let address = module.base().wrapping_add(page.file_offset);
        if !module.contains(address) {
            // Of another executable segment.
            continue;
        }
        // SAFETY: a page of the module's code, which is readable.
        let bytes = unsafe { &*(address as *const [u8; PAGE]) };
        if page_hash(bytes) != page.hash {
            return Err(Failure::Differs);
        }
    }
    Ok(())
}

/// Whether the file is the one that the recorder read, and was not changed since.
fn is_unchanged(plan: &Plan, path: &[u8], inode: u64) -> bool {
    let Some(name) = mappings::terminated(path) else {
        return false;
    };
    // SAFETY: all zeroes is valid for this plain structure.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: Kernel: the path is terminated, `stat` lives here.
    let result = unsafe { syscall!(libc::SYS_newfstatat, libc::AT_FDCWD, name.as_ptr(), &raw mut stat, 0) };
    let changed = changed_ns(stat.st_ctime, stat.st_ctime_nsec);
    result == 0 && stat.st_ino == inode && changed != 0 && changed == plan.head().changed_ns.load(Relaxed)
}

/// Whether no page in a range is this process's own copy, by `/proc/self/pagemap`.
fn is_untouched(range: &core::ops::Range<u64>) -> bool {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const OF_FILE: u64 = 1 << 61;
    let fd = sys::open_to_read(c"/proc/self/pagemap") as i32;
    if fd < 0 {
        return false;
    }
    let mut entries = [0u64; 512];
    let (mut at, end) = (range.start / PAGE as u64, range.end / PAGE as u64);
    let mut is_untouched = true;
    while is_untouched && at < end {
        let count = (end - at).min(entries.len() as u64);
        let (bytes, offset) = (count * 8, at * 8);
        // SAFETY: Kernel: it writes at most `bytes` to the entries.
        let got = unsafe { syscall!(libc::SYS_pread64, fd, entries.as_mut_ptr(), bytes, offset) };
        let is_own = |entry: &u64| entry & SWAPPED != 0 || entry & PRESENT != 0 && entry & OF_FILE == 0;
        is_untouched = got == bytes as isize
            && entries
                .get(..count as usize)
                .is_some_and(|entries| !entries.iter().any(is_own));
        at += count;
    }
    sys::close(fd);
    is_untouched
}
