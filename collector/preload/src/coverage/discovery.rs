//! Which modules the process has: new ones are registered and armed, and those that are gone are forgotten.

use super::arming;
use super::modules::{self, Mapped, Module};
use super::plans::{self, Answer};
use crate::account;
use crate::mappings;
use crate::sys::SpinLock;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::coverage::{Failure, key};

/// Modules are registered and forgotten under it, with signals blocked.
static LOCK: SpinLock = SpinLock::new();

/// Looks for modules that are new, or gone. `can`: whether breakpoints can be armed; `is_later`: no code of new modules
/// has run. Returns whether all were found, and registered where they have plans. Call with signals blocked.
pub fn discover(can: Result<(), Failure>, is_later: bool) -> bool {
    LOCK.acquire(true);
    let mut seen = 0u64;
    let (mut any, mut all) = (false, true);
    let mut buffer = [0u8; 8192];
    let is_complete = mappings::read(&mut buffer, &mut |line| {
        any |= line.is_executable();
        if !line.is_executable() || line.inode == 0 || !line.path.starts_with(b"/") {
            return;
        }
        let mapped = Mapped {
            start: line.start,
            end: line.end,
            offset: line.offset,
            inode: line.inode,
        };
        if let Some(position) = modules::position(&mapped) {
            seen |= 1 << position;
            return;
        }
        let (position, module) = match register(&mapped, line.path) {
            Registered::At(position, module) => (position, module),
            Registered::Nothing => return,
            Registered::Failed => {
                all = false;
                return;
            }
        };
        seen |= 1 << position;
        let runs_early = || {
            module
                .plan()
                .is_some_and(|plan| plan.head().runs_early.load(Relaxed) != 0)
        };
        if !is_later && runs_early() {
            module.fail(Failure::Late);
        }
        match can {
            // Unreadable code cannot be checked.
            Ok(()) if !line.is_readable() => module.fail(Failure::Differs),
            Ok(()) => arming::arm(module, line.path, line.inode),
            Err(failure) => module.fail(failure),
        }
    });
    if is_complete && any {
        modules::retain(seen);
    } else {
        // The kernel does not say which modules there are.
        account::note_modules_unknown();
        all = false;
    }
    LOCK.release();
    all
}

enum Registered {
    At(usize, &'static Module),
    /// It has nothing to observe.
    Nothing,
    /// It has no plan in time, or there are too many modules.
    Failed,
}

fn register(mapped: &Mapped, path: &[u8]) -> Registered {
    let key = key(path, mapped.inode);
    if let Some((position, module)) = modules::register_again(mapped, key) {
        return Registered::At(position, module);
    }
    let plan = match plans::find(path, mapped.inode) {
        Answer::Plan(plan) => plan,
        Answer::Nothing => return Registered::Nothing,
        Answer::Late => {
            account::note_modules_unknown();
            return Registered::Failed;
        }
    };
    match modules::register(mapped, plan, key) {
        Some((position, module)) => Registered::At(position, module),
        None => {
            // A program that loads libraries for ever would run out of mappings.
            plans::unmap(plan);
            Registered::Failed
        }
    }
}

/// Releases the lock in a child made by `fork`; another thread of the parent may have held it.
#[inline(always)]
pub fn begin_child() {
    LOCK.release_in_child();
}
