//! The next definitions of the functions that the sampler interposes. The stub looks them up: it is early in the order of
//! libraries, and this library is loaded later.

use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

type Next = extern "C" fn(*const c_char) -> *mut c_void;
/// The stub's function; 0: not known yet.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Sets the function that looks names up. Call first of all.
pub fn begin(next: Next) {
    NEXT.store(next as usize, Relaxed);
}

fn look_up(name: &CStr) -> *mut c_void {
    match NEXT.load(Relaxed) {
        0 => core::ptr::null_mut(),
        // SAFETY: the function that `begin` stored.
        next => (unsafe { core::mem::transmute::<usize, Next>(next) })(name.as_ptr()),
    }
}

/// The next definition of a symbol, as a function pointer of type `F`.
#[derive(Debug)]
pub struct NextSymbol<F> {
    name: &'static CStr,
    address: AtomicUsize,
    function: PhantomData<F>,
}

// SAFETY: nothing of type `F` is shared, only its address.
unsafe impl<F> Sync for NextSymbol<F> {}

impl<F: Copy> NextSymbol<F> {
    /// A symbol that is looked up later.
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicUsize::new(0),
            function: PhantomData,
        }
    }

    /// Looks it up at the first call. `None`: this libc lacks it.
    pub fn get(&self) -> Option<F> {
        let mut address = self.address.load(Relaxed);
        if address == 0 {
            address = look_up(self.name) as usize;
            self.address.store(address, Relaxed);
        }
        Self::function(address)
    }

    /// The function, if it was looked up before. For functions that a symbol lookup itself may call.
    pub fn get_if_resolved(&self) -> Option<F> {
        Self::function(self.address.load(Relaxed))
    }

    fn function(address: usize) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        if address == 0 {
            return None;
        }
        // SAFETY: `F` is a function pointer of the symbol's type, and the address is one.
        Some(unsafe { core::mem::transmute_copy::<usize, F>(&address) })
    }
}
