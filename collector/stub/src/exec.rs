//! New program images inherit our variables, whatever environment the program gives them.
//!
//! Nothing here allocates: a child made by `vfork` runs in its parent's memory.

use crate::account;
use crate::functions::next;
use crate::process;
use crate::sys;
use crate::variables::{self, Variable};
use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::marker::PhantomData;
use core::ptr::{null, null_mut};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::start::{Sampler, Suspended};

type Strings = *const *const c_char;
type Execve = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
static EXECVE: Next<Execve> = Next::new(c"execve");
static EXECVPE: Next<Execve> = Next::new(c"execvpe");
static FEXECVE: Next<unsafe extern "C" fn(c_int, Strings, Strings) -> c_int> = Next::new(c"fexecve");
type Execveat = unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int;
static EXECVEAT: Next<Execveat> = Next::new(c"execveat");
type Spawn =
    unsafe extern "C" fn(*mut libc::pid_t, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int;
static POSIX_SPAWN: Next<Spawn> = Next::new(c"posix_spawn");
static POSIX_SPAWNP: Next<Spawn> = Next::new(c"posix_spawnp");

unsafe extern "C" {
    static environ: Strings;
}

/// The next definition of a symbol, as a function pointer of type `F`, looked up when it is first needed.
struct Next<F> {
    name: &'static CStr,
    address: AtomicUsize,
    function: PhantomData<F>,
}

// SAFETY: nothing of type `F` is shared, only its address.
unsafe impl<F> Sync for Next<F> {}

impl<F: Copy> Next<F> {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicUsize::new(0),
            function: PhantomData,
        }
    }

    /// `None`: this libc lacks it.
    fn get(&self) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        let mut address = self.address.load(Relaxed);
        if address == 0 {
            address = next(self.name.as_ptr()) as usize;
            self.address.store(address, Relaxed);
        }
        // SAFETY: `F` is a function pointer of the symbol's type, and the address is one.
        (address != 0).then(|| unsafe { core::mem::transmute_copy::<usize, F>(&address) })
    }
}

/// Looks the functions up, before a child of `vfork` or a thread in a burst can need them.
pub fn resolve() {
    EXECVE.get();
    EXECVPE.get();
    FEXECVE.get();
    EXECVEAT.get();
    POSIX_SPAWN.get();
    POSIX_SPAWNP.get();
}

/// A program's environment with our variables added.
struct Environment {
    strings: [*const c_char; Self::STRINGS],
    preload: [u8; 4096],
    /// Mapped in place of `strings` if there are too many; null if not mapped.
    mapped: *mut *const c_char,
    mapped_bytes: usize,
}

impl Environment {
    const STRINGS: usize = 512;

    const fn new() -> Self {
        Self {
            strings: [null(); Self::STRINGS],
            preload: [0; 4096],
            mapped: null_mut(),
            mapped_bytes: 0,
        }
    }

    /// `given`, with our variables, or without ours to preload where the dynamic linker would not find it, as in another
    /// root directory, and say so.
    ///
    /// # Safety
    /// `given` is null or an environment.
    unsafe fn with(&mut self, given: Strings) -> Strings {
        let own = variables::value(Variable::Preload).filter(|_| process::is_recorded());
        let Some(library) = own.filter(|own| own.ends_with(b"\0")) else {
            return given;
        };
        // SAFETY: it ends with a zero byte. The checked conversion could panic, and the stub would need what unwinds.
        let library = unsafe { CStr::from_ptr(library.as_ptr().cast()) };
        // SAFETY: an environment ends with a null pointer, its strings with a zero byte.
        unsafe {
            let mut count = 0;
            let mut found = [false; 3];
            let mut preload: Option<&[u8]> = None;
            while !given.is_null() && !(*given.add(count)).is_null() {
                let string = CStr::from_ptr(*given.add(count)).to_bytes();
                for (variable, found) in Variable::ALL.into_iter().zip(&mut found) {
                    let Some(value) = string.strip_prefix(variable.prefix()) else {
                        continue;
                    };
                    *found = true;
                    if variable == Variable::Preload {
                        preload = Some(value);
                        *found = variables::entries(value).any(|entry| entry == library.to_bytes());
                    }
                }
                count += 1;
            }
            let is_loadable = sys::is_readable(library);
            if found == [true; 3] && is_loadable || !found[0] && !is_loadable {
                return given;
            }
            let Some(target) = self.room_for(count + 4) else {
                return given;
            };
            let mut at = 0;
            for index in 0..count {
                let string = *given.add(index);
                let is_changed = !found[0] || !is_loadable;
                if is_changed
                    && CStr::from_ptr(string)
                        .to_bytes()
                        .starts_with(Variable::Preload.prefix())
                {
                    continue;
                }
                target.add(at).write(string);
                at += 1;
            }
            if !is_loadable {
                let others = preload.and_then(|preload| self.others(preload, library.to_bytes()));
                if let Some(others) = others {
                    target.add(at).write(others.cast());
                    at += 1;
                }
                target.add(at).write(null());
                return target;
            }
            for (variable, found) in Variable::ALL.into_iter().zip(found) {
                let Some(text) = variables::text(variable).filter(|_| !found) else {
                    continue;
                };
                let mut string = text.as_ptr();
                if let (Variable::Preload, Some(others)) = (variable, preload)
                    && let Some(merged) = self.merge(text.strip_suffix(b"\0").unwrap_or(text), others)
                {
                    string = merged;
                }
                target.add(at).write(string.cast());
                at += 1;
            }
            target.add(at).write(null());
            target
        }
    }

    /// Memory for an environment of so many strings, the null pointer included.
    fn room_for(&mut self, strings: usize) -> Option<*mut *const c_char> {
        if strings <= Self::STRINGS {
            return Some(self.strings.as_mut_ptr());
        }
        let bytes = strings * size_of::<usize>();
        (self.mapped, self.mapped_bytes) = (sys::map(bytes, None)? as *mut _, bytes);
        Some(self.mapped)
    }

    /// `LD_PRELOAD=others`; `None`: there are none, or too many.
    fn others(&mut self, preload: &[u8], ours: &[u8]) -> Option<*const u8> {
        let mut at = 0;
        let mut put = |part: &[u8]| {
            for &byte in part {
                *self.preload.get_mut(at)? = byte;
                at += 1;
            }
            Some(())
        };
        put(Variable::Preload.prefix())?;
        let mut any = false;
        for entry in variables::entries(preload).filter(|entry| *entry != ours && !entry.is_empty()) {
            if any {
                put(b":")?;
            }
            put(entry)?;
            any = true;
        }
        put(b"\0")?;
        any.then_some(self.preload.as_ptr())
    }

    /// `LD_PRELOAD=ours:others`.
    fn merge(&mut self, ours: &[u8], others: &[u8]) -> Option<*const u8> {
        let mut at = 0;
        for part in [ours, b":", others, b"\0"] {
            self.preload.get_mut(at..at + part.len())?.copy_from_slice(part);
            at += part.len();
        }
        Some(self.preload.as_ptr())
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if !self.mapped.is_null() {
            // SAFETY: mapped by `with`.
            unsafe { sys::unmap(self.mapped as usize, self.mapped_bytes) };
        }
    }
}

/// Suspends sampling in this process until `exec` succeeds; resumes it if it fails.
struct SuspendedForExec(Option<(&'static Sampler, Suspended)>);

impl SuspendedForExec {
    fn new() -> Self {
        let sampler = process::sampler();
        if sampler.is_none() {
            account::conclude(false);
        }
        Self(sampler.map(|sampler| (sampler, (sampler.before_exec)())))
    }
}

impl Drop for SuspendedForExec {
    fn drop(&mut self) {
        if let Some((sampler, suspended)) = self.0 {
            (sampler.after_exec)(suspended);
        }
    }
}

/// Runs `call` with an environment that has our variables.
///
/// # Safety
/// `given` is null or an environment.
#[inline(always)]
unsafe fn with_environment<R>(given: Strings, call: impl FnOnce(Strings) -> R) -> R {
    // A handler's alternate stack may be smaller than the buffer. Elsewhere it is no mapping: a child of `vfork` would
    // leave it to its parent.
    let mapped = match sys::is_on_alternate_stack() {
        true => sys::map(size_of::<Environment>(), None),
        false => None,
    };
    match mapped {
        // SAFETY: new, and as large as the structure, for which zeroes are valid; by the caller.
        Some(memory) => unsafe {
            let buffer = memory as *mut Environment;
            let result = call((*buffer).with(given));
            buffer.drop_in_place();
            sys::unmap(memory, size_of::<Environment>());
            result
        },
        // SAFETY: by the caller.
        None => unsafe { with_environment_here(given, call) },
    }
}

/// The same, on the present stack.
///
/// # Safety
/// As of [`with_environment`].
#[inline(never)]
unsafe fn with_environment_here<R>(given: Strings, call: impl FnOnce(Strings) -> R) -> R {
    let mut buffer = Environment::new();
    // SAFETY: by the caller.
    call(unsafe { buffer.with(given) })
}

/// # Safety
/// As `execve(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    // SAFETY: Forward.
    unsafe { execute(&EXECVE, path, arguments, environment) }
}

/// # Safety
/// As `execve(2)`; `next` is it, or its variant that searches for the program.
unsafe fn execute(next: &Next<Execve>, path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    let Some(next) = next.get() else { return -1 };
    // SAFETY: Forward.
    unsafe {
        let _suspended = SuspendedForExec::new();
        with_environment(environment, |e| next(path, arguments, e))
    }
}

/// # Safety
/// As `execv(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: Forward.
    unsafe { execute(&EXECVE, path, arguments, environ) }
}

/// # Safety
/// As `execvpe(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    // SAFETY: Forward.
    unsafe { execute(&EXECVPE, path, arguments, environment) }
}

/// # Safety
/// As `execvp(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: Forward.
    unsafe { execute(&EXECVPE, path, arguments, environ) }
}

/// # Safety
/// As `fexecve(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(fd: c_int, arguments: Strings, environment: Strings) -> c_int {
    let Some(next) = FEXECVE.get() else { return -1 };
    // SAFETY: Forward.
    unsafe {
        let _suspended = SuspendedForExec::new();
        with_environment(environment, |e| next(fd, arguments, e))
    }
}

/// # Safety
/// As `execveat(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    directory: c_int,
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    let Some(next) = EXECVEAT.get() else { return -1 };
    // SAFETY: Forward.
    unsafe {
        let _suspended = SuspendedForExec::new();
        with_environment(environment, |e| next(directory, path, arguments, e, flags))
    }
}

/// # Safety
/// As `posix_spawn(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    let Some(next) = POSIX_SPAWN.get() else {
        return libc::ENOSYS;
    };
    // SAFETY: Forward.
    unsafe { with_environment(environment, |e| next(pid, path, actions, attributes, arguments, e)) }
}

/// # Safety
/// As `posix_spawnp(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    let Some(next) = POSIX_SPAWNP.get() else {
        return libc::ENOSYS;
    };
    // SAFETY: Forward.
    unsafe { with_environment(environment, |e| next(pid, path, actions, attributes, arguments, e)) }
}

extern "C" fn list_execl(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the list ends with a null pointer, as the caller's did.
    unsafe { execute(&EXECVE, path, arguments, environ) }
}

extern "C" fn list_execlp(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the list ends with a null pointer, as the caller's did.
    unsafe { execute(&EXECVPE, path, arguments, environ) }
}

extern "C" fn list_execle(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the list ends with a null pointer, as the caller's did, and the environment follows it.
    unsafe {
        let mut end = arguments;
        while !(*end).is_null() {
            end = end.add(1);
        }
        execute(&EXECVE, path, arguments, *end.add(1) as Strings)
    }
}

/// Turns a variadic list of arguments into an array: pushes those in registers below those on the stack, over the
/// return address.
macro_rules! list {
    ($name:ident, $body:ident, $manual:literal) => {
        #[doc = concat!("# Safety\nAs `", $manual, "`.")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char) -> c_int {
            naked_asm!(
                "pop rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push rbp",
                "mov rbp, rsp",
                "push rax",
                "and rsp, -16",
                "call {body}",
                "mov rcx, qword ptr [rbp - 8]",
                "mov rsp, rbp",
                "pop rbp",
                "add rsp, 40",
                "jmp rcx",
                body = sym $body,
            )
        }
    };
}

list!(execl, list_execl, "execl(3)");
list!(execlp, list_execlp, "execlp(3)");
list!(execle, list_execle, "execle(3)");
