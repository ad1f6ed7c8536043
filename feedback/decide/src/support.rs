//! Which decisions a recording has enough evidence for.
//!
//! The unit of evidence is the burst, not the branch: the branches of one burst are not independent observations. Each
//! threshold follows from what a decision loses where the recording is wrong by chance; the models are at the constants.
//! Exact counts support every decision.

use crate::coldness::{ENOUGH_BURSTS, ENOUGH_TO_SHRINK};
use pleach_profile::Provenance;

/// Bursts from which on branches are if-converted and selects become branches. With fewer, a misprediction rate of one
/// half has a Wilson lower bound below the rate at which a select begins to pay
/// ([`UNPREDICTABLE`](crate::weights::UNPREDICTABLE)).
pub const MIN_BURSTS_FOR_SELECTS: u64 = 10;
/// Bursts from which on superblocks are formed: a path that none of so many bursts shows has less than a tenth of all
/// executions with 95 % probability (the rule of three), so that the duplicated path is not the rarer one.
pub const MIN_BURSTS_FOR_SUPERBLOCKS: u64 = 30;
/// Bursts from which on code that was never sampled is split off and placed apart: see [`ENOUGH_BURSTS`].
pub const MIN_BURSTS_FOR_SPLITTING: u64 = ENOUGH_BURSTS;
/// Bursts from which on functions that were never sampled are optimised for size: see [`ENOUGH_TO_SHRINK`].
pub const MIN_BURSTS_FOR_SIZE: u64 = ENOUGH_TO_SHRINK;

/// What a profile rests on, and what it supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Support {
    /// Bursts.
    pub bursts: u64,
    /// Everything was counted, so that there is no sampling error.
    pub exact: bool,
}

impl Support {
    /// The support that a profile with this provenance has.
    pub fn of(provenance: &Provenance) -> Self {
        Self {
            bursts: provenance.bursts,
            exact: provenance.is_exact(),
        }
    }

    /// The support of exact counts.
    pub const EXACT: Self = Self { bursts: 0, exact: true };

    /// The support of one recording with so many bursts.
    pub const fn sampled(bursts: u64) -> Self {
        Self { bursts, exact: false }
    }

    fn has(&self, bursts: u64) -> bool {
        self.exact || self.bursts >= bursts
    }

    /// Whether branch weights and counts are supported.
    pub fn weights(&self) -> bool {
        self.has(1)
    }

    /// Whether branches may become selects, and selects branches.
    pub fn selects(&self) -> bool {
        self.has(MIN_BURSTS_FOR_SELECTS)
    }

    /// Whether superblocks may be formed.
    pub fn superblocks(&self) -> bool {
        self.has(MIN_BURSTS_FOR_SUPERBLOCKS)
    }

    /// Whether code that was never sampled may be split off, placed apart and treated as cold.
    pub fn splitting(&self) -> bool {
        self.has(MIN_BURSTS_FOR_SPLITTING)
    }

    /// Whether functions that were never sampled may be optimised for size.
    pub fn size(&self) -> bool {
        self.has(MIN_BURSTS_FOR_SIZE)
    }

    /// The verdict in one line: what is supported, what is not, and what to do about it.
    pub fn verdict(&self) -> String {
        if self.exact {
            return "exact counts: they support every decision".to_owned();
        }
        if !self.weights() {
            return format!("nothing was sampled: the profile has no effect; {ADVICE}");
        }
        let decisions = [
            ("weights", 1),
            ("if-conversion", MIN_BURSTS_FOR_SELECTS),
            ("superblocks", MIN_BURSTS_FOR_SUPERBLOCKS),
            ("cold splitting", MIN_BURSTS_FOR_SPLITTING),
            ("size optimisation", MIN_BURSTS_FOR_SIZE),
        ];
        let (supported, missing): (Vec<_>, Vec<_>) = decisions.into_iter().partition(|&(_, bursts)| self.has(bursts));
        let supported: Vec<&str> = supported.into_iter().map(|(name, _)| name).collect();
        let missing: Vec<String> = missing
            .into_iter()
            .map(|(name, bursts)| format!("{name} (from {bursts} bursts)"))
            .collect();
        let bursts = match self.bursts {
            1 => "1 burst supports".to_owned(),
            n => format!("{n} bursts support"),
        };
        let mut line = format!("{bursts} {}", supported.join(", "));
        if !missing.is_empty() {
            line += &format!(", not {}", missing.join(", "));
        }
        if !self.splitting() {
            line += &format!("; {ADVICE}");
        }
        line
    }
}

/// What to do about a small recording.
const ADVICE: &str = "record longer, with `--repeat 20` or `--overhead 5%`";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::UNPREDICTABLE;

    /// The lower end of the 90 % interval of a share of so many independent observations (Wilson 1927).
    fn wilson_low(share: f64, observations: f64) -> f64 {
        const Z: f64 = 1.645;
        let (n, z2) = (observations, Z * Z);
        let spread = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
        ((share + z2 / (2.0 * n) - spread) / (1.0 + z2 / n)).max(0.0)
    }

    #[test]
    fn what_so_many_bursts_support() {
        assert_eq!(
            Support::sampled(0).verdict(),
            "nothing was sampled: the profile has no effect; record longer, with `--repeat 20` or `--overhead 5%`"
        );
        assert_eq!(
            Support::sampled(1).verdict(),
            "1 burst supports weights, not if-conversion (from 10 bursts), superblocks (from 30 bursts), cold splitting (from 300 bursts), \
             size optimisation (from 3000 bursts); record longer, with `--repeat 20` or `--overhead 5%`"
        );
        assert_eq!(
            Support::sampled(400).verdict(),
            "400 bursts support weights, if-conversion, superblocks, cold splitting, not size optimisation (from 3000 bursts)"
        );
        assert!(
            !Support::sampled(9).selects() && Support::sampled(10).selects() && !Support::sampled(10).superblocks()
        );
        assert!(!Support::sampled(299).splitting() && Support::sampled(3000).size());
    }

    #[test]
    fn exact_counts_support_everything() {
        let exact = Support::of(&Provenance {
            engines: vec![Provenance::EXACT_ENGINE.to_owned()],
            ..Provenance::default()
        });
        assert!(exact.weights() && exact.selects() && exact.superblocks() && exact.splitting() && exact.size());
        // With a recording beside them, they are no longer.
        let both = Support::of(&Provenance {
            engines: vec![Provenance::EXACT_ENGINE.to_owned(), "run-ahead".to_owned()],
            ..Provenance::default()
        });
        assert!(!both.exact);
    }

    #[test]
    fn thresholds_are_what_their_models_say() {
        let low = |bursts: u64| wilson_low(0.5, bursts as f64);
        assert!(low(MIN_BURSTS_FOR_SELECTS) >= UNPREDICTABLE);
        assert!(low(MIN_BURSTS_FOR_SELECTS - 2) < UNPREDICTABLE);
        assert!(3.0 / MIN_BURSTS_FOR_SUPERBLOCKS as f64 <= 0.1);
    }
}
