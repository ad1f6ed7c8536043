//! The optimisations that a profile causes, and the names of single decisions.

use crate::error::PassError;
use std::fmt;
use std::str::FromStr;

/// An optimisation that the profile causes, beside branch weights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lever {
    /// An unpredictable branch becomes selects.
    IfConversion,
    /// A select on a loop-carried chain becomes a branch.
    SelectToBranch,
    /// A trace is copied for one predecessor.
    Superblock,
    /// A hot function is inlined with the threshold of hot functions.
    HotCallee,
    /// An indirect call is promoted.
    CallPromotion,
    /// A function that was never executed is optimised for size.
    Size,
    /// A function without samples is placed apart.
    Unlikely,
    /// Blocks without samples are split off, in a whole module.
    Splitting,
}

const NAMES: [(Lever, &str); 8] = [
    (Lever::IfConversion, "if-conversion"),
    (Lever::SelectToBranch, "select-to-branch"),
    (Lever::Superblock, "superblock"),
    (Lever::HotCallee, "hot-callee"),
    (Lever::CallPromotion, "call-promotion"),
    (Lever::Size, "size"),
    (Lever::Unlikely, "unlikely"),
    (Lever::Splitting, "splitting"),
];

impl fmt::Display for Lever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES
            .iter()
            .find(|(lever, _)| lever == self)
            .map_or("", |&(_, name)| name);
        f.write_str(name)
    }
}

/// The decisions to take: `LEVER[:FUNCTION[:NUMBER]]`, or `none`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Only {
    lever: Option<Lever>,
    function: Option<String>,
    number: Option<u32>,
}

impl FromStr for Only {
    type Err = PassError;

    fn from_str(text: &str) -> Result<Self, PassError> {
        let unknown = || PassError::UnknownDecision(text.to_owned());
        if text == "none" {
            return Ok(Self {
                lever: None,
                function: None,
                number: None,
            });
        }
        let mut parts = text.splitn(3, ':');
        let name = parts.next().unwrap_or_default();
        let lever = NAMES.iter().find(|&&(_, known)| known == name).map(|&(lever, _)| lever);
        Ok(Self {
            lever: Some(lever.ok_or_else(unknown)?),
            function: parts.next().map(str::to_owned),
            number: parts.next().map(|n| n.parse().map_err(|_| unknown())).transpose()?,
        })
    }
}

impl Only {
    /// Whether a decision of this lever may be taken.
    pub fn may_name(&self, lever: Lever) -> bool {
        self.lever == Some(lever)
    }

    /// Whether this decision is to be taken.
    pub fn names(&self, lever: Lever, function: &str, number: u32) -> bool {
        self.lever == Some(lever)
            && self.function.as_ref().is_none_or(|only| only == function)
            && self.number.is_none_or(|only| only == number)
    }
}
