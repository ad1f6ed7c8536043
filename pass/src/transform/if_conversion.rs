//! If-converts unpredictable branches around code that accesses memory; LLVM itself only forms selects of values.
//! `pleach_decide::if_conversion` chooses the branches.

use crate::ffi;
use crate::ir::ModuleFacts;
use crate::ir::lines::own_line;
use crate::remarks::{self, Text, plural};
use crate::settings::Settings;
use crate::transform::RAW_LATENCIES;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::values::{AsValueRef, FunctionValue};
use pleach_decide::if_conversion::{Arms, Tests, if_conversion_is_profitable, joining_is_profitable};
use std::mem::MaybeUninit;

/// Maximum of rounds over a function: nested branches are converted inside out.
const MAX_ROUNDS: usize = 8;

/// Converts the branches of a module whose if-conversion is profitable. Returns whether anything changed.
pub fn run(module: &Module<'_>, settings: &Settings) -> bool {
    let remarks = remarks::are_enabled(module.as_mut_ptr());
    let any = settings.if_conversion_aggressive;
    let (mut converted, mut changed) = (0, 0);
    for function in module.get_functions().filter(|f| f.count_basic_blocks() > 1) {
        let value = function.as_value_ref();
        // SAFETY: the function belongs to the module.
        let may_convert = unsafe {
            ffi::pleach_put_rates_back(value);
            ffi::pleach_may_if_convert(value)
        };
        if !may_convert {
            continue;
        }
        let mut lines = Vec::new();
        let rounds = (0..MAX_ROUNDS).map(|_| convert_once(function, any, &mut lines));
        let here: usize = rounds.take_while(|&converted| converted > 0).sum();
        if here > 0 && remarks {
            let text = Text::default().value("IfConverted", here);
            let branches = plural(here, " unpredictable branch", " unpredictable branches");
            let text = text.text(branches).text(" if-converted").lines(lines);
            remarks::emit(value, true, "IfConversion", text);
        }
        converted += here;
        changed += usize::from(here > 0);
    }
    if settings.summary && converted > 0 {
        let file = ModuleFacts::from_module(module).source_file;
        remarks::print(&format!(
            "pleach: {file}: {converted} unpredictable branches if-converted in {changed} functions"
        ));
    }
    converted > 0
}

/// Converts branches of a function once, blocks in order; returns how many, and adds their source lines.
fn convert_once(function: FunctionValue<'_>, any: bool, lines: &mut Vec<u32>) -> usize {
    let mut converted = 0;
    let mut next = function.get_first_basic_block();
    while let Some(block) = next {
        if let Some(terminator) = block.get_terminator() {
            let terminator = terminator.as_value_ref();
            // SAFETY: the terminator belongs to the function. Conversion removes only other blocks.
            unsafe {
                if may_convert(terminator, any) {
                    lines.extend(own_line(terminator));
                    ffi::pleach_if_convert(terminator);
                    converted += 1;
                } else if may_join(terminator, any) {
                    lines.extend(own_line(terminator));
                    ffi::pleach_join_tests(terminator);
                    converted += 1;
                }
            }
        }
        next = block.get_next_basic_block();
    }
    converted
}

/// Whether a branch can be if-converted, and that is worth it.
///
/// # Safety
/// The terminator must be alive.
unsafe fn may_convert(terminator: LLVMValueRef, any: bool) -> bool {
    let mut arms = MaybeUninit::uninit();
    // SAFETY: as the caller promises; where there are arms, they are written.
    let arms: ffi::Arms = unsafe {
        if !ffi::pleach_arms(terminator, any, &RAW_LATENCIES, arms.as_mut_ptr()) {
            return false;
        }
        arms.assume_init()
    };
    any || if_conversion_is_profitable(&Arms {
        executed: arms.executed,
        needed: arms.needed,
        selects: arms.selects,
        shared: arms.shared,
        probability: arms.probability,
        rate: (arms.rate > 0.0).then_some(arms.rate),
        chain: (arms.chain >= 0.0).then_some(arms.chain),
        results: arms.results,
    })
}

/// Whether a branch makes the first of two tests that can be joined, and that is worth it.
///
/// # Safety
/// The terminator must be alive.
unsafe fn may_join(terminator: LLVMValueRef, any: bool) -> bool {
    let mut tests = MaybeUninit::uninit();
    // SAFETY: as the caller promises; where there are tests, they are written.
    let tests: ffi::Tests = unsafe {
        if !ffi::pleach_tests(terminator, any, &RAW_LATENCIES, tests.as_mut_ptr()) {
            return false;
        }
        tests.assume_init()
    };
    any || joining_is_profitable(&Tests {
        size: tests.size,
        selects: tests.selects,
        first_succeeds: tests.first_succeeds,
        second_succeeds: tests.second_succeeds,
        rate: tests.rate,
        is_loop_carried: tests.is_loop_carried,
        results: tests.results,
    })
}
