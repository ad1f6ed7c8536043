//! Checks a function whose blocks were duplicated, independently of the code that duplicated them. For tests.

use crate::error::PassError;
use crate::ir::frequencies::Frequencies;
use crate::ir::{self, FunctionIr, ModuleFacts};
use inkwell::llvm_sys::analysis::{LLVMVerifierFailureAction, LLVMVerifyFunction};
use inkwell::values::AsValueRef;
use pleach_annotate::id::BlockIndex;
use pleach_decide::superblock::check::{Counts, check_flow};
use pleach_decide::superblock::duplicated::DuplicatedGraph;

/// Checks that the function has its former graph except for copies, and that flow is conserved.
pub(super) fn flow(
    function: &FunctionIr<'_>,
    facts: &mut ModuleFacts,
    graph: &DuplicatedGraph,
    frequencies: &Frequencies,
) -> Result<(), PassError> {
    let before = DuplicatedGraph::new(&function.cfg, &frequencies.counts, &frequencies.probabilities);
    let now = ir::read(function.value, facts);
    let origins: Vec<BlockIndex> = graph.nodes.iter().map(|node| node.origin).collect();
    let (blocks_before, edges_before) = executions(&before);
    let (blocks_after, edges_after) = executions(graph);
    let before = Counts {
        blocks: &blocks_before,
        edges: &edges_before,
    };
    let after = Counts {
        blocks: &blocks_after,
        edges: &edges_after,
    };
    check_flow(&function.cfg, &now.cfg, &origins, before, after)
        .map_err(|e| PassError::Internal(format!("{}: {e}", function.cfg.name)))
}

/// Runs LLVM's verifier.
pub(super) fn well_formed(function: &FunctionIr<'_>) -> Result<(), PassError> {
    let (value, action) = (
        function.value.as_value_ref(),
        LLVMVerifierFailureAction::LLVMPrintMessageAction,
    );
    // SAFETY: the function belongs to a module that is alive.
    if unsafe { LLVMVerifyFunction(value, action) } != 0 {
        return Err(PassError::Internal(format!(
            "{} is malformed after duplication",
            function.cfg.name
        )));
    }
    Ok(())
}

/// Executions of each node and of each slot.
fn executions(graph: &DuplicatedGraph) -> (Vec<f64>, Vec<f64>) {
    let mut entered = vec![0.0; graph.nodes.len()];
    for node in &graph.nodes {
        for (&to, count) in node.successors.iter().zip(&node.counts) {
            entered[to] += count;
        }
    }
    let blocks = graph.nodes.iter().zip(&entered);
    let blocks = blocks.map(|(node, &entered)| if node.counts.is_empty() { entered } else { node.count() });
    let edges = graph.nodes.iter().flat_map(|node| node.counts.iter().copied());
    (blocks.collect(), edges.collect())
}
