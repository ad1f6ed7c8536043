//! How often something was executed, according to a profile. A sampled profile has shares: the number of bursts depends
//! on the budget of the recording, not on the speed of the program, so its counts are in no unit. It knows executions
//! only where breakpoints counted them. Imported exact counts are executions.

use super::block_state::covered;
use super::tables::{abbreviated, grouped, percent};
use pleach_profile::{Covered, FunctionProfile, Profile};
use serde::Serialize;

/// How often a block, a line or a function was executed.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Frequency {
    /// Estimated share of the executions of all blocks of the program.
    pub share: f64,
    /// Executions that are proved: counted by breakpoints, or exactly. At least 1 for a block that was executed.
    pub at_least: u64,
    /// Whether there were no more than those.
    pub is_exact: bool,
}

impl Frequency {
    /// For people: executions if they are known, else the share, else the proved executions.
    pub fn to_text(self) -> String {
        match self {
            Self {
                is_exact: true,
                at_least,
                ..
            } => grouped(at_least),
            Self { share, .. } if share >= 5e-5 => percent(share),
            Self { share, .. } if share > 0.0 => "<0.01 %".to_owned(),
            Self { at_least, .. } => format!("≥{}", grouped(at_least)),
        }
    }

    /// The same in at most seven columns.
    pub fn to_short_text(self) -> String {
        match self {
            Self {
                is_exact: true,
                at_least,
                ..
            } => abbreviated(at_least),
            Self { share, .. } if share >= 5e-5 => format!("{:.2}%", share * 100.0),
            Self { share, .. } if share > 0.0 => "<.01%".to_owned(),
            Self { at_least, .. } => format!("≥{}", abbreviated(at_least)),
        }
    }

    /// The frequency of the most frequent of several.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            share: self.share.max(other.share),
            at_least: self.at_least.max(other.at_least),
            is_exact: self.is_exact && other.is_exact,
        }
    }
}

impl std::ops::Add for Frequency {
    type Output = Self;

    /// The frequency of either of two.
    fn add(self, other: Self) -> Self {
        Self {
            share: self.share + other.share,
            at_least: self.at_least.saturating_add(other.at_least),
            is_exact: self.is_exact && other.is_exact,
        }
    }
}

/// The unit of a profile's counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Unit {
    /// Whether counts are executions.
    pub is_exact: bool,
    /// Executions of all blocks, in the profile's counts.
    pub all: f64,
}

impl Unit {
    /// The unit of a profile.
    pub fn from_profile(profile: &Profile) -> Self {
        let blocks = profile.functions.iter().flat_map(|f| &f.blocks);
        Self {
            is_exact: profile.provenance.is_exact(),
            all: blocks.fold(0.0, |sum, &count| sum + count as f64),
        }
    }

    /// How often a block was executed: never, if that is proved, whatever inference assigned to it.
    pub fn frequency(&self, function: &FunctionProfile, block: usize) -> Frequency {
        let state = covered(function, block);
        if state == Covered::NotExecuted {
            return Frequency {
                is_exact: true,
                ..Frequency::default()
            };
        }
        let count = function.blocks.get(block).copied().unwrap_or(0);
        let counted = function.counted.get(block).map_or(0, |counted| counted.at_least);
        let known = if self.is_exact { counted.max(count) } else { counted };
        Frequency {
            share: if self.all > 0.0 { count as f64 / self.all } else { 0.0 },
            at_least: known.max(u64::from(state.is_executed())),
            is_exact: self.is_exact,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_profile::{Executions, Provenance};

    fn profile(engine: &str) -> Profile {
        let counted = |at_least| Executions {
            at_least,
            at_most: None,
        };
        Profile {
            provenance: Provenance {
                engines: vec![engine.to_owned()],
                ..Provenance::default()
            },
            functions: vec![FunctionProfile {
                blocks: vec![2_000_000, 50, 0, 7],
                coverage: vec![Covered::Proved, Covered::Proved, Covered::Hit, Covered::NotExecuted],
                counted: [0, 3, 20, 0].map(counted).to_vec(),
                ..FunctionProfile::default()
            }],
            ..Profile::default()
        }
    }

    fn texts(profile: &Profile, text: fn(Frequency) -> String) -> String {
        let unit = Unit::from_profile(profile);
        let all = (0..4).map(|block| text(unit.frequency(&profile.functions[0], block)));
        all.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn samples_are_shares_and_exact_counts_are_executions() {
        let sampled = profile("run-ahead");
        assert_eq!(texts(&sampled, Frequency::to_text), "100.00 % | <0.01 % | ≥20 | 0");
        assert_eq!(texts(&sampled, Frequency::to_short_text), "100.00% | <.01% | ≥20 | 0");
        let exact = profile(Provenance::EXACT_ENGINE);
        assert_eq!(texts(&exact, Frequency::to_text), "2 000 000 | 50 | 20 | 0");
        assert_eq!(texts(&exact, Frequency::to_short_text), "2.00M | 50 | 20 | 0");
    }

    #[test]
    fn the_most_frequent_of_several() {
        let sampled = profile("step");
        let unit = Unit::from_profile(&sampled);
        let of = |block| unit.frequency(&sampled.functions[0], block);
        let line = of(1).max(of(2));
        assert_eq!((line.at_least, line.is_exact), (20, false));
        assert!(line.share > 0.0);
    }
}
