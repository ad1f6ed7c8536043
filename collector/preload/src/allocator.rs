//! The allocator of this library. Only the decoder allocates, when the first engine is reserved.
//!
//! This happens in a handler, which may have interrupted the program's allocator. The library's own allocator therefore
//! takes no lock and can be interrupted anywhere: it allocates from one region, from front to back, and maps memory for
//! requests that do not fit. The region is mapped at the start, because the decoder aborts the program if it gets no
//! memory.

use crate::sys::syscall;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The decoder's tables take half of it.
const REGION: usize = 1 << 20;
const PAGE: usize = 4096;

struct Allocator {
    /// First address of the region; 0: not mapped yet.
    region: AtomicUsize,
    /// Bytes of it that are in use.
    used: AtomicUsize,
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator {
    region: AtomicUsize::new(0),
    used: AtomicUsize::new(0),
};

fn map(bytes: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: Kernel: the mapping is new.
    let address = unsafe { syscall!(libc::SYS_mmap, 0, bytes, protection, flags, -1isize, 0) };
    (address > 0).then_some(address as usize)
}

fn unmap(address: usize, bytes: usize) {
    // SAFETY: Kernel: a mapping of ours, to which nothing refers.
    unsafe { syscall!(libc::SYS_munmap, address, bytes) };
}

/// Maps the region, before the program limits its memory. False if the kernel refuses.
pub fn reserve() -> bool {
    ALLOCATOR.region().is_some()
}

impl Allocator {
    fn region(&self) -> Option<usize> {
        let region = self.region.load(Acquire);
        if region != 0 {
            return Some(region);
        }
        let new = map(REGION)?;
        match self.region.compare_exchange(0, new, AcqRel, Acquire) {
            Ok(_) => Some(new),
            Err(other) => {
                unmap(new, REGION);
                Some(other)
            }
        }
    }

    /// Takes memory from the region; `None` if it does not fit.
    fn take(&self, layout: Layout) -> Option<usize> {
        let region = self.region()?;
        let end = |used: usize| {
            let start = used.checked_next_multiple_of(layout.align())?;
            start.checked_add(layout.size()).filter(|end| *end <= REGION)
        };
        let used = self.used.fetch_update(AcqRel, Relaxed, end).ok()?;
        Some(region + used.next_multiple_of(layout.align()))
    }

    fn holds(&self, address: usize) -> bool {
        let region = self.region.load(Relaxed);
        region != 0 && (region..region + REGION).contains(&address)
    }
}

// SAFETY: memory is handed out once, aligned, and large enough; the kernel's is aligned to pages.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > PAGE {
            return null_mut();
        }
        let address = self.take(layout).or_else(|| map(layout.size().max(1)));
        address.map_or(null_mut(), |address| address as *mut u8)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let address = memory as usize;
        if !self.holds(address) {
            unmap(address, layout.size().max(1));
            return;
        }
        // The last allocation can be freed, so that vectors can grow in place.
        let start = address - self.region.load(Relaxed);
        let _ = self
            .used
            .compare_exchange(start + layout.size(), start, AcqRel, Relaxed);
    }
}
