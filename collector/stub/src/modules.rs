//! Which modules the process has at its start.
//!
//! Where some processes have breakpoints, the others note that they have the same modules without. The sampler does that
//! for the first process with a set of modules; later ones are only counted, under a hash of the set. The program is told
//! by its inode and libraries by their paths. Should a library be another one later, it makes no difference: where any
//! process had no breakpoints, what was not hit in libraries is unknown.

use crate::load::loader_function;
use crate::sys;
use core::ffi::{CStr, c_char};

/// The loader's `struct r_debug`, as far as it is needed.
#[repr(C)]
struct Debug {
    version: i32,
    first: *const Module,
}

/// The loader's `struct link_map`.
#[repr(C)]
struct Module {
    address: usize,
    path: *const c_char,
    dynamic: usize,
    next: *const Module,
}

fn mix(hash: u64, bytes: &[u8]) -> u64 {
    // FNV-1a, with a zero byte after each part.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    step(bytes.iter().fold(hash, step), &0)
}

/// A hash of the modules; 0: they are unknown.
pub fn signature() -> u64 {
    // Of a script, this is the script, which has one interpreter. `/proc/self/exe` would take ten times as long: a new
    // process is not in `/proc` yet.
    let executable = crate::account::executable();
    let Some((device, inode)) = sys::identity(executable) else {
        return 0;
    };
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for number in [device, inode] {
        hash = mix(hash, &number.to_le_bytes());
    }
    hash = mix(hash, executable.to_bytes());
    let Some(debug) = loader_function(c"_r_debug") else {
        return 0;
    };
    // SAFETY: the loader's structures: in constructors, its lists do not change. Its paths are terminated.
    unsafe {
        let mut module = (*debug.cast::<Debug>()).first;
        while let Some(found) = module.as_ref() {
            if !found.path.is_null() {
                hash = mix(hash, CStr::from_ptr(found.path).to_bytes());
            }
            module = found.next;
        }
    }
    hash.max(1)
}
