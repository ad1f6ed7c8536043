//! Turns selects that a loop waits for back into branches. Which ones that pays for is decided by `pleach_feedback::selects`.

use crate::ir::ModuleFacts;
use crate::settings::Settings;
use crate::{ffi, remark};
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_feedback::selects::is_waited_for;

/// Groups of selects of a function that are looked at.
const MOST: usize = 256;

/// Makes branches where that pays, in all functions of a module. Returns whether anything changed.
pub fn run(module: &Module<'_>, settings: &Settings) -> bool {
    // SAFETY: the module is alive.
    let remarks = unsafe { ffi::pleach_remarks_enabled(module.as_mut_ptr()) };
    let any = ffi::pleach_option_any_selects();
    let (mut branches, mut changed) = (0, 0);
    for function in module.get_functions().filter(|f| f.count_basic_blocks() > 0) {
        let value = function.as_value_ref();
        let mut found: Vec<ffi::Recurrence> = Vec::with_capacity(MOST);
        // SAFETY: the function belongs to the module; as many are written as are counted, and there is room for so many. Each stands for
        // selects of its own.
        let here = unsafe {
            let count = ffi::pleach_recurrences(value, found.as_mut_ptr(), MOST);
            found.set_len(count);
            let worth = found.iter().filter(|r| any || is_waited_for(r.condition, r.values));
            worth.map(|r| ffi::pleach_branch(r.select)).count()
        };
        if here > 0 && remarks {
            let text = format!("{here} selects that the next turn of a loop waits for became branches");
            remark(value, true, "Recurrences", &text);
        }
        branches += here;
        changed += usize::from(here > 0);
    }
    if settings.summary && branches > 0 {
        let file = ModuleFacts::of(module).source_file;
        ffi::print(&format!(
            "pleach: {file}: {branches} selects that loops wait for in {changed} functions became branches"
        ));
    }
    branches > 0
}
