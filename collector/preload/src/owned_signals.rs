//! The signals that the sampler owns: SIGTRAP and the tick, whose state in the program is virtual, and the four signals
//! that instructions raise, whose handler is ours while shadow execution is possible.

use crate::sys;
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;

static TICK: AtomicI32 = AtomicI32::new(0);

/// The tick's signal; 0 until it is chosen.
pub fn tick_signal() -> i32 {
    TICK.load(Relaxed)
}

/// Chooses the tick's signal.
pub fn set_tick_signal(signal: i32) {
    TICK.store(signal, Relaxed);
}

/// A signal whose action and mask bit are virtual: the program sees those that it set, the kernel has ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum OwnedSignal {
    /// SIGTRAP.
    Trap = 0,
    /// The tick.
    Tick = 1,
}

impl OwnedSignal {
    /// The owned signal with this number, if it is one.
    pub fn from_number(signal: i32) -> Option<Self> {
        match signal {
            libc::SIGTRAP => Some(Self::Trap),
            _ if signal == tick_signal() => Some(Self::Tick),
            _ => None,
        }
    }

    /// The signal's number.
    pub fn number(self) -> i32 {
        match self {
            Self::Trap => libc::SIGTRAP,
            Self::Tick => tick_signal(),
        }
    }

    /// Its bit in a thread's virtual mask and set of pending signals.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Splits a mask into the bits of the owned signals and the rest.
pub fn split(mask: u64) -> (u8, u64) {
    let (trap, tick) = (sys::bit(libc::SIGTRAP), sys::bit(tick_signal()));
    let owned = u8::from(mask & trap != 0) | u8::from(mask & tick != 0) << 1;
    (owned, mask & !(trap | tick))
}

/// The reverse of [`split`].
pub fn join(owned: u8, rest: u64) -> u64 {
    let mut mask = rest;
    if owned & OwnedSignal::Trap.bit() != 0 {
        mask |= sys::bit(libc::SIGTRAP);
    }
    if owned & OwnedSignal::Tick.bit() != 0 {
        mask |= sys::bit(tick_signal());
    }
    mask
}

/// Signals that instructions raise.
pub const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// The mask bits of [`FAULTS`].
pub const FAULT_MASK: u64 =
    sys::bit(libc::SIGSEGV) | sys::bit(libc::SIGBUS) | sys::bit(libc::SIGFPE) | sys::bit(libc::SIGILL);
