//! Remarks about a function's superblocks.

use crate::ir::FunctionIr;
use crate::remarks;
use inkwell::values::AsValueRef;
use pleach_decide::superblock::Formation;

/// Reports how many superblocks were formed and declined. `total`: executions of all blocks of the program.
pub(super) fn explain(function: &FunctionIr<'_>, formation: &Formation, total: f64) {
    let value = function.value.as_value_ref();
    if !formation.superblocks.is_empty() {
        let gain: f64 = formation.superblocks.iter().map(|s| s.gain).sum();
        let text = format!(
            "{} superblocks formed: {} instructions copied, saving at least {:.3} % of all block executions",
            formation.superblocks.len(),
            formation.copied,
            gain / total * 100.0,
        );
        remarks::emit(value, true, "Superblocks", &text);
    }
    if formation.not_profitable + formation.too_large > 0 {
        let text = format!(
            "superblocks declined: {} with less gain than their code costs, {} beyond the limits on code size",
            formation.not_profitable, formation.too_large
        );
        remarks::emit(value, false, "SuperblocksDeclined", &text);
    }
}
