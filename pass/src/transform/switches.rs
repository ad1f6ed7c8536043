//! Compares with frequent cases of a switch before its jump through a table. `pleach_decide::switches` chooses the cases.

use crate::decisions::Decisions;
use crate::error::PassError;
use crate::ffi;
use crate::ir::lines::own_line;
use crate::ir::{self, ModuleFacts};
use crate::optimisation::Optimisation;
use crate::remarks::{self, Text, plural};
use crate::settings::Settings;
use crate::use_profile::source::Source;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_decide::if_conversion::ISSUE_WIDTH;
use pleach_decide::switches::{CaseRange, Comparisons, MIN_RANGES_OF_TABLE, Switch, comparisons_before_table};

/// Maximum of switches that are considered in a function.
const MAX_SWITCHES: usize = 1024;
/// Ranges that are compared with in tests, whatever it costs.
const COMPARED_IN_TESTS: usize = 5;

/// Compares before the switches of a module where that is faster. Returns whether anything changed.
///
/// # Errors
/// The profile, or the list of decisions, cannot be opened.
pub fn run(module: &Module<'_>, settings: &Settings) -> Result<bool, PassError> {
    let Some(profile) = settings.profile.as_ref().filter(|_| settings.switches) else {
        return Ok(false);
    };
    let any = settings.if_conversion_aggressive;
    // From few bursts, shares of cases are not known.
    if !any && !Source::support_of(profile)?.superblocks() {
        return Ok(false);
    }
    let remarks = remarks::are_enabled(module.as_mut_ptr());
    let mut decisions = Decisions::open(module, settings, Source::executions_of(profile)?)?;
    let (mut switches, mut changed) = (0, 0);
    for function in module.get_functions().filter(|f| f.count_basic_blocks() > 0) {
        let value = function.as_value_ref();
        let (mut here, mut lines) = (0, Vec::new());
        for found in hot_switches(value, any) {
            let switch = read(&found);
            let comparisons = if any {
                Some(compared_in_tests(&switch))
            } else {
                comparisons_before_table(&switch)
            };
            let Some(Comparisons { ranges, saved }) = comparisons else {
                continue;
            };
            let slots = saved * found.executions * ISSUE_WIDTH;
            if decisions.take(Optimisation::Switch, &ir::name_of(value), Some(slots))? {
                let ranges: Vec<u32> = ranges.iter().map(|&range| range as u32).collect();
                // SAFETY: the switch belongs to the function, and has these ranges.
                unsafe {
                    lines.extend(own_line(found.switch));
                    ffi::pleach_compare_before_switch(found.switch, ranges.as_ptr(), ranges.len());
                }
                here += 1;
            }
        }
        if here > 0 && remarks {
            let text = Text::default().value("Switches", here);
            let text = text.text(plural(
                here,
                " switch compares with frequent cases before its table",
                " switches compare with frequent cases before their tables",
            ));
            remarks::emit(value, true, "SwitchToComparisons", text.lines(lines));
        }
        switches += here;
        changed += usize::from(here > 0);
    }
    if settings.summary && switches > 0 {
        let file = ModuleFacts::from_module(module).source_file;
        remarks::print(&format!(
            "pleach: {file}: {switches} switches compare with frequent cases in {changed} functions"
        ));
    }
    Ok(switches > 0)
}

/// The hot switches of a function, or all, in block order.
fn hot_switches(function: LLVMValueRef, any: bool) -> Vec<ffi::HotSwitch> {
    let mut found = Vec::with_capacity(MAX_SWITCHES);
    // SAFETY: callers pass a function of the module being compiled; the vector has the given capacity, and the call
    // returns how many it wrote.
    unsafe {
        let min = if any { 1 } else { MIN_RANGES_OF_TABLE as u32 };
        let count = ffi::pleach_find_hot_switches(function, min, any, found.as_mut_ptr(), MAX_SWITCHES);
        found.set_len(count);
    }
    found
}

/// What the decision needs to know of a switch.
fn read(found: &ffi::HotSwitch) -> Switch {
    let mut ranges: Vec<ffi::CaseRange> = Vec::with_capacity(found.ranges as usize);
    // SAFETY: the switch has so many ranges, all of which the call writes.
    unsafe {
        ffi::pleach_switch_ranges(found.switch, ranges.as_mut_ptr());
        ranges.set_len(found.ranges as usize);
    }
    let range = |range: ffi::CaseRange| CaseRange {
        values: (range.first, range.last),
        destination: range.destination,
        weight: range.weight,
    };
    Switch {
        ranges: ranges.into_iter().map(range).collect(),
        default: found.default_is_possible.then_some((0, found.default_weight)),
        mispredicted: (found.mispredicted_low >= 0).then(|| {
            let [low, high] =
                [found.mispredicted_low, found.mispredicted_high].map(|permille| f64::from(permille) / 1000.0);
            (low, high)
        }),
    }
}

/// Comparisons for tests: with the last ranges, from the last one on.
fn compared_in_tests(switch: &Switch) -> Comparisons {
    let ranges = (0..switch.ranges.len()).rev().take(COMPARED_IN_TESTS);
    Comparisons {
        ranges: ranges.collect(),
        saved: 0.0,
    }
}
