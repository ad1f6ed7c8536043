//! The account of the recording ([`pleach_wire::account`]), as this process uses it.
//!
//! A process reports its CPU time at its start, at its ticks, and at its end; each report contains only the time since the
//! previous report. The stub reports for a process without the sampler.

use crate::counters::{self, OWN_NS};
use crate::process;
use crate::settings;
use crate::state_section::state_section;
use crate::sys;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use pleach_wire::account::{Account, Kind, Totals};
use pleach_wire::start::Start;

/// The page; null: there is none.
static PAGE: AtomicPtr<Account> = AtomicPtr::new(null_mut());
/// The kind of this process; null: there is no page.
static KIND: AtomicPtr<Kind> = AtomicPtr::new(null_mut());
state_section! {
    /// Reported CPU time: of the process, of the sampler in it, and of the sampler's fixed part.
    static REPORTED_CPU_NS: AtomicU64 = AtomicU64::new(0);
    static REPORTED_OWN_NS: AtomicU64 = AtomicU64::new(0);
    static REPORTED_START_NS: AtomicU64 = AtomicU64::new(0);
    /// The part of the reported CPU time, of the process and of the sampler in it, that belongs to an earlier image or
    /// to processes without a shard.
    static BASE_CPU_NS: AtomicU64 = AtomicU64::new(0);
    static BASE_OWN_NS: AtomicU64 = AtomicU64::new(0);
    /// The part of the sampler's CPU time that does not depend on the number of bursts.
    static START_NS: AtomicU64 = AtomicU64::new(0);
    /// The part of it that arming breakpoints took.
    static ARMING_NS: AtomicU64 = AtomicU64::new(0);
    /// Whether this is a child made by `fork`. Its start and end are not counted for its kind, because its parent's
    /// are.
    static IS_FORKED: AtomicBool = AtomicBool::new(false);
    /// Whether this is the recording's first process, or cannot know.
    static IS_FIRST: AtomicBool = AtomicBool::new(true);
    /// The part of the sampler's CPU time that breakpoints took.
    static COVERAGE_NS: AtomicU64 = AtomicU64::new(0);
    /// Whether the length of this child made by `fork` was reported.
    static HAS_REPORTED_LENGTH: AtomicBool = AtomicBool::new(false);
    /// Whether the end of this process was reported.
    static HAS_ENDED: AtomicBool = AtomicBool::new(false);
}
/// The probability with which this process was chosen, as bits.
static PROBABILITY: AtomicU64 = AtomicU64::new(1.0f64.to_bits());
/// Whether this process was chosen for sampling. A process with breakpoints need not be.
static IS_SAMPLED: AtomicBool = AtomicBool::new(true);

fn page() -> Option<&'static Account> {
    // SAFETY: null, or mapped for good; all of it is atomic.
    unsafe { PAGE.load(Relaxed).as_ref() }
}

fn kind() -> Option<&'static Kind> {
    // SAFETY: null, or a part of the page.
    unsafe { KIND.load(Relaxed).as_ref() }
}

/// Address of the page, 0 if there is none. It is shared memory, but does not belong to the program.
pub fn address() -> u64 {
    PAGE.load(Relaxed) as u64
}

/// Takes over what the stub found and decided. Call once, at the start.
pub fn begin(start: &Start) {
    PAGE.store(start.page.cast_mut(), Relaxed);
    KIND.store(start.kind.cast_mut(), Relaxed);
    BASE_CPU_NS.store(start.base_cpu_ns, Relaxed);
    REPORTED_CPU_NS.store(start.base_cpu_ns, Relaxed);
    IS_FIRST.store(start.decision.is_first, Relaxed);
    IS_SAMPLED.store(start.decision.is_chosen, Relaxed);
    PROBABILITY.store(start.decision.probability.to_bits(), Relaxed);
}

/// Whether the process has a shard even if it has no burst. Making one costs as much as all else at the start.
pub fn needs_shard() -> bool {
    IS_FIRST.load(Relaxed)
}

/// The probability with which this process was chosen. A process with a low probability is sampled more densely.
pub fn probability() -> f64 {
    f64::from_bits(PROBABILITY.load(Relaxed))
}

/// Adds to the part of the sampler's CPU time that does not depend on the number of bursts.
#[inline(always)]
pub fn spend_on_start(ns: u64) {
    START_NS.fetch_add(ns, Relaxed);
}

/// Resets the part of the sampler's CPU time that does not depend on the number of bursts.
pub fn restart() {
    START_NS.store(0, Relaxed);
}

/// Reports the CPU time since the last report.
#[inline(always)]
pub fn report_cpu_time() {
    let Some(page) = page() else { return };
    let new = |told: &AtomicU64, now: u64| now.saturating_sub(told.fetch_max(now, Relaxed));
    let cpu = new(&REPORTED_CPU_NS, sys::process_cpu_ns());
    let own = new(&REPORTED_OWN_NS, OWN_NS.load(Relaxed));
    let start = new(&REPORTED_START_NS, START_NS.load(Relaxed) + ARMING_NS.load(Relaxed));
    page.report(kind(), cpu, own, start);
}

/// Reports the cost of a burst, in nanoseconds.
pub fn learn_burst(ns: u64) {
    if let Some(page) = page() {
        page.learn_burst(ns);
    }
}

/// The cost of a burst that all processes have learned.
pub fn burst_cost() -> Option<f64> {
    page()?.burst_cost()
}

/// Reports how long bursts are, in taken branches.
pub fn learn_burst_length(branches: u64) {
    if let Some(page) = page() {
        page.learn_burst_length(branches);
    }
}

/// The length of a burst that all processes have learned.
pub fn burst_length() -> Option<u64> {
    page()?.burst_length()
}

/// CPU time used so far: by the recording, or by this process if it has no page.
pub fn totals() -> Totals {
    if let Some(page) = page() {
        return page.totals();
    }
    let own_ns = OWN_NS.load(Relaxed);
    Totals {
        program_ns: sys::process_cpu_ns().saturating_sub(own_ns),
        own_ns,
        start_ns: START_NS.load(Relaxed),
        coverage_ns: 0,
    }
}

/// Counts what was written to the shard.
pub fn note_written(bytes: usize) {
    if let Some(page) = page() {
        page.written.fetch_add(bytes as u64, Relaxed);
    }
}

/// Counts a frame that could not be written to the shard.
pub fn note_unwritten() {
    if let Some(page) = page() {
        page.unwritten.fetch_add(1, Relaxed);
    }
}

/// Whether the shards of all processes have the size that they may have.
pub fn is_full() -> bool {
    let written = page().map_or(0, |page| page.written.load(Relaxed));
    settings::get().max_bytes.is_some_and(|max| written >= max)
}

/// The recording's clock: CPU time of the program in all processes, in nanoseconds, as of their last reports.
pub fn clock() -> u64 {
    totals().program_ns
}

/// Whether breakpoints may take more time. Without the page, this process's advance is all they get.
pub fn affords_coverage(advance_ns: u64) -> bool {
    match page() {
        Some(page) => page.affords_coverage(settings::get().overhead, advance_ns),
        None => COVERAGE_NS.load(Relaxed) < advance_ns,
    }
}

/// Whether places that were hit may be armed again. They are counted for the whole recording, so they need its page.
pub fn affords_counting(advance_ns: u64) -> bool {
    page().is_some_and(|page| page.affords_counting(settings::get().overhead, advance_ns))
}

/// Reports what starting a process with breakpoints cost.
pub fn learn_observed_start(ns: u64) {
    if let Some(page) = page() {
        page.learn_observed_start(ns);
    }
}

/// Adds the time that arming breakpoints took in a process that has them though their time is spent: bursts pay for it.
pub fn spend_on_arming(ns: u64) {
    OWN_NS.fetch_add(ns, Relaxed);
    ARMING_NS.fetch_add(ns, Relaxed);
}

/// Remembers for all processes that a module has nothing to observe.
pub fn note_nothing_to_observe(key: u64) {
    if let Some(page) = page() {
        page.note_nothing_to_observe(key);
    }
}

/// Says that it is known from now on which modules there are of a signature.
pub fn remember_modules(signature: u64) {
    if let Some(page) = page() {
        page.remember_modules(signature);
    }
}

/// Whether a module is known to have nothing to observe.
pub fn has_nothing_to_observe(key: u64) -> bool {
    page().is_some_and(|page| page.has_nothing_to_observe(key))
}

/// Adds the time that breakpoints took. The program's own CPU time includes it.
pub fn spend_on_coverage(ns: u64) {
    OWN_NS.fetch_add(ns, Relaxed);
    COVERAGE_NS.fetch_add(ns, Relaxed);
    if let Some(page) = page() {
        page.coverage_ns.fetch_add(ns, Relaxed);
    }
}

/// Notes that this process may load libraries without being observed.
pub fn note_may_load_unobserved() {
    if let Some(page) = page() {
        page.may_load_unobserved.fetch_add(1, Relaxed);
    }
}

/// Notes that libraries that this process loads are not observed, because the dynamic loader cannot be watched.
pub fn note_loader_not_watched() {
    note_may_load_unobserved();
    if let Some(page) = page() {
        page.loader_not_watched.fetch_add(1, Relaxed);
    }
}

/// Notes that it is not known which modules this process has.
pub fn note_modules_unknown() {
    if let Some(page) = page() {
        page.modules_unknown.fetch_add(1, Relaxed);
    }
}

/// Whether this process takes ticks.
#[inline(always)]
pub fn is_sampled() -> bool {
    IS_SAMPLED.load(Relaxed)
}

/// The probability with which a child made by `fork` has exact ticks from its start on; `least`: the lowest that the
/// time between ticks allows. Without the page, nothing is known of other children.
pub fn forked_probability(least: f64) -> f64 {
    match (page(), kind()) {
        (Some(page), Some(kind)) => page.forked_probability(settings::get().overhead, kind, least),
        _ => 1.0,
    }
}

/// Reports what sampling a child made by `fork` from its start on costs.
pub fn learn_forked_start(ns: u64) {
    if let Some(page) = page() {
        page.learn_forked_start(ns);
    }
}

/// Reports how long a child made by `fork` was, at its end or before its next image.
#[inline(always)]
fn report_length(cpu_ns: u64) {
    if let Some(kind) = kind().filter(|_| IS_FORKED.load(Relaxed) && !HAS_REPORTED_LENGTH.swap(true, Relaxed)) {
        let program_ns = cpu_ns.saturating_sub(OWN_NS.load(Relaxed));
        kind.forked.fetch_add(1, Relaxed);
        kind.forked_cpu_ns.fetch_add(program_ns, Relaxed);
    }
}

/// Notes that this process confines itself.
pub fn note_confined() {
    if let Some(page) = page() {
        page.note_confined(process::pid() as u32, sys::thread_name());
    }
}

/// Makes the last report, at the end of a sampled process (`ends`) or before its next image.
pub fn conclude(ends: bool) {
    report_cpu_time();
    report_length(REPORTED_CPU_NS.load(Relaxed));
    let Some(page) = page() else { return };
    if !ends {
        page.hand_over(process::pid() as u32, REPORTED_CPU_NS.load(Relaxed));
    }
    end(page);
}

fn learn_start(page: &Account) {
    page.learn_start(START_NS.load(Relaxed).saturating_sub(settings::get().load_ns));
}

/// Counts the end of this process, once. False if it was counted before.
#[inline(always)]
fn end(page: &Account) -> bool {
    let is_first = !HAS_ENDED.swap(true, Relaxed);
    if is_first && !IS_FORKED.load(Relaxed) {
        if let Some(kind) = kind() {
            kind.ended.fetch_add(1, Relaxed);
        }
        if process::is_active() && is_sampled() {
            learn_start(page);
        }
    }
    is_first
}

/// The same for a process without a burst, which has no shard.
#[inline(always)]
pub fn conclude_without_burst(ends: bool) {
    let Some(page) = page() else { return };
    if !ends {
        // The next image reports the time of this one, too.
        let base = BASE_CPU_NS.load(Relaxed);
        if base > 0 {
            page.hand_over(process::pid() as u32, base);
        }
        if IS_FORKED.load(Relaxed) {
            report_length(sys::process_cpu_ns());
            // It does not know of this one's cost, either.
            let new = |told: &AtomicU64, now: u64| now.saturating_sub(told.fetch_max(now, Relaxed));
            let own = new(&REPORTED_OWN_NS, OWN_NS.load(Relaxed));
            page.report(None, 0, own, own);
            page.unsampled_own_ns
                .fetch_add(new(&BASE_OWN_NS, REPORTED_OWN_NS.load(Relaxed)), Relaxed);
        }
        return;
    }
    report_cpu_time();
    report_length(REPORTED_CPU_NS.load(Relaxed));
    let new = |told: &AtomicU64, now: u64| now.saturating_sub(told.fetch_max(now, Relaxed));
    let cpu = new(&BASE_CPU_NS, REPORTED_CPU_NS.load(Relaxed));
    let own = new(&BASE_OWN_NS, REPORTED_OWN_NS.load(Relaxed));
    page.unsampled_cpu_ns.fetch_add(cpu, Relaxed);
    page.unsampled_own_ns.fetch_add(own, Relaxed);
    if end(page) {
        page.unsampled.fetch_add(1, Relaxed);
    }
    if process::is_active() {
        let counters = counters::take_threads();
        page.threads.fetch_add(counters.0, Relaxed);
        page.threads_without_tick.fetch_add(counters.1, Relaxed);
    }
}

/// Counts from zero in a child made by `fork`.
#[inline(always)]
pub fn begin_child() {
    IS_FORKED.store(true, Relaxed);
    HAS_REPORTED_LENGTH.store(false, Relaxed);
    HAS_ENDED.store(false, Relaxed);
    IS_FIRST.store(page().is_none(), Relaxed);
    for told in [
        &REPORTED_CPU_NS,
        &REPORTED_OWN_NS,
        &REPORTED_START_NS,
        &BASE_CPU_NS,
        &BASE_OWN_NS,
        &START_NS,
        &ARMING_NS,
    ] {
        told.store(0, Relaxed);
    }
}
