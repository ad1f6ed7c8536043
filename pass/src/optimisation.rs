//! The optimisations that a profile causes, and the names of single decisions.

use crate::error::PassError;
use std::fmt;
use std::str::FromStr;

/// An optimisation that the profile causes, beside branch weights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Optimisation {
    /// An unpredictable branch becomes selects.
    IfConversion,
    /// A select on a loop-carried chain becomes a branch.
    SelectToBranch,
    /// A trace is copied for one predecessor.
    Superblock,
    /// A hot function is inlined with the threshold of hot functions.
    HotCallee,
    /// A call that would make a hot function recursive is not inlined.
    CallThatStays,
    /// An indirect call is promoted.
    CallPromotion,
    /// A loop is peeled because most of its visits are short.
    Peeling,
    /// A memory operation gets code for its most frequent lengths.
    MemoryLength,
    /// A division gets code for its most frequent divisor.
    Divisor,
    /// A switch compares with its frequent cases before its table.
    Switch,
    /// A function that was never executed is optimised for size.
    Size,
    /// A function without samples is placed apart.
    Unlikely,
    /// Blocks without samples are split off, in a whole module.
    Splitting,
}

const NAMES: [(Optimisation, &str); 13] = [
    (Optimisation::IfConversion, "if-conversion"),
    (Optimisation::SelectToBranch, "select-to-branch"),
    (Optimisation::Superblock, "superblock"),
    (Optimisation::HotCallee, "hot-callee"),
    (Optimisation::CallThatStays, "call-that-stays"),
    (Optimisation::CallPromotion, "call-promotion"),
    (Optimisation::Peeling, "peeling"),
    (Optimisation::MemoryLength, "memory-length"),
    (Optimisation::Divisor, "divisor"),
    (Optimisation::Switch, "switch"),
    (Optimisation::Size, "size"),
    (Optimisation::Unlikely, "unlikely"),
    (Optimisation::Splitting, "splitting"),
];

impl fmt::Display for Optimisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES
            .iter()
            .find(|(optimisation, _)| optimisation == self)
            .map_or("", |&(_, name)| name);
        f.write_str(name)
    }
}

/// The decisions to take: `OPTIMISATION[:FUNCTION[:NUMBER]]`, or `none`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Only {
    optimisation: Option<Optimisation>,
    function: Option<String>,
    number: Option<u32>,
}

impl FromStr for Only {
    type Err = PassError;

    fn from_str(text: &str) -> Result<Self, PassError> {
        let unknown = || PassError::UnknownDecision(text.to_owned());
        if text == "none" {
            return Ok(Self {
                optimisation: None,
                function: None,
                number: None,
            });
        }
        let mut parts = text.splitn(3, ':');
        let name = parts.next().unwrap_or_default();
        let optimisation = NAMES
            .iter()
            .find(|&&(_, known)| known == name)
            .map(|&(optimisation, _)| optimisation);
        Ok(Self {
            optimisation: Some(optimisation.ok_or_else(unknown)?),
            function: parts.next().map(str::to_owned),
            number: parts.next().map(|n| n.parse().map_err(|_| unknown())).transpose()?,
        })
    }
}

impl Only {
    /// Whether a decision of this optimisation may be taken.
    pub fn may_name(&self, optimisation: Optimisation) -> bool {
        self.optimisation == Some(optimisation)
    }

    /// Whether this decision is to be taken.
    pub fn names(&self, optimisation: Optimisation, function: &str, number: u32) -> bool {
        self.optimisation == Some(optimisation)
            && self.function.as_ref().is_none_or(|only| only == function)
            && self.number.is_none_or(|only| only == number)
    }
}
