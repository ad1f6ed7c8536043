//! Loads the sampler.

use crate::account;
use crate::functions::{self, next};
use crate::variables::{self, Variable};
use core::arch::{asm, global_asm};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use pleach_wire::start::{BEGIN, Begin, Decision, LAYOUT, SAMPLER, STUB, Sampler, Start};

// The sampler's word for each thread. It is in this library, because storage of a library that is loaded later comes
// from a small reserve of the loader's, or is allocated at its first use.
global_asm!(
    ".pushsection .tbss.pleach_thread,\"awT\",@nobits",
    ".balign 8",
    ".hidden pleach_thread",
    ".globl pleach_thread",
    ".type pleach_thread,@object",
    ".size pleach_thread, 8",
    "pleach_thread: .zero 8",
    ".popsection",
);

fn thread_offset() -> usize {
    let offset: usize;
    // SAFETY: reads what the loader stored for the word above.
    unsafe {
        asm!("mov {}, qword ptr [rip + pleach_thread@GOTTPOFF]", out(reg) offset,
             options(nostack, readonly, preserves_flags));
    }
    offset
}

/// A function of the loader's, if there is one. Looked up only where it is needed: each import costs every process.
pub fn loader_function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is terminated.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// The path of this library, as the loader has it.
pub fn own_path() -> Option<&'static [u8]> {
    type Dladdr = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int;
    let dladdr = loader_function(c"dladdr")?;
    let mut info = libc::Dl_info {
        dli_fname: null_mut(),
        dli_fbase: null_mut(),
        dli_sname: null_mut(),
        dli_saddr: null_mut(),
    };
    // SAFETY: the function of this name has this type; the address is in this library; the loader's name stays.
    unsafe {
        let dladdr = transmute::<*mut c_void, Dladdr>(dladdr);
        let is_found = dladdr(own_path as *const () as *const c_void, &mut info) != 0;
        (is_found && !info.dli_fname.is_null()).then(|| CStr::from_ptr(info.dli_fname).to_bytes())
    }
}

/// The sampler's first function; `None` if the sampler cannot be loaded.
fn open() -> Option<Begin> {
    type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    let own = variables::value(Variable::Preload)?;
    let own = own.strip_suffix(b"\0").unwrap_or(own);
    let directory = match own.strip_suffix(STUB.as_bytes()) {
        Some(directory) => directory,
        None => own.get(..own.iter().rposition(|byte| *byte == b'/')? + 1)?,
    };
    let mut path = [0u8; 1024];
    let mut at = 0;
    for part in [directory, SAMPLER.to_bytes_with_nul()] {
        path.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    let dlopen = loader_function(c"dlopen")?;
    // SAFETY: the functions of these names have these types; names and path are terminated. The sampler's initialisers
    // do nothing.
    unsafe {
        let dlopen = transmute::<*mut c_void, Dlopen>(dlopen);
        let library = dlopen(path.as_ptr().cast(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if !library.is_null() {
            let begin = libc::dlsym(library, BEGIN.as_ptr());
            if !begin.is_null() {
                return Some(transmute::<*mut c_void, Begin>(begin));
            }
        }
        // The program must not get the message.
        if let Some(dlerror) = loader_function(c"dlerror") {
            transmute::<*mut c_void, extern "C" fn() -> *mut c_char>(dlerror)();
        }
    }
    None
}

/// Loads the sampler and begins sampling. `None`: the process is not observed, and its modules were noted. Call once, in
/// the constructor.
///
/// # Errors
/// The sampler cannot be loaded.
pub fn load(decision: Decision, before_ns: u64, signature: u64) -> Result<Option<&'static Sampler>, ()> {
    let begin = open().ok_or(())?;
    let text = |variable| variables::value(variable).map(|value| value.as_ptr().cast());
    let (Some(directory), Some(settings)) = (text(Variable::Directory), text(Variable::Settings)) else {
        return Err(());
    };
    let start = Start {
        layout: LAYOUT,
        directory,
        settings,
        page: account::page(),
        kind: account::kind(),
        base_cpu_ns: account::base(),
        before_ns,
        thread_offset: thread_offset(),
        next,
        decision,
        signature,
    };
    // SAFETY: all of it stays, or is copied.
    let sampler = unsafe { begin(&start).as_ref() };
    if let Some(sampler) = sampler {
        functions::lead_to(sampler);
    }
    Ok(sampler)
}
