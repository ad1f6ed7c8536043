//! New threads register with the sampler before they run the program's function.

use crate::counters;
use crate::next_symbol::NextSymbol;
use crate::process;
use crate::thread::{Routine, Thread};
use crate::threads;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

type Posix = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type PthreadCreate =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Posix, *mut c_void) -> c_int;
static PTHREAD_CREATE: NextSymbol<PthreadCreate> = NextSymbol::new(c"pthread_create");
type C11 = extern "C-unwind" fn(*mut c_void) -> c_int;
type ThrdCreate = unsafe extern "C" fn(*mut libc::pthread_t, C11, *mut c_void) -> c_int;
static THRD_CREATE: NextSymbol<ThrdCreate> = NextSymbol::new(c"thrd_create");

/// Looks the functions up.
pub fn resolve() {
    PTHREAD_CREATE.get();
    THRD_CREATE.get();
}

fn prepare(routine: Routine, argument: *mut c_void) -> Option<*mut Thread> {
    if !process::is_sampled_here() {
        return None;
    }
    let block = threads::prepare(routine, argument);
    if block.is_null() {
        counters::UNSAMPLED.fetch_add(1, Relaxed);
        return None;
    }
    Some(block)
}

/// # Safety
/// As `pthread_create(3)`.
pub unsafe extern "C" fn pthread_create(
    id: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: Posix,
    argument: *mut c_void,
) -> c_int {
    let Some(next) = PTHREAD_CREATE.get() else {
        return libc::ENOSYS;
    };
    let Some(block) = prepare(Routine::Posix(routine), argument) else {
        // SAFETY: Forward.
        return unsafe { next(id, attributes, routine, argument) };
    };
    // SAFETY: Forward; the block belongs to the new thread, if there is one.
    unsafe {
        let result = next(id, attributes, threads::main_posix, block.cast());
        if result != 0 {
            Thread::unmap(block);
        }
        result
    }
}

/// # Safety
/// As `thrd_create(3)`.
pub unsafe extern "C" fn thrd_create(id: *mut libc::pthread_t, routine: C11, argument: *mut c_void) -> c_int {
    const THRD_ERROR: c_int = 2;
    let Some(next) = THRD_CREATE.get() else {
        return THRD_ERROR;
    };
    let Some(block) = prepare(Routine::C11(routine), argument) else {
        // SAFETY: Forward.
        return unsafe { next(id, routine, argument) };
    };
    // SAFETY: Forward; the block belongs to the new thread, if there is one.
    unsafe {
        let result = next(id, threads::main_c11, block.cast());
        if result != 0 {
            Thread::unmap(block);
        }
        result
    }
}
