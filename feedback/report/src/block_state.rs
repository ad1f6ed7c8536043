//! What a profile says about one block: its coverage, its executions, and the state that reports give it.

use pleach_profile::{Covered, FunctionProfile};
use serde::Serialize;

/// The three states of a block, a line or a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Executed.
    Executed,
    /// Proved not to have been executed.
    NotExecuted,
    /// Neither is known.
    Unknown,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Executed, Self::NotExecuted, Self::Unknown];

    /// The state of a block. `predicted`: whether predicted blocks count as executed; otherwise they are unknown.
    pub fn new(covered: Covered, predicted: bool) -> Self {
        match covered {
            Covered::Proved | Covered::Hit | Covered::ByDominance => Self::Executed,
            Covered::Predicted | Covered::PredictedByDominance if predicted => Self::Executed,
            Covered::Predicted | Covered::PredictedByDominance => Self::Unknown,
            Covered::CodeNotExecuted | Covered::Unknown => Self::Unknown,
            Covered::NotExecuted => Self::NotExecuted,
        }
    }

    /// The state of a whole with parts in these states: executed if any part was, not executed if no part was.
    pub fn of_whole(parts: impl IntoIterator<Item = Self>) -> Self {
        let whole = parts.into_iter().reduce(|a, b| match (a, b) {
            (Self::Executed, _) | (_, Self::Executed) => Self::Executed,
            (Self::NotExecuted, Self::NotExecuted) => Self::NotExecuted,
            _ => Self::Unknown,
        });
        whole.unwrap_or(Self::Unknown)
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::NotExecuted => "not executed",
            Self::Unknown => "unknown",
        }
    }
}

/// The coverage of a block.
pub(super) fn covered(function: &FunctionProfile, block: usize) -> Covered {
    function.coverage.get(block).copied().unwrap_or_default()
}

/// Executions of a block: the estimate, or the number that breakpoints counted if that is larger. At least 1 for a
/// block that was executed, whose estimate may be 0; 0 for a block that was not, whatever inference assigned to it.
pub(super) fn executions(function: &FunctionProfile, block: usize) -> u64 {
    let estimate = function.blocks.get(block).copied().unwrap_or(0);
    let counted = function.counted.get(block).map_or(0, |counted| counted.at_least);
    let count = estimate.max(counted);
    match covered(function, block) {
        Covered::NotExecuted => 0,
        state => count.max(u64::from(state.is_executed())),
    }
}
