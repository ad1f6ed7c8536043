//! The account of a recording: a page that all its processes share, and the decisions that are made with it.
//!
//! The recorder makes the file [`FILE`] in the directory of the shards, and each process maps it. It holds what was
//! learned of costs, and what program and sampler have used so far, so that a process starts with what those before it
//! learned, and the budget is kept by all processes together. Any process may write anything there: readers limit all
//! values, and a process without the page decides by what it knows itself.
//!
//! Nothing here allocates or panics: it runs in signal handlers. What is `#[inline]` is for the stub: calls of functions that
//! are compiled elsewhere would make it expect panics, and link the code for them.

use crate::forked;
use crate::settings::MAX_BURST;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Name of the file, beside the shards.
pub const FILE: &core::ffi::CStr = c"account";
/// Size of the file.
pub const SIZE: usize = 8192;
/// First word of the page: its layout. A process ignores a page of another layout.
pub const LAYOUT: u64 = 0x3850_4343_4148_4c50;

/// Number of kinds of processes; a hash of the executable's name selects one.
const KINDS: usize = 64;
/// Processes that can be in `execve` at the same time.
const HANDOVERS: usize = 64;
/// Sets of modules that are remembered, at most, and slots in which one may be.
const MODULE_SETS: usize = 20;
const PROBES: usize = 4;
/// Modules without anything to observe that are remembered, at most.
const REMEMBERED_MODULES: usize = 128;
/// Processes of a kind that are sampled before the first of them has ended.
const UNKNOWN_STARTS: u64 = 8;
/// Share of the budget that starts of sampled processes may take: more of it samples more processes, each with fewer
/// bursts. In two-stage sampling the number of independent bursts that a recording is worth is proportional to
/// (1 − x) ÷ (1 − ρ + ρ k (1 − x) ÷ x) for a share x, where ρ is how alike bursts of one process are, and k the cost of
/// a start in bursts, times one plus the squared coefficient of variation of the processes' lengths. For k from 1 to 3
/// and ρ from .05 to .3, the best x is between .2 and .5; where a few processes are much longer than the others, k is
/// above that, and a small share means that chance decides whether a long one is sampled at all.
const START_SHARE: f64 = 0.3;
/// Cost of sampling a forked child from its start on, until one was measured.
const FORKED_START_NS: f64 = 100_000.0;
/// Share of the budget that breakpoints may take beyond their advance.
const COVERAGE_SHARE: f64 = 0.1;
/// Share of the breakpoints' advance that counting of hits may take.
const COUNTING_SHARE: f64 = 0.125;
/// Share of the budget that starts of processes with breakpoints may take where that of breakpoints is spent.
const OBSERVED_START_SHARE: f64 = 0.5;
/// CPU time of the program over which the time that breakpoints took, most of it at the start, is paid back: recordings
/// of ten seconds, the shortest that support most decisions, keep most of their bursts.
const COVERAGE_HORIZON_NS: f64 = 30e9;
/// Minimum probability of being sampled: a longer process than expected takes the inverse of it times the budget, until
/// the account slows it down.
pub const MIN_PROBABILITY: f64 = 1.0 / 16.0;
/// CPU time of the program over which a deviation from the budget is corrected, at least.
const HORIZON_NS: f64 = 1e9;
/// Limit of all times that are read from the page.
const MAX_NS: u64 = 1 << 60;
/// Limits of the learned costs.
const COST_NS: core::ops::Range<u64> = 1_000..100_000_000;

/// Processes of one executable.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Kind {
    /// Images that began.
    pub started: AtomicU64,
    /// Images that reported their end.
    pub ended: AtomicU64,
    /// CPU time of the program in them and the children that they forked.
    pub cpu_ns: AtomicU64,
    /// Children made by `fork` that ended, or began another image.
    pub forked: AtomicU64,
    /// CPU time of the program in them until then.
    pub forked_cpu_ns: AtomicU64,
}

/// CPU time that a process passes on to its next image.
#[derive(Debug, Default)]
#[repr(C)]
struct Handover {
    pid: AtomicU64,
    cpu_ns: AtomicU64,
}

/// Processes with the same modules, which have neither the sampler nor breakpoints.
#[derive(Debug, Default)]
#[repr(C)]
struct ModuleSet {
    /// A hash of the modules; 0: none.
    signature: AtomicU64,
    processes: AtomicU64,
}

/// The page.
#[derive(Debug)]
#[repr(C)]
pub struct Account {
    layout: AtomicU64,
    /// Images that began.
    pub started: AtomicU64,
    /// CPU time that all processes have reported.
    pub cpu_ns: AtomicU64,
    /// The part of it that was the sampler's.
    pub own_ns: AtomicU64,
    /// The part of that which does not depend on the number of bursts: loading, starting, ending, and arming breakpoints
    /// when their own time is spent.
    pub start_ns: AtomicU64,
    /// Processes that ended without a burst and have no shard: most were not chosen for sampling.
    pub unsampled: AtomicU64,
    /// CPU time of these processes and of the children that they forked.
    pub unsampled_cpu_ns: AtomicU64,
    /// The part of it that was the sampler's.
    pub unsampled_own_ns: AtomicU64,
    /// CPU time that breakpoints have taken so far, an estimate that is reported at once.
    pub coverage_ns: AtomicU64,
    /// Processes that may have loaded libraries without their being observed.
    pub may_load_unobserved: AtomicU64,
    /// Those of them with breakpoints in which the dynamic loader could not be watched.
    pub loader_not_watched: AtomicU64,
    /// Processes with breakpoints or without that could not note which modules they have: none of what they executed is
    /// known.
    pub modules_unknown: AtomicU64,
    /// Threads that could have had bursts in processes without a shard.
    pub threads: AtomicU64,
    /// Threads that could not.
    pub threads_without_tick: AtomicU64,
    /// Bytes that all processes have written to their shards.
    pub written: AtomicU64,
    /// Frames that could not be written: the disk is full, or the program may not write so much.
    pub unwritten: AtomicU64,
    /// Learned cost of sampling a process beside its bursts; 0: unknown.
    start_cost_ns: AtomicU64,
    /// Learned cost of a burst; 0: unknown.
    burst_cost_ns: AtomicU64,
    /// Learned length of a burst in taken branches; 0: unknown.
    burst_length: AtomicU64,
    /// Learned cost of starting a process with breakpoints; 0: unknown.
    observed_start_ns: AtomicU64,
    /// Learned cost of sampling a forked child from its start on; 0: unknown.
    forked_start_ns: AtomicU64,
    /// Sampled processes that confined themselves by a seccomp filter, which ends sampling in them.
    pub confined: AtomicU64,
    /// The first of them: its id, and the name of its thread, with zeros after it.
    confined_id: AtomicU64,
    confined_name: [AtomicU64; 2],
    /// Processes in valgrind, which are not sampled.
    pub in_valgrind: AtomicU64,
    kinds: [Kind; KINDS],
    handovers: [Handover; HANDOVERS],
    /// Keys of modules that have nothing to observe ([`crate::coverage::key`]); 0: none.
    nothing_to_observe: [AtomicU64; REMEMBERED_MODULES],
    module_sets: [ModuleSet; MODULE_SETS],
}

const _: () = assert!(size_of::<Account>() <= SIZE);
/// What every process writes is in the first page: each page that a process touches costs it a microsecond.
const _: () = assert!(core::mem::offset_of!(Account, handovers) <= 4096);

impl Default for Account {
    fn default() -> Self {
        Self {
            layout: AtomicU64::new(LAYOUT),
            started: AtomicU64::default(),
            cpu_ns: AtomicU64::default(),
            own_ns: AtomicU64::default(),
            start_ns: AtomicU64::default(),
            unsampled: AtomicU64::default(),
            unsampled_cpu_ns: AtomicU64::default(),
            unsampled_own_ns: AtomicU64::default(),
            coverage_ns: AtomicU64::default(),
            may_load_unobserved: AtomicU64::default(),
            loader_not_watched: AtomicU64::default(),
            modules_unknown: AtomicU64::default(),
            threads: AtomicU64::default(),
            threads_without_tick: AtomicU64::default(),
            written: AtomicU64::default(),
            unwritten: AtomicU64::default(),
            start_cost_ns: AtomicU64::default(),
            burst_cost_ns: AtomicU64::default(),
            burst_length: AtomicU64::default(),
            observed_start_ns: AtomicU64::default(),
            forked_start_ns: AtomicU64::default(),
            confined: AtomicU64::default(),
            confined_id: AtomicU64::default(),
            confined_name: core::array::from_fn(|_| AtomicU64::default()),
            in_valgrind: AtomicU64::default(),
            kinds: core::array::from_fn(|_| Kind::default()),
            handovers: core::array::from_fn(|_| Handover::default()),
            nothing_to_observe: core::array::from_fn(|_| AtomicU64::default()),
            module_sets: core::array::from_fn(|_| ModuleSet::default()),
        }
    }
}

/// A time from the page in nanoseconds, limited to a plausible value.
#[inline]
pub fn time(word: &AtomicU64) -> u64 {
    word.load(Relaxed).min(MAX_NS)
}

#[inline]
fn cost(word: &AtomicU64) -> Option<f64> {
    let ns = word.load(Relaxed);
    COST_NS.contains(&ns).then_some(ns as f64)
}

fn learn(word: &AtomicU64, ns: u64, weight: f64) {
    let next = cost(word).map_or(ns as f64, |before| before + (ns as f64 - before) * weight);
    word.store((next as u64).clamp(COST_NS.start, COST_NS.end - 1), Relaxed);
}

impl Account {
    /// The bytes of a new page.
    pub fn new_page() -> [u8; SIZE] {
        let mut page = [0; SIZE];
        page[..8].copy_from_slice(&LAYOUT.to_ne_bytes());
        page
    }

    /// Whether the page has this layout.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.layout.load(Relaxed) == LAYOUT
    }

    /// The kind of a process, by the name of its executable.
    #[inline]
    pub fn kind(&self, name: &[u8]) -> &Kind {
        // FNV-1a: short, as the stub is.
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, mix);
        // In range: the remainder is. The upper half depends on all bytes.
        &self.kinds[(hash >> 32) as usize % KINDS]
    }

    /// Learns the cost of sampling a process beside its bursts.
    pub fn learn_start(&self, ns: u64) {
        learn(&self.start_cost_ns, ns, 1.0 / 8.0);
    }

    /// Learns the cost of a burst.
    pub fn learn_burst(&self, ns: u64) {
        learn(&self.burst_cost_ns, ns, 1.0 / 8.0);
    }

    /// The learned cost of a burst.
    pub fn burst_cost(&self) -> Option<f64> {
        cost(&self.burst_cost_ns)
    }

    /// Learns how long bursts are, in taken branches.
    pub fn learn_burst_length(&self, branches: u64) {
        let next = self
            .burst_length()
            .map_or(branches, |before| (3 * before + branches) / 4);
        self.burst_length.store(next.clamp(1, MAX_BURST), Relaxed);
    }

    /// The learned length of a burst in taken branches.
    pub fn burst_length(&self) -> Option<u64> {
        let branches = self.burst_length.load(Relaxed);
        (1..=MAX_BURST).contains(&branches).then_some(branches)
    }

    /// CPU time that the recording has used so far.
    #[inline]
    pub fn totals(&self) -> Totals {
        let own_ns = time(&self.own_ns);
        Totals {
            program_ns: time(&self.cpu_ns).saturating_sub(own_ns),
            own_ns,
            start_ns: time(&self.start_ns),
            coverage_ns: time(&self.coverage_ns).min(own_ns),
        }
    }

    /// Whether breakpoints may take more time: they have used less than `advance_ns` and their share of the budget.
    #[inline]
    pub fn affords_coverage(&self, overhead: f64, advance_ns: u64) -> bool {
        (time(&self.coverage_ns) as f64) < self.coverage_budget(overhead, advance_ns)
    }

    /// Whether places that were hit may be armed again: most of the advance is for code that has not run yet.
    pub fn affords_counting(&self, overhead: f64, advance_ns: u64) -> bool {
        self.affords_coverage(overhead, (advance_ns as f64 * COUNTING_SHARE) as u64)
    }

    /// Learns the typical cost of starting a process with breakpoints: of one that finds plans, and code that was compared.
    pub fn learn_observed_start(&self, ns: u64) {
        learn(&self.observed_start_ns, ns, 1.0 / 8.0);
    }

    /// Whether a process of a kind may have breakpoints though their time is spent: processes of the kind are so long
    /// that its start costs little beside them. What it then executes first is left unknown.
    #[inline]
    pub fn affords_observed_start(&self, overhead: f64, kind: &Kind) -> bool {
        let ended = kind.ended.load(Relaxed);
        let mean_ns = time(&kind.cpu_ns) as f64 / ended.max(1) as f64;
        ended > 0 && cost(&self.observed_start_ns).is_none_or(|ns| ns < OBSERVED_START_SHARE * overhead * mean_ns)
    }

    #[inline]
    fn coverage_budget(&self, overhead: f64, advance_ns: u64) -> f64 {
        advance_ns as f64 + COVERAGE_SHARE * overhead * self.totals().program_ns as f64
    }

    /// The probability with which the next process of a kind is sampled; `begun` processes of the kind began before it.
    #[inline]
    pub fn probability(&self, overhead: f64, kind: &Kind, begun: u64) -> f64 {
        let (ended, mut cpu_ns) = (kind.ended.load(Relaxed), time(&kind.cpu_ns) as f64);
        let Some(start_ns) = cost(&self.start_cost_ns) else {
            return 1.0;
        };
        if ended > 0 {
            cpu_ns /= ended as f64;
        } else if begun < UNKNOWN_STARTS {
            return 1.0;
        } else {
            cpu_ns = cpu_ns.max(time(&self.cpu_ns) as f64 / self.started.load(Relaxed).max(1) as f64);
        }
        probability(overhead, cpu_ns, start_ns)
    }

    /// The probability with which a forked child of a kind has exact ticks from its start on. `least`: the lowest that
    /// the time between ticks allows.
    pub fn forked_probability(&self, overhead: f64, kind: &Kind, least: f64) -> f64 {
        let forked = kind.forked.load(Relaxed);
        let cpu_ns = time(&kind.forked_cpu_ns) as f64 / forked.max(1) as f64;
        let start_ns = cost(&self.forked_start_ns).unwrap_or(FORKED_START_NS);
        probability_from(overhead, cpu_ns, start_ns, least.clamp(forked::MIN_PROBABILITY, 1.0))
    }

    /// Learns the cost of sampling a forked child from its start on.
    pub fn learn_forked_start(&self, ns: u64) {
        learn(&self.forked_start_ns, ns, 1.0 / 8.0);
    }

    /// Notes that a process confines itself; `name`: that of its thread, with zeros after it.
    pub fn note_confined(&self, id: u32, name: [u8; 16]) {
        if self.confined.fetch_add(1, Relaxed) == 0 {
            self.confined_id.store(id.into(), Relaxed);
            for (word, half) in self.confined_name.iter().zip(name.chunks_exact(8)) {
                word.store(half.try_into().map_or(0, u64::from_ne_bytes), Relaxed);
            }
        }
    }

    /// The first process that confined itself: its id, and a name with zeros after it.
    pub fn first_confined(&self) -> Option<(u32, [u8; 16])> {
        let mut name = [0; 16];
        for (word, half) in self.confined_name.iter().zip(name.chunks_exact_mut(8)) {
            half.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        (self.confined.load(Relaxed) > 0).then(|| (self.confined_id.load(Relaxed) as u32, name))
    }

    /// Remembers that a module has nothing to observe.
    pub fn note_nothing_to_observe(&self, key: u64) {
        self.nothing_to_observe[key as usize % REMEMBERED_MODULES].store(key, Relaxed);
    }

    /// Whether a module is known to have nothing to observe.
    pub fn has_nothing_to_observe(&self, key: u64) -> bool {
        key != 0 && self.nothing_to_observe[key as usize % REMEMBERED_MODULES].load(Relaxed) == key
    }

    fn slots(&self, signature: u64) -> impl Iterator<Item = &ModuleSet> {
        // In range: the remainder is.
        (0..PROBES).map(move |probe| &self.module_sets[((signature >> 32) as usize + probe) % MODULE_SETS])
    }

    /// Counts a process without breakpoints, which may load libraries later. False if it is not known which modules there
    /// are of this signature.
    #[inline]
    pub fn count_unobserved(&self, signature: u64) -> bool {
        let known = self
            .slots(signature)
            .find(|slot| slot.signature.load(Relaxed) == signature);
        let Some(slot) = known.filter(|_| signature != 0) else {
            return false;
        };
        slot.processes.fetch_add(1, Relaxed);
        self.may_load_unobserved.fetch_add(1, Relaxed);
        true
    }

    /// Says that it is known from now on which modules there are of a signature. One that finds no slot is not remembered.
    pub fn remember_modules(&self, signature: u64) {
        let _ = self
            .slots(signature)
            .any(|slot| slot.signature.compare_exchange(0, signature, Relaxed, Relaxed).is_ok());
    }

    /// The signatures that were counted, with the number of processes.
    pub fn unobserved(&self) -> impl Iterator<Item = (u64, u64)> {
        let sets = self.module_sets.iter();
        sets.map(|set| (set.signature.load(Relaxed), set.processes.load(Relaxed)))
            .filter(|(signature, processes)| *signature != 0 && *processes > 0)
    }

    /// Passes on to the next image of a process how much of its CPU time is accounted for.
    #[inline]
    pub fn hand_over(&self, pid: u32, cpu_ns: u64) {
        let slot = &self.handovers[pid as usize % HANDOVERS];
        slot.cpu_ns.store(cpu_ns, Relaxed);
        slot.pid.store(pid.into(), Relaxed);
    }

    /// CPU time that the previous image of a process passed on, 0 if there was none. `now`: the process's CPU time.
    #[inline]
    pub fn take_over(&self, pid: u32, now: impl FnOnce() -> u64) -> u64 {
        let slot = &self.handovers[pid as usize % HANDOVERS];
        if slot.pid.load(Relaxed) != u64::from(pid) {
            return 0;
        }
        let cpu_ns = slot.cpu_ns.load(Relaxed);
        let is_mine = slot.pid.compare_exchange(pid.into(), 0, Relaxed, Relaxed).is_ok();
        // A value above the present CPU time comes from an earlier process with this id.
        if is_mine && cpu_ns <= now() { cpu_ns } else { 0 }
    }

    /// Adds what a process reports: its CPU time, and the sampler's in it. `start_ns`: the part of that which does not
    /// depend on the number of bursts.
    #[inline]
    pub fn report(&self, kind: Option<&Kind>, cpu_ns: u64, own_ns: u64, start_ns: u64) {
        self.cpu_ns.fetch_add(cpu_ns, Relaxed);
        self.own_ns.fetch_add(own_ns, Relaxed);
        self.start_ns.fetch_add(start_ns, Relaxed);
        if let Some(kind) = kind {
            kind.cpu_ns.fetch_add(cpu_ns.saturating_sub(own_ns), Relaxed);
        }
    }
}

/// CPU time that a recording has used so far, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// CPU time of the program.
    pub program_ns: u64,
    /// CPU time of the sampler.
    pub own_ns: u64,
    /// The part of it that does not depend on the number of bursts.
    pub start_ns: u64,
    /// The part of it that breakpoints took.
    pub coverage_ns: u64,
}

/// The probability with which a process is sampled that is expected to use `cpu_ns`, if the sampler's start takes
/// `start_ns`. Starts take a small share of the budget; processes above a certain length are always sampled.
#[inline]
pub fn probability(overhead: f64, cpu_ns: f64, start_ns: f64) -> f64 {
    probability_from(overhead, cpu_ns, start_ns, MIN_PROBABILITY)
}

/// The same, with another minimum, which is in 0..=1.
#[inline]
fn probability_from(overhead: f64, cpu_ns: f64, start_ns: f64, least: f64) -> f64 {
    let affordable = START_SHARE * overhead * cpu_ns / start_ns.max(1.0);
    if affordable.is_nan() {
        1.0
    } else {
        affordable.max(least).min(1.0)
    }
}

/// Mean CPU time of the program from one burst to the next, over all its processes.
///
/// Starts of processes are paid first; bursts get the rest of the budget. A deviation from the budget is corrected over
/// a long horizon, so that the rate depends only on the age of the recording, and changes slowly. What breakpoints took,
/// most of it at once, is paid back over a still longer one.
pub fn mean_interval(overhead: f64, burst_ns: f64, totals: Totals) -> f64 {
    let (program, starts, coverage) = (
        totals.program_ns as f64,
        totals.start_ns as f64,
        totals.coverage_ns as f64,
    );
    let own = totals.own_ns as f64 - coverage;
    let horizon = HORIZON_NS + program / 4.0;
    let paid_back = coverage * (program / COVERAGE_HORIZON_NS).min(1.0);
    let balance = (overhead * program - own - paid_back) / horizon;
    let share = overhead + balance - starts / (program + HORIZON_NS);
    burst_ns / share.clamp(overhead / 4.0, overhead * 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::interval;

    #[test]
    fn starts_take_their_share_of_the_budget_or_happen_rarely() {
        for (cpu_ns, expected) in [
            (1e6, MIN_PROBABILITY),
            (1e7, 0.1),
            (5e7, 0.5),
            (1e9, 1.0),
            (0.0, MIN_PROBABILITY),
        ] {
            let p = probability(0.01, cpu_ns, 3e5);
            assert!((p - expected).abs() < 1e-9, "{cpu_ns}: {p}");
        }
        for strange in [f64::NAN, f64::INFINITY, -1.0] {
            assert!(
                (MIN_PROBABILITY..=1.0).contains(&probability(0.01, strange, 0.0)),
                "{strange}"
            );
        }
    }

    #[test]
    fn the_first_of_a_kind_are_sampled() {
        let account = Account::default();
        let kind = account.kind(b"/bin/true");
        assert_eq!(account.probability(0.01, kind, 0), 1.0);
        account.learn_start(300_000);
        assert_eq!(account.probability(0.01, kind, 0), 1.0);
        // Many that run at the same time.
        assert!(account.probability(0.01, kind, 100) < 1.0);
        kind.ended.store(10, Relaxed);
        kind.cpu_ns.store(10_000_000, Relaxed);
        assert_eq!(account.probability(0.01, kind, 10), MIN_PROBABILITY);
        kind.cpu_ns.store(10_000_000_000, Relaxed);
        assert_eq!(account.probability(0.01, kind, 10), 1.0);
    }

    #[test]
    fn forked_children_are_chosen_by_the_length_of_those_before() {
        let account = Account::default();
        let kind = account.kind(b"/bin/sh");
        assert_eq!(account.forked_probability(0.01, kind, 0.0), forked::MIN_PROBABILITY);
        assert_eq!(account.forked_probability(0.01, kind, 0.5), 0.5);
        assert_eq!(account.forked_probability(0.01, kind, f64::INFINITY), 1.0);
        account.learn_forked_start(100_000);
        kind.forked.store(10, Relaxed);
        kind.forked_cpu_ns.store(10 * 30_000_000, Relaxed);
        assert!((account.forked_probability(0.01, kind, 0.0) - 0.9).abs() < 1e-9);
        kind.forked_cpu_ns.store(u64::MAX, Relaxed);
        assert_eq!(account.forked_probability(0.01, kind, 0.0), 1.0);
    }

    #[test]
    fn the_first_process_that_confines_itself_is_known() {
        let account = Account::default();
        assert_eq!(account.first_confined(), None);
        account.note_confined(7, *b"a name of 16 let");
        account.note_confined(8, [0; 16]);
        assert_eq!(account.first_confined(), Some((7, *b"a name of 16 let")));
        assert_eq!(account.confined.load(Relaxed), 2);
    }

    #[test]
    fn the_rate_follows_the_account_slowly() {
        let at = |program_ns, own_ns, start_ns| {
            let totals = Totals {
                program_ns,
                own_ns,
                start_ns,
                coverage_ns: 0,
            };
            mean_interval(0.01, 100_000.0, totals)
        };
        let nominal = 1e7;
        // Nothing is known, or all is as it should be.
        assert!((at(0, 0, 0) / nominal - 1.0).abs() < 1e-9);
        assert!((at(100_000_000_000, 1_000_000_000, 0) / nominal - 1.0).abs() < 1e-9);
        // A start is not paid off by its own process.
        assert!((at(0, 300_000, 300_000) / nominal - 1.0).abs() < 0.1);
        // Starts are taken off the budget where they recur.
        let steady = at(100_000_000_000, 1_000_000_000, 200_000_000);
        assert!((1.2..1.3).contains(&(steady / nominal)), "{steady}");
        // Too much was spent, or too little; whatever the page says, the rate is limited.
        assert!(at(10_000_000_000, 150_000_000, 0) > nominal * 1.1);
        assert!(at(10_000_000_000, 50_000_000, 0) < nominal * 0.9);
        assert_eq!(at(0, u64::MAX, u64::MAX), nominal * 4.0);
        assert_eq!(at(u64::MAX, 0, 0), nominal / 2.0);
    }

    #[test]
    fn the_budget_is_kept_though_costs_are_not_as_expected() {
        // Bursts cost twice the expected time.
        let mut totals = Totals::default();
        let mut seed = 1u64;
        let mut uniform = || {
            seed = seed
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        while totals.program_ns < 200_000_000_000 {
            totals.program_ns += interval(mean_interval(0.01, 100_000.0, totals), uniform()) as u64;
            totals.own_ns += 200_000;
        }
        let overhead = totals.own_ns as f64 / totals.program_ns as f64;
        assert!((overhead / 0.01 - 1.0).abs() < 0.3, "{overhead}");
    }

    #[test]
    fn breakpoints_have_an_advance_and_are_paid_back() {
        let mut account = Account::default();
        assert!(account.affords_coverage(0.01, 20_000_000));
        *account.coverage_ns.get_mut() = 2_000_000;
        assert!(account.affords_counting(0.01, 20_000_000));
        *account.coverage_ns.get_mut() = 3_000_000;
        assert!(!account.affords_counting(0.01, 20_000_000));
        *account.coverage_ns.get_mut() = 11_000_000;
        assert!(account.affords_coverage(0.01, 20_000_000));
        assert!(!account.affords_counting(0.01, 20_000_000));
        *account.coverage_ns.get_mut() = 20_000_000;
        *account.own_ns.get_mut() = 20_000_000;
        *account.cpu_ns.get_mut() = 20_000_000;
        assert!(!account.affords_coverage(0.01, 20_000_000));
        let nominal = mean_interval(0.01, 1e5, Totals::default());
        // At first, bursts go on at their rate.
        assert!((mean_interval(0.01, 1e5, account.totals()) / nominal - 1.0).abs() < 0.01);
        // Later they are rarer, until all is paid back.
        *account.cpu_ns.get_mut() = 10_000_000_000;
        *account.own_ns.get_mut() = 120_000_000;
        assert!(account.affords_coverage(0.01, 20_000_000));
        let later = mean_interval(0.01, 1e5, account.totals()) / nominal;
        assert!((1.1..1.4).contains(&later), "{later}");
    }

    #[test]
    fn long_processes_are_observed_though_the_time_of_breakpoints_is_spent() {
        let account = Account::default();
        let kind = account.kind(b"/bin/true");
        assert!(!account.affords_observed_start(0.01, kind), "none has ended");
        account.learn_observed_start(300_000);
        kind.ended.store(10, Relaxed);
        kind.cpu_ns.store(10 * 70_000_000, Relaxed);
        assert!(account.affords_observed_start(0.01, kind));
        kind.cpu_ns.store(10 * 50_000_000, Relaxed);
        assert!(!account.affords_observed_start(0.01, kind));
    }

    #[test]
    fn images_take_over_from_their_process_only() {
        let account = Account::default();
        account.hand_over(100, 5_000);
        assert_eq!(account.take_over(101, || 9_000), 0);
        assert_eq!(account.take_over(164, || 9_000), 0);
        assert_eq!(account.take_over(100, || 9_000), 5_000);
        assert_eq!(account.take_over(100, || 9_000), 0);
        account.hand_over(100, 5_000);
        assert_eq!(account.take_over(100, || 4_000), 0);
    }

    #[test]
    fn modules_with_nothing_to_observe_are_remembered() {
        let account = Account::default();
        assert!(!account.has_nothing_to_observe(7) && !account.has_nothing_to_observe(0));
        account.note_nothing_to_observe(7);
        assert!(account.has_nothing_to_observe(7));
        // Another one in the same slot.
        assert!(!account.has_nothing_to_observe(7 + REMEMBERED_MODULES as u64));
    }

    #[test]
    fn processes_with_known_modules_are_counted() {
        let account = Account::default();
        assert!(!account.count_unobserved(0) && !account.count_unobserved(7 << 32));
        account.remember_modules(7 << 32);
        assert!(account.count_unobserved(7 << 32) && account.count_unobserved(7 << 32));
        assert!(!account.count_unobserved(8 << 32));
        assert_eq!(account.unobserved().collect::<Vec<_>>(), [(7 << 32, 2)]);
        assert_eq!(account.may_load_unobserved.load(Relaxed), 2);
        // More than there is room for.
        for signature in 0..100 {
            account.remember_modules(signature << 32 | 1);
        }
        let known = (0..100).filter(|signature| account.count_unobserved(signature << 32 | 1));
        assert_eq!(known.count(), MODULE_SETS - 1);
    }

    #[test]
    fn a_page_has_its_layout() {
        let page = Account::new_page();
        assert_eq!(page[..8], LAYOUT.to_ne_bytes());
        let account = Account::default();
        assert!(account.is_valid());
        // Learned costs are limited, however often they are wrong.
        account.learn_burst(u64::MAX);
        assert!(account.burst_cost().unwrap() < 1e8);
        account.burst_cost_ns.store(u64::MAX, Relaxed);
        assert_eq!(account.burst_cost(), None);
    }
}
