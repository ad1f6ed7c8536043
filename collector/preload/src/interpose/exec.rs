//! New program images inherit our variables, whatever environment the program gives them.
//!
//! Nothing here allocates: a child made by `vfork` runs in its parent's memory.

use super::faults;
use crate::account;
use crate::next_symbol::NextSymbol;
use crate::owned_signals;
use crate::process;
use crate::shard_writer;
use crate::sys::{self, syscall};
use crate::thread::{self, Thread};
use crate::threads;
use core::arch::naked_asm;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

type Strings = *const *const c_char;
type Execve = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
static EXECVE: NextSymbol<Execve> = NextSymbol::new(c"execve");
static EXECVPE: NextSymbol<Execve> = NextSymbol::new(c"execvpe");
static FEXECVE: NextSymbol<unsafe extern "C" fn(c_int, Strings, Strings) -> c_int> = NextSymbol::new(c"fexecve");
type Execveat = unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int;
static EXECVEAT: NextSymbol<Execveat> = NextSymbol::new(c"execveat");
type Spawn =
    unsafe extern "C" fn(*mut libc::pid_t, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int;
static POSIX_SPAWN: NextSymbol<Spawn> = NextSymbol::new(c"posix_spawn");
static POSIX_SPAWNP: NextSymbol<Spawn> = NextSymbol::new(c"posix_spawnp");

unsafe extern "C" {
    static environ: Strings;
}

/// Looks the functions up.
pub fn resolve() {
    EXECVE.get();
    EXECVPE.get();
    FEXECVE.get();
    EXECVEAT.get();
    POSIX_SPAWN.get();
    POSIX_SPAWNP.get();
}

const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// Variables that a child needs; the first is merged with the child's own.
const NAMES: [&CStr; 3] = [c"LD_PRELOAD", c"PLEACH_SHARD_DIR", c"PLEACH_SAMPLER"];
const VARIABLE_CAPACITY: usize = 2048;

struct Saved {
    text: UnsafeCell<[[u8; VARIABLE_CAPACITY]; 3]>,
    ready: AtomicU8,
}

// SAFETY: written once, before `ready`.
unsafe impl Sync for Saved {}

static SAVED: Saved = Saved {
    text: UnsafeCell::new([[0; VARIABLE_CAPACITY]; 3]),
    ready: AtomicU8::new(0),
};

/// Copies our variables, before the program changes its environment. `library` is our own path.
pub fn remember(library: &CStr) {
    // SAFETY: called once, by the constructor.
    let text = unsafe { &mut *SAVED.text.get() };
    for (name, buffer) in NAMES.iter().zip(text.iter_mut()) {
        let value = if *name == c"LD_PRELOAD" {
            library.to_bytes()
        } else {
            // SAFETY: the name is terminated, the value too.
            match unsafe { libc::getenv(name.as_ptr()).as_ref() } {
                // SAFETY: `getenv` returned a terminated value.
                Some(value) => unsafe { CStr::from_ptr(value) }.to_bytes(),
                None => return,
            }
        };
        let mut at = 0;
        for part in [name.to_bytes(), b"=", value, b"\0"] {
            let Some(target) = buffer.get_mut(at..at + part.len()) else {
                return;
            };
            target.copy_from_slice(part);
            at += part.len();
        }
    }
    SAVED.ready.store(1, Release);
}

fn saved() -> Option<&'static [[u8; VARIABLE_CAPACITY]; 3]> {
    // SAFETY: no longer written once `ready` is set.
    (SAVED.ready.load(Acquire) != 0).then(|| unsafe { &*SAVED.text.get() })
}

fn terminated(text: &[u8]) -> &[u8] {
    text.split(|b| *b == 0).next().unwrap_or_default()
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

    /// `given`, with our variables.
    ///
    /// # Safety
    /// `given` is null or an environment.
    unsafe fn with(&mut self, given: Strings) -> Strings {
        let Some(saved) = saved().filter(|_| process::is_recorded()) else {
            return given;
        };
        let library = terminated(&saved[0]).get(PRELOAD.len()..).unwrap_or_default();
        // SAFETY: an environment ends with a null pointer, its strings with a zero byte.
        unsafe {
            let mut count = 0;
            let mut found = [false; 3];
            let mut preload: Option<&[u8]> = None;
            while !given.is_null() && !(*given.add(count)).is_null() {
                let string = CStr::from_ptr(*given.add(count)).to_bytes();
                if let Some(value) = string.strip_prefix(PRELOAD) {
                    preload = Some(value);
                    found[0] = value.windows(library.len().max(1)).any(|part| part == library);
                }
                for (text, found) in saved.iter().zip(&mut found).skip(1) {
                    let name = text.split(|b| *b == b'=').next().unwrap_or_default();
                    *found |= string
                        .strip_prefix(name)
                        .is_some_and(|rest| rest.first() == Some(&b'='));
                }
                count += 1;
            }
            if found == [true; 3] {
                return given;
            }
            let needed = count + 4;
            let target: *mut *const c_char = if needed <= Self::STRINGS {
                self.strings.as_mut_ptr()
            } else {
                self.mapped_bytes = needed * size_of::<usize>();
                let (protection, flags) = (
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                );
                let mapped = syscall!(libc::SYS_mmap, 0, self.mapped_bytes, protection, flags, -1isize, 0);
                if mapped < 0 {
                    return given;
                }
                self.mapped = mapped as *mut _;
                self.mapped
            };
            let mut at = 0;
            for index in 0..count {
                let string = *given.add(index);
                if !found[0] && CStr::from_ptr(string).to_bytes().starts_with(PRELOAD) {
                    continue;
                }
                target.add(at).write(string);
                at += 1;
            }
            for (index, text) in saved.iter().enumerate() {
                if found[index] {
                    continue;
                }
                let mut string = text.as_ptr();
                if let (0, Some(others)) = (index, preload)
                    && let Some(merged) = self.merge(terminated(text), others)
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
            unsafe { syscall!(libc::SYS_munmap, self.mapped, self.mapped_bytes) };
        }
    }
}

/// Suspends sampling in this process until `exec` succeeds; resumes it if it fails.
struct SuspendedForExec {
    mask: Option<u64>,
    own: bool,
}

impl SuspendedForExec {
    fn new() -> Self {
        if !process::is_active() {
            account::conclude_unsampled(false);
            return Self { mask: None, own: false };
        }
        // Not in a child made by `vfork`, which shares the state of its parent.
        let own = process::is_own_memory();
        if own {
            shard_writer::conclude(false);
            threads::pause_current();
            faults::prepare_exec(true);
        }
        // The new image inherits the virtual mask.
        // SAFETY: Current; a child made by `vfork` inherits its parent's mask.
        let blocked = unsafe { thread::current_pointer().as_ref() }.map_or(0, |t: &Thread| t.blocked.load(Relaxed));
        let mask = (blocked != 0).then(|| sys::signal_mask(libc::SIG_BLOCK, owned_signals::join(blocked, 0)));
        Self { mask, own }
    }
}

impl Drop for SuspendedForExec {
    fn drop(&mut self) {
        if let Some(mask) = self.mask {
            sys::signal_mask(libc::SIG_SETMASK, mask);
        }
        if self.own {
            faults::prepare_exec(false);
            threads::resume_current();
        }
    }
}

/// Runs `$call` with an environment that has our variables.
macro_rules! with_environment {
    ($given:expr, |$environment:ident| $call:expr) => {{
        let mut buffer = Environment::new();
        let _suspended = SuspendedForExec::new();
        let $environment = buffer.with($given);
        $call
    }};
}

/// # Safety
/// As `execve(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    let Some(next) = EXECVE.get() else { return -1 };
    // SAFETY: Forward.
    unsafe { with_environment!(environment, |e| next(path, arguments, e)) }
}

/// # Safety
/// As `execv(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: Forward.
    unsafe { execve(path, arguments, environ) }
}

/// # Safety
/// As `execvpe(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    let Some(next) = EXECVPE.get() else { return -1 };
    // SAFETY: Forward.
    unsafe { with_environment!(environment, |e| next(path, arguments, e)) }
}

/// # Safety
/// As `execvp(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: Forward.
    unsafe { execvpe(path, arguments, environ) }
}

/// # Safety
/// As `fexecve(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(fd: c_int, arguments: Strings, environment: Strings) -> c_int {
    let Some(next) = FEXECVE.get() else { return -1 };
    // SAFETY: Forward.
    unsafe { with_environment!(environment, |e| next(fd, arguments, e)) }
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
    unsafe { with_environment!(environment, |e| next(directory, path, arguments, e, flags)) }
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
    let mut buffer = Environment::new();
    // SAFETY: Forward.
    unsafe { next(pid, path, actions, attributes, arguments, buffer.with(environment)) }
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
    let mut buffer = Environment::new();
    // SAFETY: Forward.
    unsafe { next(pid, path, actions, attributes, arguments, buffer.with(environment)) }
}

extern "C" fn list_execl(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the list ends with a null pointer, as the caller's did.
    unsafe { execve(path, arguments, environ) }
}

extern "C" fn list_execlp(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the list ends with a null pointer, as the caller's did.
    unsafe { execvpe(path, arguments, environ) }
}

extern "C" fn list_execle(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the list ends with a null pointer, as the caller's did, and the environment follows it.
    unsafe {
        let mut end = arguments;
        while !(*end).is_null() {
            end = end.add(1);
        }
        execve(path, arguments, *end.add(1) as Strings)
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
