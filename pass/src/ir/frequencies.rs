//! Block frequencies, as LLVM computes them from branch weights.

use crate::ffi;
use crate::ir::FunctionIr;
use inkwell::values::AsValueRef;

/// Executions and probabilities, derived from branch weights.
pub struct Frequencies {
    /// Executions of each block.
    pub counts: Vec<f64>,
    /// Probability of each successor slot.
    pub probabilities: Vec<f64>,
}

impl Frequencies {
    /// Asks LLVM for a function's frequencies; `None` if it has no entry count.
    pub fn from_weights(function: &FunctionIr<'_>) -> Option<Self> {
        let blocks = function.cfg.blocks.len();
        let (mut counts, mut probabilities) = (vec![0.0; blocks], vec![0.0; function.cfg.edge_count()]);
        // SAFETY: the function belongs to a module that is alive; the vectors have an element per block and per slot.
        let known = unsafe {
            ffi::pleach_frequencies(
                function.value.as_value_ref(),
                counts.as_mut_ptr(),
                probabilities.as_mut_ptr(),
            )
        };
        known.then_some(Self { counts, probabilities })
    }
}
