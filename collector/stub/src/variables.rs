//! The variables of the recording, as they were when the process started: the program may change its environment.

use crate::sys;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};

/// A variable that children need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variable {
    /// `LD_PRELOAD`, here with our own path only. It is merged with the child's.
    Preload = 0,
    /// The directory of the shards.
    Directory = 1,
    /// The settings of the sampler.
    Settings = 2,
}

impl Variable {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Preload, Self::Directory, Self::Settings];

    /// Its name and an equals sign.
    pub fn prefix(self) -> &'static [u8] {
        match self {
            Self::Preload => b"LD_PRELOAD=",
            Self::Directory => b"PLEACH_SHARD_DIR=",
            Self::Settings => b"PLEACH_SAMPLER=",
        }
    }
}

/// Enough for usual paths and settings; longer ones are kept in a mapping.
const CAPACITY: usize = 768;

struct Saved {
    buffer: UnsafeCell<[u8; CAPACITY]>,
    texts: UnsafeCell<[&'static [u8]; 3]>,
    is_ready: AtomicBool,
}

// SAFETY: written once, before `is_ready`.
unsafe impl Sync for Saved {}

static SAVED: Saved = Saved {
    buffer: UnsafeCell::new([0; CAPACITY]),
    texts: UnsafeCell::new([&[]; 3]),
    is_ready: AtomicBool::new(false),
};

/// Copies the values. Call once, in the constructor. False: there is no memory.
pub fn save(values: [&[u8]; 3]) -> bool {
    let parts = |variable: Variable| [variable.prefix(), values[variable as usize], b"\0"];
    let lengths = Variable::ALL.map(|variable| parts(variable).iter().map(|part| part.len()).sum::<usize>());
    let total: usize = lengths.iter().sum();
    let mut target = if total <= CAPACITY {
        SAVED.buffer.get().cast::<u8>()
    } else {
        match sys::map(total, None) {
            Some(address) => address as *mut u8,
            None => return false,
        }
    };
    for variable in Variable::ALL {
        let start = target;
        // SAFETY: all parts fit; only this call writes, and the memory stays.
        unsafe {
            for part in parts(variable) {
                target.copy_from_nonoverlapping(part.as_ptr(), part.len());
                target = target.add(part.len());
            }
            (*SAVED.texts.get())[variable as usize] = core::slice::from_raw_parts(start, lengths[variable as usize]);
        }
    }
    SAVED.is_ready.store(true, Release);
    true
}

/// A variable, with its name and a zero byte after it; `None` if they were not saved.
pub fn text(variable: Variable) -> Option<&'static [u8]> {
    // SAFETY: no longer written once they are ready.
    let texts = SAVED.is_ready.load(Acquire).then(|| unsafe { &*SAVED.texts.get() })?;
    Some(texts[variable as usize])
}

/// The value of a variable, with a zero byte after it.
pub fn value(variable: Variable) -> Option<&'static [u8]> {
    text(variable)?.get(variable.prefix().len()..)
}

/// The entries of `LD_PRELOAD`.
pub fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b':' | b' '))
}

/// The entry of `LD_PRELOAD` with a file name.
pub fn preloaded<'l>(list: &'l [u8], name: &str) -> Option<&'l [u8]> {
    entries(list).find(|entry| {
        let directory = entry.strip_suffix(name.as_bytes());
        directory.is_some_and(|directory| directory.last() == Some(&b'/'))
    })
}

/// The value of a variable in an environment.
///
/// # Safety
/// `environment` is one.
pub unsafe fn find(environment: *const *const core::ffi::c_char, variable: Variable) -> Option<&'static [u8]> {
    let mut at = environment;
    // SAFETY: an environment ends with a null pointer, its strings with a zero byte.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            let string = CStr::from_ptr(*at).to_bytes();
            if let Some(value) = string.strip_prefix(variable.prefix()) {
                return Some(value);
            }
            at = at.add(1);
        }
    }
    None
}
