//! The signal actions that the program set and the kernel does not have.

use crate::owned_signals::{FAULTS, OwnedSignal};
use crate::sys::{self, KernelAction};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU64};

struct VirtualActions {
    handler: [AtomicU64; 2],
    flags: [AtomicU64; 2],
    mask: [AtomicU64; 2],
}

static VIRTUAL_ACTIONS: VirtualActions = VirtualActions {
    handler: [const { AtomicU64::new(0) }; 2],
    flags: [const { AtomicU64::new(0) }; 2],
    mask: [const { AtomicU64::new(0) }; 2],
};

/// The program's action for an owned signal.
pub fn virtual_action(which: OwnedSignal) -> KernelAction {
    let at = which as usize;
    KernelAction {
        handler: VIRTUAL_ACTIONS.handler[at].load(Relaxed) as usize,
        flags: VIRTUAL_ACTIONS.flags[at].load(Relaxed),
        restorer: 0,
        mask: VIRTUAL_ACTIONS.mask[at].load(Relaxed),
    }
}

/// Sets the program's action for an owned signal.
pub fn set_virtual_action(which: OwnedSignal, new: KernelAction) {
    let at = which as usize;
    VIRTUAL_ACTIONS.mask[at].store(new.mask, Relaxed);
    VIRTUAL_ACTIONS.flags[at].store(new.flags, Relaxed);
    VIRTUAL_ACTIONS.handler[at].store(new.handler as u64, Relaxed);
}

/// For each signal, the parts that were removed from the program's action before it was installed. They are added again
/// when the program reads the action.
pub static REMOVED: [AtomicU8; 65] = [const { AtomicU8::new(0) }; 65];
/// SIGTRAP, from the mask.
pub const REMOVED_TRAP: u8 = 1;
/// The tick, from the mask.
pub const REMOVED_TICK: u8 = 2;
/// `SA_ONSTACK`, from the flags.
pub const REMOVED_ONSTACK: u8 = 4;

const SIGNALS: i32 = 64;

/// Whether the program has a handler of any signal, other than those that instructions raise.
pub fn has_handlers() -> bool {
    (1..=SIGNALS).any(has_handler)
}

/// Whether the program has a handler of this signal; false for those that instructions raise.
pub fn has_handler(signal: i32) -> bool {
    let is_handler = |handler: usize| !matches!(handler, libc::SIG_DFL | libc::SIG_IGN);
    if let Some(which) = OwnedSignal::from_number(signal) {
        return is_handler(virtual_action(which).handler);
    }
    let mut action = KernelAction::default();
    !FAULTS.contains(&signal) && sys::signal_action(signal, None, Some(&mut action)) == 0 && is_handler(action.handler)
}

/// Each signal number in turn, one at each call.
pub fn next_in_turn() -> i32 {
    static TURN: AtomicI32 = AtomicI32::new(0);
    1 + TURN.fetch_add(1, Relaxed).rem_euclid(SIGNALS)
}
