//! Turns selects on loop-carried chains into branches. `pleach_decide::if_conversion` chooses the selects.

use crate::decisions::Decisions;
use crate::error::PassError;
use crate::ffi;
use crate::ir::lines::own_line;
use crate::ir::{self, ModuleFacts};
use crate::optimisation::Optimisation;
use crate::remarks::{self, Text, plural};
use crate::settings::Settings;
use crate::transform::RAW_LATENCIES;
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_decide::if_conversion::branch_is_profitable;

/// Maximum of groups of selects that are considered in a function.
const MAX_GROUPS: usize = 256;

/// Turns the selects of a module that are faster as branches. Returns whether anything changed.
pub fn run(module: &Module<'_>, settings: &Settings) -> Result<bool, PassError> {
    let remarks = remarks::are_enabled(module.as_mut_ptr());
    let any = settings.if_conversion_aggressive;
    let mut decisions = Decisions::open(module, settings, 0)?;
    let (mut branches, mut changed) = (0, 0);
    for function in module.get_functions().filter(|f| f.count_basic_blocks() > 0) {
        let value = function.as_value_ref();
        let mut found: Vec<ffi::LoopCarriedSelect> = Vec::with_capacity(MAX_GROUPS);
        // SAFETY: the function belongs to the module; the vector has the given capacity, and the call returns how many
        // it wrote. Each stands for selects of its own.
        unsafe {
            let count = ffi::pleach_find_loop_carried_selects(value, &RAW_LATENCIES, found.as_mut_ptr(), MAX_GROUPS);
            found.set_len(count);
        }
        let (mut here, mut lines) = (0, Vec::new());
        for selects in &found {
            let pays = any || branch_is_profitable(selects.condition, selects.waiting, selects.predicted);
            if pays && decisions.take(Optimisation::SelectToBranch, &ir::name_of(value), None)? {
                // SAFETY: as above.
                unsafe {
                    lines.extend(own_line(selects.select));
                    ffi::pleach_select_to_branch(selects.select);
                }
                here += 1;
            }
        }
        if here > 0 && remarks {
            let text = Text::default().value("SelectsToBranches", here);
            let text = text
                .text(plural(
                    here,
                    " select on a loop-carried chain",
                    " selects on loop-carried chains",
                ))
                .text(plural(here, " turned into a branch", " turned into branches"))
                .lines(lines);
            remarks::emit(value, true, "SelectToBranch", text);
        }
        branches += here;
        changed += usize::from(here > 0);
    }
    if settings.summary && branches > 0 {
        let file = ModuleFacts::from_module(module).source_file;
        remarks::print(&format!(
            "pleach: {file}: {branches} selects on loop-carried chains turned into branches in {changed} functions"
        ));
    }
    Ok(branches > 0)
}
