//! What a profile says about one block: its coverage, and the state that reports give it.

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
