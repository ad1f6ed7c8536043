//! Plans of modules: finds them, and asks the recorder for those that are missing.

use crate::account;
use crate::descriptors;
use crate::sys::{self, syscall};
use core::ffi::CStr;
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::coverage::{FOLDER, IMAGE_EXTENSION, MAX_PATH, MODULES_EXTENSION, Plan, REQUESTS, key};

/// Longest wait for a plan: the recorder reads and decodes the module meanwhile.
const MAX_WAIT_NS: u64 = 10_000_000_000;
/// First and longest pause between two looks.
const PAUSES_NS: core::ops::Range<i64> = 50_000..5_000_000;

static FOLDER_FD: AtomicI32 = AtomicI32::new(-1);

/// The answer of the recorder.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// The module has nothing to observe, or the recorder could not write its plan.
    Nothing,
    /// Its plan.
    Plan(Plan),
    /// There was none in time.
    Late,
}

/// Opens the folder of the plans, beside the shards. False if there is none.
pub fn open(directory: &[u8]) -> bool {
    let mut path = [0u8; 1024];
    let mut at = 0;
    for part in [directory, b"/", FOLDER.to_bytes_with_nul()] {
        match path.get_mut(at..at + part.len()) {
            Some(target) => target.copy_from_slice(part),
            None => return false,
        }
        at += part.len();
    }
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: Kernel: the path is terminated.
    let fd = unsafe { syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) };
    match descriptors::move_up(fd as i32) {
        Some(fd) => FOLDER_FD.store(fd, Relaxed),
        None => return false,
    }
    true
}

/// Closes the folder.
pub fn close() {
    descriptors::drop_ours(FOLDER_FD.swap(-1, Relaxed));
}

fn open_plan(name: &[u8; 17]) -> isize {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: Kernel: the name is terminated.
    unsafe { syscall!(libc::SYS_openat, FOLDER_FD.load(Relaxed), name.as_ptr(), flags, 0) }
}

/// A plan's file name: 16 hexadecimal digits, terminated.
fn name_of(key: u64) -> [u8; 17] {
    let mut name = [0u8; 17];
    for (position, digit) in name.iter_mut().take(16).enumerate() {
        let value = (key >> (60 - 4 * position) & 15) as u8;
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
    }
    name
}

/// The plan of a module.
pub fn find(path: &[u8], inode: u64) -> Answer {
    if path.len() > MAX_PATH {
        return Answer::Nothing;
    }
    let key = key(path, inode);
    if account::has_nothing_to_observe(key) {
        return Answer::Nothing;
    }
    let name = name_of(key);
    let mut fd = open_plan(&name);
    if fd < 0 {
        super::note_preparation();
        if !request(path, inode) {
            return Answer::Late;
        }
        let deadline = sys::now_ns() + MAX_WAIT_NS;
        let mut pause = PAUSES_NS.start;
        loop {
            fd = open_plan(&name);
            if fd >= 0 {
                break;
            }
            if sys::now_ns() > deadline {
                return Answer::Late;
            }
            let time = libc::timespec {
                tv_sec: 0,
                tv_nsec: pause,
            };
            // SAFETY: Kernel: the time lives here.
            unsafe { syscall!(libc::SYS_nanosleep, &raw const time, 0) };
            pause = (pause * 5 / 4).min(PAUSES_NS.end);
        }
    }
    let answer = map(fd as i32);
    sys::close(fd as i32);
    if matches!(answer, Answer::Nothing) {
        account::note_nothing_to_observe(key);
    }
    answer
}

/// A file's name: 16 hexadecimal digits and an extension, terminated.
fn name_with(number: u64, extension: &CStr) -> Option<[u8; 32]> {
    let (digits, extension) = (name_of(number), extension.to_bytes_with_nul());
    let mut name = [0u8; 32];
    name.get_mut(..16)?.copy_from_slice(digits.get(..16)?);
    name.get_mut(16..16 + extension.len())?.copy_from_slice(extension);
    Some(name)
}

/// Stores the keys of the modules of a signature, up to the first 0. False if they are stored already, or cannot be.
pub fn store_modules(signature: u64, keys: &[u64]) -> bool {
    let Some(name) = name_with(signature, MODULES_EXTENSION) else {
        return false;
    };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: Kernel: the name is terminated.
    let fd = unsafe { syscall!(libc::SYS_openat, FOLDER_FD.load(Relaxed), name.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return false;
    }
    let bytes = keys.iter().take_while(|key| **key != 0).count() * size_of::<u64>();
    // SAFETY: Kernel: the keys are readable.
    let written = unsafe { syscall!(libc::SYS_write, fd, keys.as_ptr(), bytes) };
    sys::close(fd as i32);
    written == bytes as isize
}

/// Opens a module's image for reading and writing. Returns the descriptor, and the image's inode.
pub fn open_image(path: &[u8], inode: u64) -> Option<(i32, u64)> {
    let image = name_with(key(path, inode), IMAGE_EXTENSION)?;
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: Kernel: the name is terminated.
    let fd = unsafe { syscall!(libc::SYS_openat, FOLDER_FD.load(Relaxed), image.as_ptr(), flags, 0) };
    let (_, found) = sys::identity(fd as i32)?;
    Some((fd as i32, found))
}

fn request(path: &[u8], inode: u64) -> bool {
    let mut text = [0u8; MAX_PATH + 16];
    let parts = [&inode.to_le_bytes()[..], path, b"\0"];
    let mut length = 0;
    for part in parts {
        match text.get_mut(length..length + part.len()) {
            Some(target) => target.copy_from_slice(part),
            None => return false,
        }
        length += part.len();
    }
    let flags = libc::O_WRONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: Kernel: the name is terminated, the text is readable.
    unsafe {
        let fd = syscall!(libc::SYS_openat, FOLDER_FD.load(Relaxed), REQUESTS.as_ptr(), flags, 0);
        if fd < 0 {
            return false;
        }
        let written = syscall!(libc::SYS_write, fd, text.as_ptr(), length);
        sys::close(fd as i32);
        written == length as isize
    }
}

/// Unmaps a plan that nobody else knows.
pub fn unmap(plan: Plan) {
    // SAFETY: Kernel: the mapping is ours, and by the caller nobody uses it.
    unsafe { syscall!(libc::SYS_munmap, plan.address(), plan.size()) };
}

fn map(fd: i32) -> Answer {
    let Some(size) = sys::file_size(fd) else {
        return Answer::Late;
    };
    if size == 0 {
        return Answer::Nothing;
    }
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: Kernel: the mapping is new.
    let base = unsafe { syscall!(libc::SYS_mmap, 0, size, protection, flags, fd, 0) };
    if base < 0 {
        return Answer::Late;
    }
    // SAFETY: the recorder does not shrink the file, and the mapping stays for good.
    match unsafe { Plan::from_mapping(base as *mut u8, size) } {
        Some(plan) => Answer::Plan(plan),
        None => {
            // SAFETY: Kernel: the mapping is ours, and nobody knows it.
            unsafe { syscall!(libc::SYS_munmap, base, size) };
            Answer::Late
        }
    }
}
