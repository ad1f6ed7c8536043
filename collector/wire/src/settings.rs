//! Settings of the sampler: `key=value,key=value` in [`SETTINGS_VARIABLE`](crate::shard::SETTINGS_VARIABLE).
//!
//! The recorder writes them and the sampler reads them by one table. Keys that the reader does not know are skipped, so
//! that a recorder and a sampler of different versions work together.

use crate::kinds::Engine;
use crate::threads::ThreadFilter;

/// Longest burst, in taken branches.
pub const MAX_BURST: u64 = 4096;

/// The settings that the recorder passes to the sampler.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// [`Engine::RunAhead`] or [`Engine::Step`].
    pub engine: Engine,
    /// CPU time that sampling may take, as a fraction of the program's.
    pub overhead: f64,
    /// A fixed mean CPU time between bursts in nanoseconds, in place of the budget.
    pub period_ns: Option<u64>,
    /// Whether all periods are equal, in place of random ones. Bursts then fall into step with loops of that period.
    pub has_equal_periods: bool,
    /// Taken branches of a burst, in place of the engine's own length.
    pub burst: Option<u64>,
    /// Makes the sequence of periods repeatable.
    pub seed: Option<u64>,
    /// First guess of the cost of a step, in nanoseconds.
    pub step_ns: u64,
    /// CPU time of a signal's delivery beyond its handler, in nanoseconds.
    pub signal_ns: u64,
    /// CPU time of `int3`, a software breakpoint, and of its signal's delivery beyond the handler, in nanoseconds.
    pub int3_ns: u64,
    /// Cost of passing a hardware breakpoint, in nanoseconds; 0: bursts are not timed.
    pub trap_ns: u64,
    /// Cost of its signal beyond `trap_ns`, its handler included, in nanoseconds.
    pub trap_signal_ns: u64,
    /// CPU time that the dynamic loader takes for the stub, in nanoseconds.
    pub load_ns: u64,
    /// CPU time that the sampler adds to a `fork`, in the process and in a child without ticks, in nanoseconds.
    pub fork_ns: u64,
    /// Seccomp filters in force in the recorder.
    pub seccomp_filters: u64,
    /// Tick by CPU timers even where perf events work.
    pub timer_only: bool,
    /// Compare shadow bursts with the program's real execution.
    pub verify: bool,
    /// `CLOCK_MONOTONIC` in nanoseconds when sampling ends.
    pub deadline_ns: Option<u64>,
    /// Whether ticks are taken; without them, only breakpoints observe the program.
    pub samples: bool,
    /// CPU time that breakpoints may take before the program has earned it, in nanoseconds, by all processes together;
    /// `None`: there are no breakpoints.
    pub coverage_advance_ns: Option<u64>,
    /// Bytes that the shards of all processes may have together; sampling ends with them. `None`: any number.
    pub max_bytes: Option<u64>,
    /// Which threads are sampled.
    pub threads: ThreadFilter,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            engine: Engine::Step,
            overhead: 0.01,
            period_ns: None,
            has_equal_periods: false,
            burst: None,
            seed: None,
            step_ns: 5_000,
            signal_ns: 2_000,
            int3_ns: 3_000,
            trap_ns: 0,
            trap_signal_ns: 0,
            load_ns: 0,
            fork_ns: 0,
            seccomp_filters: 0,
            timer_only: false,
            verify: false,
            deadline_ns: None,
            samples: true,
            coverage_advance_ns: None,
            max_bytes: None,
            threads: ThreadFilter::ALL,
        }
    }
}

/// A key: its name, a function that formats its value if it has one, and a function that reads a value.
struct Key {
    name: &'static str,
    get: fn(&Settings) -> Option<String>,
    set: fn(&mut Settings, &str),
}

/// A number, 0 where the text is none.
fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// Every key. Values are limited where the sampler could not work with others.
static KEYS: [Key; 21] = [
    Key {
        name: "threads",
        get: |s| s.threads.to_text(),
        set: |s, text| s.threads = ThreadFilter::from_text(text),
    },
    Key {
        name: "engine",
        get: |s| Some(s.engine.name().to_owned()),
        set: |s, text| {
            s.engine = if text == Engine::RunAhead.name() {
                Engine::RunAhead
            } else {
                Engine::Step
            }
        },
    },
    Key {
        name: "overhead",
        get: |s| Some(s.overhead.to_string()),
        set: |s, text| s.overhead = text.parse().ok().filter(|share| *share > 0.0).unwrap_or(0.01),
    },
    Key {
        name: "filters",
        get: |s| Some(s.seccomp_filters.to_string()),
        set: |s, text| s.seccomp_filters = number(text),
    },
    Key {
        name: "step_ns",
        get: |s| Some(s.step_ns.to_string()),
        set: |s, text| s.step_ns = number(text).clamp(100, 1_000_000),
    },
    Key {
        name: "signal_ns",
        get: |s| Some(s.signal_ns.to_string()),
        set: |s, text| s.signal_ns = number(text).clamp(100, 1_000_000),
    },
    Key {
        name: "int3_ns",
        get: |s| Some(s.int3_ns.to_string()),
        set: |s, text| s.int3_ns = number(text).clamp(100, 1_000_000),
    },
    Key {
        name: "load_ns",
        get: |s| Some(s.load_ns.to_string()),
        set: |s, text| s.load_ns = number(text).min(10_000_000),
    },
    Key {
        name: "fork_ns",
        get: |s| (s.fork_ns > 0).then(|| s.fork_ns.to_string()),
        set: |s, text| s.fork_ns = number(text).min(1_000_000),
    },
    Key {
        name: "trap_ns",
        get: |s| (s.trap_ns > 0).then(|| s.trap_ns.to_string()),
        set: |s, text| s.trap_ns = number(text).min(1_000_000),
    },
    Key {
        name: "trap_signal_ns",
        get: |s| (s.trap_ns > 0).then(|| s.trap_signal_ns.to_string()),
        set: |s, text| s.trap_signal_ns = number(text).min(1_000_000),
    },
    Key {
        name: "verify",
        get: |s| s.verify.then(|| "1".to_owned()),
        set: |s, text| s.verify = number(text) != 0,
    },
    Key {
        name: "deadline_ns",
        get: |s| s.deadline_ns.map(|ns| ns.to_string()),
        set: |s, text| s.deadline_ns = Some(number(text)),
    },
    Key {
        name: "period_ns",
        get: |s| s.period_ns.map(|ns| ns.to_string()),
        set: |s, text| s.period_ns = Some(number(text)).filter(|ns| *ns > 0),
    },
    Key {
        name: "equal_periods",
        get: |s| s.has_equal_periods.then(|| "1".to_owned()),
        set: |s, text| s.has_equal_periods = number(text) != 0,
    },
    Key {
        name: "burst",
        get: |s| s.burst.map(|branches| branches.to_string()),
        set: |s, text| s.burst = Some(number(text).clamp(1, MAX_BURST)),
    },
    Key {
        name: "seed",
        get: |s| s.seed.map(|seed| seed.to_string()),
        set: |s, text| s.seed = Some(number(text).max(1)),
    },
    Key {
        name: "samples",
        get: |s| (!s.samples).then(|| "0".to_owned()),
        set: |s, text| s.samples = number(text) != 0,
    },
    Key {
        name: "coverage_advance_ns",
        get: |s| s.coverage_advance_ns.map(|ns| ns.to_string()),
        set: |s, text| s.coverage_advance_ns = Some(number(text)),
    },
    Key {
        name: "max_bytes",
        get: |s| s.max_bytes.map(|bytes| bytes.to_string()),
        set: |s, text| s.max_bytes = Some(number(text)).filter(|bytes| *bytes > 0),
    },
    Key {
        name: "tick",
        get: |s| s.timer_only.then(|| "timer".to_owned()),
        set: |s, text| s.timer_only = text == "timer",
    },
];

impl Settings {
    /// The text that [`Settings::from_text`] reads.
    pub fn to_text(&self) -> String {
        let pairs = KEYS
            .iter()
            .filter_map(|key| Some(format!("{}={}", key.name, (key.get)(self)?)));
        pairs.collect::<Vec<_>>().join(",")
    }

    /// Reads settings; keys that the text does not name keep their defaults. Allocates nothing.
    pub fn from_text(text: &str) -> Self {
        let mut settings = Self::default();
        for (name, value) in text.split(',').filter_map(|pair| pair.split_once('=')) {
            if let Some(key) = KEYS.iter().find(|key| key.name == name) {
                (key.set)(&mut settings, value);
            }
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let all = Settings {
            engine: Engine::RunAhead,
            overhead: 30.5,
            period_ns: Some(7),
            has_equal_periods: true,
            burst: Some(9),
            seed: Some(3),
            step_ns: 101,
            signal_ns: 102,
            int3_ns: 106,
            trap_ns: 103,
            trap_signal_ns: 104,
            load_ns: 105,
            fork_ns: 107,
            seccomp_filters: 2,
            timer_only: true,
            verify: true,
            deadline_ns: Some(1 << 60),
            samples: false,
            coverage_advance_ns: Some(5),
            max_bytes: Some(6),
            threads: ThreadFilter::new(false, ["worker", "12"].into_iter()).unwrap(),
        };
        assert_eq!(Settings::from_text(&all.to_text()), all);
        assert_eq!(Settings::from_text(&Settings::default().to_text()), Settings::default());
    }

    #[test]
    fn unknown_keys_and_senseless_values_do_no_harm() {
        assert_eq!(Settings::from_text("future=1,,=,x"), Settings::default());
        let odd = Settings::from_text("overhead=-1,burst=999999,step_ns=0,engine=magic,seed=x");
        assert_eq!((odd.overhead, odd.burst, odd.step_ns), (0.01, Some(MAX_BURST), 100));
        assert_eq!((odd.engine, odd.seed), (Engine::Step, Some(1)));
    }
}
