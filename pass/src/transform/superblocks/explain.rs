//! Remarks about a function's superblocks.

use crate::ir::FunctionIr;
use crate::remarks::{self, Text, plural};
use crate::transform::markers::Found;
use inkwell::values::AsValueRef;
use pleach_decide::superblock::Formation;

/// Number of superblocks whose blocks are listed.
const MAX_TRACES: usize = 16;

/// Reports how many superblocks were formed and declined, and the recorded blocks of those that were formed. `total`:
/// executions of all blocks of the program.
pub(super) fn explain(function: &FunctionIr<'_>, found: &Found, formation: &Formation, total: f64) {
    let value = function.value.as_value_ref();
    if !formation.superblocks.is_empty() {
        let gain: f64 = formation.superblocks.iter().map(|s| s.gain).sum();
        let text = Text::default()
            .value("Superblocks", formation.superblocks.len())
            .text(plural(
                formation.superblocks.len(),
                " superblock formed: ",
                " superblocks formed: ",
            ))
            .value("Copied", formation.copied)
            .text(plural(formation.copied, " instruction", " instructions"))
            .text(" copied, saving at least ")
            .value("Gain", format!("{:.3}", gain / total * 100.0))
            .text(" % of all block executions");
        remarks::emit(value, true, "Superblocks", traces(text, found, formation));
    }
    if formation.not_profitable + formation.too_large > 0 {
        let text = Text::from("superblocks declined: ")
            .value("NotProfitable", formation.not_profitable)
            .text(" with less gain than their code costs, ")
            .value("TooLarge", formation.too_large)
            .text(" beyond the limits on code size");
        remarks::emit(value, false, "SuperblocksDeclined", text);
    }
}

/// Appends the blocks of superblocks: recorded ones of the function itself, not of what was inlined into it.
fn traces(mut text: Text, found: &Found, formation: &Formation) -> Text {
    let mut separator = "; blocks copied: ";
    for superblock in formation.superblocks.iter().take(MAX_TRACES) {
        let markers = superblock.trace.iter().flat_map(|block| &found.blocks[block.index()]);
        let own = markers.filter(|marker| Some(marker.instance) == found.own);
        let mut blocks: Vec<String> = own.map(|marker| marker.block.0.to_string()).collect();
        blocks.dedup();
        if !blocks.is_empty() {
            text = text.text(separator).value("Trace", blocks.join(" "));
            separator = ", ";
        }
    }
    text
}
