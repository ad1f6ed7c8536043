//! Events at whose overflow branch records are read, and how processors name them.

use super::facts::{Pmu, Processor};

/// `PERF_TYPE_HARDWARE`.
const HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_TYPE_RAW`.
const RAW: u32 = 4;
/// perf's names of the kernel's general events.
const GENERAL: [(&str, u64); 8] = [
    ("cycles", 0),
    ("instructions", 1),
    ("cache-references", 2),
    ("cache-misses", 3),
    ("branches", 4),
    ("branch-misses", 5),
    ("bus-cycles", 6),
    ("ref-cycles", 9),
];

/// An event, independent of the processor that counts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Taken branches (on Arm, all branches): each path is then sampled in proportion to how often it runs.
    NearTaken,
    /// A general event of the kernel, by its number.
    General(u64),
    /// A raw event of the processor's manual, as `rHEX`.
    Raw(u64),
    /// A software event of the kernel, without branch records, for tests.
    Software(u64),
}

impl Event {
    /// Reads a name: `near_taken`, one of perf's general events, or `r` and a hexadecimal number; `:u` may follow.
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.strip_suffix(":u").unwrap_or(text);
        if name == "near_taken" {
            return Some(Self::NearTaken);
        }
        if let Some((_, position)) = GENERAL.iter().find(|(known, _)| *known == name) {
            return Some(Self::General(*position));
        }
        let digits = name.strip_prefix('r').filter(|digits| !digits.starts_with('+'))?;
        u64::from_str_radix(digits, 16).ok().map(Self::Raw)
    }

    /// The names that [`Event::parse`] takes, for messages.
    pub fn names() -> String {
        let general: Vec<&str> = GENERAL.iter().map(|(name, _)| *name).collect();
        format!("near_taken, {}, rHEX", general.join(", "))
    }

    /// The events to try, best first: the requested event, or taken branches and then cycles.
    pub fn candidates(asked: Option<Self>, processor: Processor) -> Vec<Self> {
        match asked {
            Some(event) => vec![event],
            None if processor == Processor::Other => vec![Self::General(0)],
            None => vec![Self::NearTaken, Self::General(0)],
        }
    }

    /// The name under which samples are stored: that of the processor's manual, or perf's.
    pub fn name(&self, processor: Processor) -> String {
        let name = match self {
            Self::NearTaken => match processor {
                Processor::Amd => "ex_ret_brn_tkn",
                Processor::Arm => "br_retired",
                Processor::Intel | Processor::Other => "near_taken",
            }
            .to_owned(),
            Self::General(position) => GENERAL
                .iter()
                .find(|(_, known)| known == position)
                .map_or_else(|| format!("hardware{position}"), |(name, _)| (*name).to_owned()),
            Self::Raw(config) => format!("r{config:x}"),
            Self::Software(0) => "cpu-clock".to_owned(),
            Self::Software(config) => format!("software{config}"),
        };
        name + ":u"
    }

    /// Type and configuration for the kernel; `pmu` where a machine has several kinds of cores.
    pub fn encode(&self, processor: Processor, pmu: Option<&Pmu>) -> (u32, u64) {
        let raw = |config| (pmu.map_or(RAW, |pmu| pmu.kind), config);
        match self {
            Self::NearTaken => raw(match processor {
                // BR_INST_RETIRED.NEAR_TAKEN; efficient cores have another mask.
                Processor::Intel | Processor::Other if pmu.is_some_and(|pmu| pmu.name == "cpu_atom") => 0xc0c4,
                Processor::Intel | Processor::Other => 0x20c4,
                Processor::Amd => 0xc4,
                Processor::Arm => 0x21,
            }),
            Self::General(position) => (HARDWARE, pmu.map_or(0, |pmu| u64::from(pmu.kind) << 32) | position),
            Self::Raw(config) => raw(*config),
            Self::Software(config) => (SOFTWARE, *config),
        }
    }

    /// The first period, before the rate of the event is known. It is rather too short than too long: threads keep
    /// their first period, and the gate can stop samples that are too frequent.
    pub fn first_period(&self, samples_per_second: f64) -> u64 {
        let per_second = match self {
            Self::NearTaken => 1e8,
            Self::General(0 | 1 | 9) => 2e9,
            Self::General(4) => 2e8,
            Self::General(5) => 2e6,
            Self::General(_) | Self::Raw(_) => 1e6,
            // Clocks count nanoseconds.
            Self::Software(_) => 1e9,
        };
        ((per_second / samples_per_second) as u64).max(self.least_period())
    }

    /// Minimum period. (AMD's branch sampling refuses a period below its 16 records.)
    pub fn least_period(&self) -> u64 {
        match self {
            Self::Software(_) => 20_000,
            Self::NearTaken | Self::General(0 | 1 | 4 | 9) => 1_000,
            Self::General(_) | Self::Raw(_) => 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_perf_and_of_the_manuals() {
        assert_eq!(Event::parse("near_taken"), Some(Event::NearTaken));
        assert_eq!(Event::parse("cache-misses:u"), Some(Event::General(3)));
        assert_eq!(Event::parse("r20c4"), Some(Event::Raw(0x20c4)));
        for unknown in ["", "r", "rxyz", "r+1", "cycles:k", "task-clock"] {
            assert_eq!(Event::parse(unknown), None, "{unknown}");
        }
        let names = [Processor::Intel, Processor::Amd, Processor::Arm].map(|p| Event::NearTaken.name(p));
        assert_eq!(names, ["near_taken:u", "ex_ret_brn_tkn:u", "br_retired:u"]);
        for (name, _) in GENERAL {
            assert_eq!(
                Event::parse(name).unwrap().name(Processor::Intel),
                format!("{name}:u"),
                "the stored name can be parsed"
            );
        }
    }

    #[test]
    fn processors_encode_taken_branches_each_in_their_way() {
        let pmu = |name: &str, kind| Pmu {
            name: name.to_owned(),
            kind,
            cpus: Vec::new(),
            branches: Some(32),
        };
        let taken = |processor, pmu: Option<&Pmu>| Event::NearTaken.encode(processor, pmu);
        assert_eq!(taken(Processor::Intel, None), (4, 0x20c4));
        assert_eq!(taken(Processor::Intel, Some(&pmu("cpu_core", 4))), (4, 0x20c4));
        assert_eq!(taken(Processor::Intel, Some(&pmu("cpu_atom", 10))), (10, 0xc0c4));
        assert_eq!(taken(Processor::Amd, None), (4, 0xc4));
        assert_eq!(taken(Processor::Arm, None), (4, 0x21));
        let cycles = Event::General(0);
        assert_eq!(
            cycles.encode(Processor::Intel, Some(&pmu("cpu_atom", 10))),
            (0, 10 << 32)
        );
        assert_eq!(Event::candidates(None, Processor::Other), [Event::General(0)]);
        assert_eq!(Event::candidates(Some(Event::Raw(5)), Processor::Amd), [Event::Raw(5)]);
    }
}
