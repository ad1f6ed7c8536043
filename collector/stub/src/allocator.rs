//! An allocator without memory. Nothing here allocates; the standard library's allocator would link parts of that library.

use core::alloc::{GlobalAlloc, Layout};

struct NoMemory;

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

// SAFETY: no memory is ever handed out, so none comes back.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
