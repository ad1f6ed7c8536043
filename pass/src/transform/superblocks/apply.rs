//! Duplicates blocks, so that a function gets the chosen graph.

use super::weights::{WEIGHT_SCALE, set_weights};
use crate::error::PassError;
use crate::ffi;
use crate::ir::FunctionIr;
use inkwell::values::AsValueRef;
use pleach_decide::superblock::duplicated::DuplicatedGraph;

/// Gives a function the graph of a formation, and copies their branch weights. `probabilities`: of each successor slot
/// before.
pub(super) fn duplicate_blocks(
    function: &FunctionIr<'_>,
    graph: &DuplicatedGraph,
    probabilities: &[f64],
) -> Result<(), PassError> {
    let value = function.value.as_value_ref();
    let successors: Vec<Vec<u32>> = graph
        .nodes
        .iter()
        .map(|node| node.successors.iter().map(|&s| s as u32).collect())
        .collect();
    let nodes: Vec<ffi::Node> = graph
        .nodes
        .iter()
        .zip(&successors)
        .map(|(node, successors)| ffi::Node {
            origin: node.origin.0,
            successors: successors.as_ptr(),
            count: successors.len(),
        })
        .collect();
    // SAFETY: the function belongs to the module; the nodes' successors outlive the call.
    if unsafe { !ffi::pleach_duplicate_blocks(value, nodes.as_ptr(), nodes.len()) } {
        return Err(PassError::Internal(format!(
            "the graph of {} changed while superblocks were formed",
            function.cfg.name
        )));
    }
    let copies = copies(function, graph);
    let bases = function.cfg.edge_bases();
    for (block, node) in function.value.get_basic_blocks().iter().zip(&graph.nodes) {
        let sum = node.count();
        if node.counts.len() < 2 || sum <= 0.0 || copies[node.origin.index()] == 1 {
            continue;
        }
        let before = &probabilities[bases[node.origin.index()] as usize..];
        let weight = |(&count, &before): (&f64, &f64)| {
            // An edge without samples in this copy may still be taken.
            let min = u64::from(before > 0.0);
            ((count / sum * WEIGHT_SCALE) as u64).max(min)
        };
        let weights: Vec<u64> = node.counts.iter().zip(before).map(weight).collect();
        set_weights(*block, &weights);
    }
    Ok(())
}

/// Prevents code generation from merging copies and originals again: the additional jump costs more than the saved
/// code. `min_executions`: minimum of executions of a block per instruction.
pub(super) fn prevent_tail_merge(
    function: &FunctionIr<'_>,
    graph: &DuplicatedGraph,
    counts: &[f64],
    min_executions: f64,
) {
    let blocks = function.value.get_basic_blocks();
    let copies = copies(function, graph);
    let hot: Vec<_> = blocks
        .iter()
        .zip(&graph.nodes)
        .filter(|(_, node)| {
            if copies[node.origin.index()] == 1 {
                return false;
            }
            let instructions = f64::from(function.cfg.blocks[node.origin.index()].instructions);
            let count = if node.counts.is_empty() {
                counts[node.origin.index()]
            } else {
                node.count()
            };
            count > min_executions * instructions
        })
        .map(|(block, _)| block.as_mut_ptr())
        .collect();
    // SAFETY: the blocks belong to the function.
    unsafe { ffi::pleach_prevent_tail_merge(hot.as_ptr(), hot.len()) };
}

/// The number of nodes of each block.
fn copies(function: &FunctionIr<'_>, graph: &DuplicatedGraph) -> Vec<u32> {
    let mut copies = vec![0; function.cfg.blocks.len()];
    graph.nodes.iter().for_each(|node| copies[node.origin.index()] += 1);
    copies
}
