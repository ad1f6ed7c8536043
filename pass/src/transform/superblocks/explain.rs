//! Remarks about a function's superblocks.

use crate::ir::FunctionIr;
use crate::remarks;
use inkwell::values::AsValueRef;
use pleach_decide::superblock::Formation;

/// Reports which superblocks were formed, and how many were declined. `total`: executions of all blocks of the program.
pub(super) fn explain(function: &FunctionIr<'_>, formation: &Formation, total: f64) {
    let value = function.value.as_value_ref();
    if !formation.superblocks.is_empty() {
        let gain: f64 = formation.superblocks.iter().map(|s| s.gain).sum();
        let text = format!(
            "{} superblocks formed: {} instructions copied, which save {:.3} % of all block executions at least",
            formation.superblocks.len(),
            formation.copied,
            gain / total * 100.0,
        );
        remarks::emit(value, true, "Superblocks", &text);
    }
    if formation.not_profitable + formation.too_large > 0 {
        let text = format!(
            "{} jumps into joins would save too little for their code, {} would need more code than allowed",
            formation.not_profitable, formation.too_large
        );
        remarks::emit(value, false, "SuperblocksDeclined", &text);
    }
}
