//! The start of a process: the decision of the stub library, which `LD_PRELOAD` names, whether to load the sampler, and
//! what the two libraries tell each other.
//!
//! Most short processes need no sampler. The stub is so small that such a process pays little for it, so nothing here
//! allocates, panics or formats: any of these would link much of the standard library into the stub. So would calls of
//! functions that are compiled elsewhere, which might panic, hence `#[inline]`.

#![allow(unsafe_code, reason = "the stub and the sampler call each other by pointers")]

use crate::account::{Account, Kind};
use crate::interposed;
use crate::random::Random;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::Ordering::Relaxed;

/// File name of the library that `LD_PRELOAD` names.
pub const STUB: &str = "libpleach_stub.so";
/// File name of the sampler, beside it.
pub const SAMPLER: &CStr = c"libpleach_preload.so";
/// The function of the sampler that the stub calls, of type [`Begin`].
pub const BEGIN: &CStr = c"pleach_begin";
/// The layout of [`Start`] and [`Sampler`].
pub const LAYOUT: u64 = 1;

/// The part of [`Settings`](crate::settings::Settings) on which the decision depends.
#[derive(Clone, PartialEq, Debug)]
pub struct StartSettings {
    /// See [`Settings`](crate::settings::Settings), as for all fields.
    pub overhead: f64,
    /// Whether there is a fixed period in place of the budget.
    pub has_period: bool,
    /// Makes decisions repeatable.
    pub seed: Option<u64>,
    /// CPU time that the dynamic loader takes for the stub, in nanoseconds.
    pub load_ns: u64,
    /// Seccomp filters in force in the recorder.
    pub seccomp_filters: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds when sampling ends.
    pub deadline_ns: Option<u64>,
    /// Whether ticks are taken.
    pub samples: bool,
    /// CPU time that breakpoints may take before the program has earned it; `None`: there are no breakpoints.
    pub coverage_advance_ns: Option<u64>,
    /// Bytes that the shards of all processes may have together.
    pub max_bytes: Option<u64>,
}

impl Default for StartSettings {
    fn default() -> Self {
        Self {
            overhead: 0.01,
            has_period: false,
            seed: None,
            load_ns: 0,
            seccomp_filters: 0,
            deadline_ns: None,
            samples: true,
            coverage_advance_ns: None,
            max_bytes: None,
        }
    }
}

/// A number, 0 where the text is none.
#[inline]
fn number(text: &[u8]) -> u64 {
    let digit = |value: u64, byte: &u8| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(digit.into())
    };
    text.iter().try_fold(0, digit).unwrap_or(0)
}

/// A number such as `0.01`; `None` where the text is none. Exact to some 15 digits: the standard library's function
/// would be most of the stub.
#[inline]
fn fraction(text: &[u8]) -> Option<f64> {
    let (mut value, mut scale, mut is_fraction, mut is_number) = (0u64, 1.0, false, false);
    for byte in text {
        match byte {
            b'.' if !is_fraction => is_fraction = true,
            b'0'..=b'9' if value < u64::MAX / 100 => {
                value = value * 10 + u64::from(byte - b'0');
                scale *= if is_fraction { 10.0 } else { 1.0 };
                is_number = true;
            }
            b'0'..=b'9' if is_fraction => {}
            _ => return None,
        }
    }
    is_number.then(|| value as f64 / scale)
}

impl StartSettings {
    /// Reads settings as [`Settings::from_text`](crate::settings::Settings::from_text) does.
    #[inline]
    pub fn from_text(text: &[u8]) -> Self {
        let mut settings = Self::default();
        for pair in text.split(|byte| *byte == b',') {
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
                continue;
            };
            let positive = Some(number(value)).filter(|number| *number > 0);
            match name {
                b"overhead" => settings.overhead = fraction(value).filter(|share| *share > 0.0).unwrap_or(0.01),
                b"period_ns" => settings.has_period = positive.is_some(),
                b"seed" => settings.seed = Some(number(value).max(1)),
                b"load_ns" => settings.load_ns = number(value).min(10_000_000),
                b"filters" => settings.seccomp_filters = number(value),
                b"deadline_ns" => settings.deadline_ns = Some(number(value)),
                b"samples" => settings.samples = number(value) != 0,
                b"coverage_advance_ns" => settings.coverage_advance_ns = Some(number(value)),
                b"max_bytes" => settings.max_bytes = positive,
                _ => {}
            }
        }
        settings
    }
}

/// What was decided for a process.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// Whether it takes ticks.
    pub is_chosen: bool,
    /// Whether it has breakpoints.
    pub is_covered: bool,
    /// The probability with which it was chosen.
    pub probability: f64,
    /// Whether it is the recording's first process, or cannot know.
    pub is_first: bool,
}

impl Decision {
    /// The decision without a page: whatever a process may do, it does.
    #[inline]
    pub fn without_page(settings: &StartSettings, now: impl FnOnce() -> u64) -> Self {
        let is_over = settings.deadline_ns.is_some_and(|deadline| now() > deadline);
        Self {
            is_chosen: !is_over && settings.samples,
            is_covered: !is_over && settings.coverage_advance_ns.is_some_and(|ns| ns > 0),
            probability: 1.0,
            is_first: true,
        }
    }

    /// Counts the start of a process of a kind, and decides. `now`: `CLOCK_MONOTONIC` in nanoseconds; `seed`: a random
    /// number.
    #[inline]
    pub fn new(
        page: &Account,
        kind: &Kind,
        settings: &StartSettings,
        now: impl FnOnce() -> u64,
        seed: impl FnOnce() -> u64,
    ) -> Self {
        let ordinal = page.started.fetch_add(1, Relaxed);
        let begun = kind.started.fetch_add(1, Relaxed);
        let is_over = settings.deadline_ns.is_some_and(|deadline| now() > deadline)
            || settings.max_bytes.is_some_and(|max| page.written.load(Relaxed) >= max);
        let probability = if settings.has_period || ordinal == 0 {
            1.0
        } else {
            page.probability(settings.overhead, kind, begun)
        };
        let is_lucky = || {
            probability >= 1.0
                || Random::from_seed(settings.seed.unwrap_or_else(seed), ordinal as u32).fraction() < probability
        };
        Self {
            is_chosen: !is_over && settings.samples && is_lucky(),
            is_covered: !is_over
                && settings.coverage_advance_ns.is_some_and(|advance_ns| {
                    page.affords_coverage(settings.overhead, advance_ns)
                        || page.affords_observed_start(settings.overhead, kind)
                }),
            probability,
            is_first: ordinal == 0,
        }
    }

    /// Whether the process needs the sampler.
    #[inline]
    pub fn needs_sampler(&self) -> bool {
        self.is_chosen || self.is_covered
    }
}

/// What the stub tells the sampler. All of it stays as it is until the process ends.
#[derive(Debug)]
#[repr(C)]
pub struct Start {
    /// [`LAYOUT`].
    pub layout: u64,
    /// Directory of the shards.
    pub directory: *const c_char,
    /// Text of the settings.
    pub settings: *const c_char,
    /// The page of the account; null: there is none.
    pub page: *const Account,
    /// The kind of the process; null: there is no page.
    pub kind: *const Kind,
    /// CPU time that an earlier image of the process reported, in nanoseconds.
    pub base_cpu_ns: u64,
    /// CPU time of the thread when the stub's constructor began, in nanoseconds.
    pub before_ns: u64,
    /// Offset of the sampler's word in a thread's storage from the thread pointer.
    pub thread_offset: usize,
    /// Looks up the next definition of an interposed function.
    pub next: extern "C" fn(*const c_char) -> *mut c_void,
    /// What was decided.
    pub decision: Decision,
    /// A hash of the modules that the process has at its start; 0: unknown, or there are no breakpoints.
    pub signature: u64,
}

/// What the sampler tells the stub.
#[derive(Debug)]
#[repr(C)]
pub struct Sampler {
    /// The sampler's versions of interposed functions, by [`interposed::Function`]; null: there is none.
    pub functions: [*const (); interposed::COUNT],
    /// Whether children that the process starts belong to the recording.
    pub is_recorded: extern "C" fn() -> bool,
    /// Suspends sampling before `exec`.
    pub before_exec: extern "C" fn() -> Suspended,
    /// Resumes it after `exec` has failed.
    pub after_exec: extern "C" fn(Suspended),
    /// The process ends.
    pub at_exit: extern "C" fn(),
}

// SAFETY: addresses of functions.
unsafe impl Sync for Sampler {}

/// How a thread was before `exec`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Suspended {
    /// Its real signal mask.
    pub mask: u64,
    /// Whether the mask was changed.
    pub has_mask: bool,
    /// Whether it runs in its own memory: not in a child made by `vfork`.
    pub is_own: bool,
}

/// Begins sampling in this process. Null: the process is not sampled; what it has to note for breakpoints was noted.
pub type Begin = unsafe extern "C" fn(*const Start) -> *const Sampler;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn start_settings(text: &str) -> StartSettings {
        StartSettings::from_text(text.as_bytes())
    }

    #[test]
    fn settings_are_read_as_the_sampler_reads_them() {
        let texts = [
            "",
            "engine=run-ahead,overhead=0.01,filters=2,step_ns=11515,load_ns=45818,coverage_advance_ns=60000000",
            "overhead=30.5,period_ns=7,seed=3,deadline_ns=1152921504606846976,samples=0,max_bytes=6",
            "overhead=-1,seed=x,period_ns=0,load_ns=99999999999,max_bytes=0,samples=2",
            "overhead=.5,future=1,,=,x,seed",
            "overhead=0.000000123456789012345678901234567890,filters=99999999999999999999",
            "overhead=1.2.3,coverage_advance_ns=0,samples=",
        ];
        for text in texts {
            let (all, start) = (Settings::from_text(text), start_settings(text));
            assert!((start.overhead / all.overhead - 1.0).abs() < 1e-12, "{text}: {start:?}");
            let expected = StartSettings {
                overhead: start.overhead,
                has_period: all.period_ns.is_some(),
                seed: all.seed,
                load_ns: all.load_ns,
                seccomp_filters: all.seccomp_filters,
                deadline_ns: all.deadline_ns,
                samples: all.samples,
                coverage_advance_ns: all.coverage_advance_ns,
                max_bytes: all.max_bytes,
            };
            assert_eq!(start, expected, "{text}");
        }
        for share in [1e-9, 0.001, 0.01, 1.0 / 3.0, 2.0, 1000.0] {
            let read = start_settings(&format!("overhead={share}")).overhead;
            assert!((read / share - 1.0).abs() < 1e-12, "{share}: {read}");
        }
    }

    fn decide(page: &Account, text: &str, seed: u64) -> Decision {
        let kind = page.kind(b"/bin/true");
        Decision::new(page, kind, &start_settings(text), || 1000, || seed)
    }

    #[test]
    fn the_first_process_is_chosen_and_short_ones_rarely() {
        let page = Account::default();
        let first = decide(&page, "", 1);
        assert!(first.is_first && first.is_chosen && first.probability == 1.0 && !first.is_covered);
        page.learn_start(300_000);
        let kind = page.kind(b"/bin/true");
        kind.ended.store(1, Relaxed);
        kind.cpu_ns.store(1_000_000, Relaxed);
        let chosen = (0..1600).filter(|seed| decide(&page, "", *seed).is_chosen).count();
        assert!((70..130).contains(&chosen), "{chosen} of 1600, one in 16 expected");
        assert!(decide(&page, "period_ns=5", 1).is_chosen);
        assert!(!decide(&page, "period_ns=5,samples=0", 1).needs_sampler());
        assert!(!decide(&page, "period_ns=5,deadline_ns=999", 1).needs_sampler());
        assert!(decide(&page, "period_ns=5,deadline_ns=1000", 1).is_chosen);
        page.written.store(10, Relaxed);
        assert!(!decide(&page, "period_ns=5,max_bytes=10", 1).is_chosen);
        assert!(decide(&page, "period_ns=5,max_bytes=11", 1).is_chosen);
        assert_eq!(page.started.load(Relaxed), kind.started.load(Relaxed));
    }

    #[test]
    fn a_seed_repeats_decisions() {
        let chosen = || {
            let page = Account::default();
            page.learn_start(300_000);
            page.kind(b"/bin/true").ended.store(1, Relaxed);
            (0..200)
                .map(|any| decide(&page, "seed=7", any).is_chosen)
                .collect::<Vec<_>>()
        };
        assert_eq!(chosen(), chosen());
    }

    #[test]
    fn breakpoints_need_the_sampler_while_they_are_paid() {
        let page = Account::default();
        let is_covered = || decide(&page, "samples=0,coverage_advance_ns=20", 1).is_covered;
        assert!(is_covered());
        page.coverage_ns.store(20, Relaxed);
        assert!(!is_covered());
        assert!(!decide(&page, "samples=0", 1).is_covered);
    }
}
