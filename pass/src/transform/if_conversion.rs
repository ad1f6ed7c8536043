//! Does without unpredictable branches around code that accesses memory: the host only forms selects of values. Which branches that pays for
//! is decided by `pleach_feedback::selects`.

use crate::ir::ModuleFacts;
use crate::settings::Settings;
use crate::{ffi, remark};
use inkwell::module::Module;
use inkwell::values::{AsValueRef, FunctionValue};
use pleach_feedback::selects::{Arms, pays};
use std::mem::MaybeUninit;

/// Branches within branches become straight-line code from the inside: so many deep.
const MOST_ROUNDS: usize = 8;

/// Does without what pays in all functions of a module. Returns whether anything changed.
pub fn run(module: &Module<'_>, settings: &Settings) -> bool {
    // SAFETY: the module is alive.
    let remarks = unsafe { ffi::pleach_remarks_enabled(module.as_mut_ptr()) };
    let (mut merged, mut changed) = (0, 0);
    for function in module.get_functions().filter(|f| f.count_basic_blocks() > 1) {
        let value = function.as_value_ref();
        // SAFETY: the function belongs to the module.
        if unsafe { !ffi::pleach_may_merge_arms(value) } {
            continue;
        }
        let rounds = (0..MOST_ROUNDS).map(|_| round(function));
        let here: usize = rounds.take_while(|&merged| merged > 0).sum();
        if here > 0 && remarks {
            let text = format!("{here} unpredictable branches around memory accesses replaced by selects");
            remark(value, true, "Selects", &text);
        }
        merged += here;
        changed += usize::from(here > 0);
    }
    if settings.summary && merged > 0 {
        let file = ModuleFacts::of(module).source_file;
        ffi::print(&format!(
            "pleach: {file}: {merged} unpredictable branches around memory accesses in {changed} functions replaced by selects"
        ));
    }
    merged > 0
}

fn round(function: FunctionValue<'_>) -> usize {
    let any = ffi::pleach_option_any_selects();
    let mut merged = 0;
    let mut next = function.get_first_basic_block();
    while let Some(block) = next {
        if let Some(terminator) = block.get_terminator() {
            let mut arms = MaybeUninit::uninit();
            // SAFETY: the terminator belongs to the function; where there are arms, they are written. What is merged away lies behind
            // the block that is left.
            unsafe {
                let found = ffi::pleach_arms(terminator.as_value_ref(), any, arms.as_mut_ptr());
                if found && (any || worth(&arms.assume_init())) {
                    ffi::pleach_merge_arms(terminator.as_value_ref());
                    merged += 1;
                }
            }
        }
        next = block.get_next_basic_block();
    }
    merged
}

fn worth(arms: &ffi::Arms) -> bool {
    let arms = Arms {
        executed: arms.executed,
        needed: arms.needed,
        selects: arms.selects,
        shared: arms.shared,
        probability: arms.probability,
        rate: (arms.rate > 0.0).then_some(arms.rate),
    };
    pays(&arms)
}
