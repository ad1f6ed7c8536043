//! Which decisions a recording has enough evidence for.
//!
//! The unit of evidence is the burst, not the branch: the branches of one burst are not independent observations. Each
//! threshold follows from the cost of a decision that is wrong by chance; the model is at each constant. Several use
//! the rule of three: with 95 % probability, code that is absent from all of n independent bursts has less than 3/n of
//! all executions. Exact counts support every decision.

use pleach_profile::Provenance;

/// The share of all executions that LLVM does not regard as hot (`-profile-summary-cutoff-hot`), in percent.
const NOT_HOT_PERCENT: u64 = 1;

/// Minimum of bursts for if-conversion and select-to-branch. With fewer, a misprediction rate of one half has a Wilson
/// lower bound below the rate at which if-conversion begins to pay
/// ([`UNPREDICTABLE`](crate::weights::UNPREDICTABLE)).
pub const MIN_BURSTS_FOR_IF_CONVERSION: u64 = 10;
/// Minimum of bursts for numbers of iterations. Not derived: with fewer, most loops have been seen in one or two bursts,
/// each at one place of the program's run.
pub const MIN_BURSTS_FOR_TRIP_COUNTS: u64 = MIN_BURSTS_FOR_IF_CONVERSION;
/// Minimum of bursts for superblocks. What leaves a superblock pays for it: registers are spilled there, and values that
/// the copies no longer share are computed again. By the rule of three, a path that is absent from this many bursts is
/// not hot, so a hot one does not pay.
pub const MIN_BURSTS_FOR_SUPERBLOCKS: u64 = 3 * 100 / NOT_HOT_PERCENT;
/// Minimum of bursts for splitting off code without samples and placing it in a cold section. By the rule of three,
/// code that is absent from this many bursts is not hot.
pub const MIN_BURSTS_FOR_SPLITTING: u64 = 3 * 100 / NOT_HOT_PERCENT;
/// Minimum of bursts for optimising code without samples for size, functions and blocks. Code that is not hot still
/// runs, and may take twice its time when it is optimised for size and called instead of inlined. From this many bursts
/// on, by the rule of three, this costs less than a thousandth of the program's time. The same holds for code that
/// breakpoints prove not to have been executed: a smaller recording hardly shows all that the program is used for, and
/// what another input executes would lose more than its size gains.
pub const MIN_BURSTS_FOR_SIZE: u64 = 3 * 1000;

/// `--overhead 5%` is advised below this overhead.
pub const MORE_OVERHEAD: f64 = 0.04;

/// The evidence behind a profile, and the decisions that it supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Support {
    /// Number of bursts.
    pub bursts: u64,
    /// The counts are exact: there is no sampling error.
    pub exact: bool,
    /// The sampler took so little CPU time that more of it is an alternative to a longer recording.
    pub allows_more_overhead: bool,
}

impl Support {
    /// The support of a profile with this provenance.
    pub fn from_provenance(provenance: &Provenance) -> Self {
        Self {
            bursts: provenance.bursts,
            exact: provenance.is_exact(),
            allows_more_overhead: provenance.own_cpu_seconds < MORE_OVERHEAD * provenance.program_cpu_seconds
                || provenance.program_cpu_seconds == 0.0,
        }
    }

    /// The support of exact counts.
    pub const EXACT: Self = Self {
        bursts: 0,
        exact: true,
        allows_more_overhead: false,
    };

    /// The support of a recording with `bursts` bursts.
    pub const fn sampled(bursts: u64) -> Self {
        Self {
            bursts,
            exact: false,
            allows_more_overhead: true,
        }
    }

    fn has(&self, bursts: u64) -> bool {
        self.exact || self.bursts >= bursts
    }

    /// Whether branch weights and counts are supported.
    pub fn weights(&self) -> bool {
        self.has(1)
    }

    /// Whether if-conversion and select-to-branch are supported.
    pub fn if_conversion(&self) -> bool {
        self.has(MIN_BURSTS_FOR_IF_CONVERSION)
    }

    /// Whether loops may be peeled, unrolled and vectorised by their numbers of iterations. With fewer bursts, a loop has
    /// mostly been seen in one, and other executions of it may be longer.
    pub fn trip_counts(&self) -> bool {
        self.has(MIN_BURSTS_FOR_TRIP_COUNTS)
    }

    /// Whether superblocks may be formed.
    pub fn superblocks(&self) -> bool {
        self.has(MIN_BURSTS_FOR_SUPERBLOCKS)
    }

    /// Whether code without samples may be split off and placed in a cold section.
    pub fn splitting(&self) -> bool {
        self.has(MIN_BURSTS_FOR_SPLITTING)
    }

    /// Whether code without samples may be optimised for size.
    pub fn size(&self) -> bool {
        self.has(MIN_BURSTS_FOR_SIZE)
    }

    /// Each decision: its name, the number of bursts that it needs, and whether it is supported.
    pub fn decisions(&self) -> [(&'static str, u64, bool); 5] {
        [
            ("weights", 1),
            ("if-conversion", MIN_BURSTS_FOR_IF_CONVERSION),
            ("superblocks", MIN_BURSTS_FOR_SUPERBLOCKS),
            ("cold splitting", MIN_BURSTS_FOR_SPLITTING),
            ("size optimisation", MIN_BURSTS_FOR_SIZE),
        ]
        .map(|(name, bursts)| (name, bursts, self.has(bursts)))
    }

    /// One line: decisions that are supported, the numbers of bursts that the others need, and advice.
    pub fn summary(&self) -> String {
        if self.exact {
            return "exact counts: they support every decision".to_owned();
        }
        if !self.weights() {
            return format!("nothing was sampled: the profile has no effect; {ADVICE}");
        }
        let (supported, missing): (Vec<_>, Vec<_>) = self.decisions().into_iter().partition(|&(_, _, has)| has);
        let supported: Vec<&str> = supported.into_iter().map(|(name, ..)| name).collect();
        let needs: Vec<String> = missing
            .chunk_by(|a, b| a.1 == b.1)
            .map(|same| {
                let names: Vec<&str> = same.iter().map(|&(name, ..)| name).collect();
                let verb = if names.len() > 1 { "need" } else { "needs" };
                format!("{} {verb} {}", names.join(" and "), same[0].1)
            })
            .collect();
        let bursts = match self.bursts {
            1 => "1 burst supports".to_owned(),
            n => format!("{n} bursts support"),
        };
        let mut line = format!("{bursts} {}", supported.join(", "));
        if !needs.is_empty() {
            line += &format!("; {}", needs.join(", "));
        }
        if !self.splitting() {
            let times = times(MIN_BURSTS_FOR_SPLITTING, self.bursts);
            line += &format!("; record {times} times as long");
            if self.allows_more_overhead {
                line += ", or, where processes are short, with `--overhead 5%`";
            }
        }
        line
    }
}

/// How many times `has` is `needed`, rounded up: tenths below 10.
fn times(needed: u64, has: u64) -> String {
    match needed.saturating_mul(10).div_ceil(has.max(1)) {
        tenths @ 0..100 if tenths % 10 != 0 => format!("{}.{}", tenths / 10, tenths % 10),
        tenths => tenths.div_ceil(10).to_string(),
    }
}

/// Advice where nothing was sampled.
const ADVICE: &str = "record longer, with `--repeat 20` or `--overhead 5%`";

/// The summary of what a profile with `functions` functions supports, in one line.
pub fn support_summary(provenance: &Provenance, functions: usize) -> String {
    let support = Support::from_provenance(provenance);
    if functions == 0 && support.weights() {
        return NOT_ANNOTATED.to_owned();
    }
    support.summary()
}

/// The summary for a recording of programs without annotations.
pub const NOT_ANNOTATED: &str = "no annotated function ran: the profile has no effect; compile the program with $(pleach flags annotate), link it \
                                 without -s, and record again";

/// The 90 % interval of a share of `observations` independent observations (Wilson 1927).
pub fn wilson_interval(share: f64, observations: f64) -> (f64, f64) {
    const Z: f64 = 1.645;
    let (n, z2) = (observations, Z * Z);
    let spread = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let (middle, width) = (share + z2 / (2.0 * n), 1.0 + z2 / n);
    (
        ((middle - spread) / width).max(0.0),
        ((middle + spread) / width).min(1.0),
    )
}

/// The lower bound of [`wilson_interval`].
pub(crate) fn wilson_low(share: f64, observations: f64) -> f64 {
    wilson_interval(share, observations).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::UNPREDICTABLE;

    #[test]
    fn supported_decisions_by_number_of_bursts() {
        assert_eq!(
            Support::sampled(0).summary(),
            "nothing was sampled: the profile has no effect; record longer, with `--repeat 20` or `--overhead 5%`"
        );
        assert_eq!(
            Support::sampled(1).summary(),
            "1 burst supports weights; if-conversion needs 10, superblocks and cold splitting need 300, \
             size optimisation needs 3000; record 300 times as long, or, where processes are short, with `--overhead 5%`"
        );
        assert_eq!(
            Support::sampled(400).summary(),
            "400 bursts support weights, if-conversion, superblocks, cold splitting; size optimisation \
             needs 3000"
        );
        assert!(
            !Support::sampled(9).if_conversion()
                && Support::sampled(10).if_conversion()
                && !Support::sampled(10).superblocks()
        );
        assert_eq!(
            [233, 150, 31, 29, 1].map(|has| times(300, has)),
            ["1.3", "2", "9.7", "11", "300"]
        );
        let dense = Provenance {
            bursts: 1,
            own_cpu_seconds: 0.5,
            program_cpu_seconds: 10.0,
            ..Provenance::default()
        };
        assert!(
            Support::from_provenance(&dense)
                .summary()
                .ends_with("; record 300 times as long")
        );
        assert!(!Support::sampled(299).splitting() && Support::sampled(3000).size());
    }

    #[test]
    fn a_recording_of_programs_without_annotations_supports_nothing() {
        let sampled = Provenance {
            bursts: 400,
            ..Provenance::default()
        };
        assert_eq!(support_summary(&sampled, 0), NOT_ANNOTATED);
        assert_eq!(support_summary(&sampled, 1), Support::sampled(400).summary());
        assert_eq!(
            support_summary(&Provenance::default(), 0),
            Support::sampled(0).summary()
        );
    }

    #[test]
    fn exact_counts_support_everything() {
        let exact = Support::from_provenance(&Provenance {
            engines: vec![Provenance::EXACT_ENGINE.to_owned()],
            ..Provenance::default()
        });
        assert!(exact.weights() && exact.if_conversion() && exact.superblocks() && exact.splitting() && exact.size());
        // Exact counts merged with a recording are not exact.
        let both = Support::from_provenance(&Provenance {
            engines: vec![Provenance::EXACT_ENGINE.to_owned(), "run-ahead".to_owned()],
            ..Provenance::default()
        });
        assert!(!both.exact);
    }

    #[test]
    fn thresholds_are_what_their_models_say() {
        let low = |bursts: u64| wilson_low(0.5, bursts as f64);
        assert!(low(MIN_BURSTS_FOR_IF_CONVERSION) >= UNPREDICTABLE);
        assert!(low(MIN_BURSTS_FOR_IF_CONVERSION - 2) < UNPREDICTABLE);
        assert!(300.0 / MIN_BURSTS_FOR_SUPERBLOCKS as f64 <= NOT_HOT_PERCENT as f64);
    }
}
