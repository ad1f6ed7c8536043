//! Measures the costs of passing a breakpoint and of the signal that it sends at each overflow, as in the sampler's
//! burst timing. Two periods give two equations for the two costs.

#![allow(unsafe_code, reason = "what the sampler does in a program is timed in this one")]

use super::handled::handled;
use crate::engines::lbr::attr;
use crate::engines::lbr::sys::{Event, thread_cpu_ns};
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64};

/// Passes between two signals.
const PERIODS: [u64; 2] = [2, 6];
/// Measurements with each period.
const ROUNDS: usize = 41;

/// Costs in nanoseconds of CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrapCosts {
    /// Passing a breakpoint.
    pub trap_ns: u64,
    /// Its signal, including the sampler's handler and the return.
    pub signal_ns: u64,
}

/// The event that is measured; null if none.
static EVENT: AtomicPtr<Event> = AtomicPtr::new(null_mut());
static SIGNALS: AtomicU64 = AtomicU64::new(0);
static FIRST_NS: AtomicU64 = AtomicU64::new(0);
static SECOND_NS: AtomicU64 = AtomicU64::new(0);

/// The handler: does the same work as the sampler's.
extern "C" fn on_signal(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let now = thread_cpu_ns();
    match SIGNALS.fetch_add(1, Relaxed) {
        0 => FIRST_NS.store(now, Relaxed),
        1 => SECOND_NS.store(now, Relaxed),
        _ => {}
    }
    // SAFETY: null, or an event that lives until it is disabled.
    if let Some(event) = unsafe { EVENT.load(Relaxed).as_ref() } {
        black_box((event.id(), event.count())).0.ok();
    }
}

/// The function with the breakpoint.
#[inline(never)]
extern "C" fn place(round: u64) -> u64 {
    black_box(round)
}

/// Measures both costs; `None` without breakpoints. One caller at a time.
pub(super) fn costs() -> Option<TrapCosts> {
    // Signals go to the thread that opened the event, so the measurement has its own.
    std::thread::spawn(measure).join().ok()?
}

fn measure() -> Option<TrapCosts> {
    let place = place as extern "C" fn(u64) -> u64;
    let event = Event::open(&attr::breakpoint(place as usize as u64, 1), 0, -1).ok()?;
    handled(event, on_signal, &EVENT, |event| {
        let rounds: Vec<_> = (0..ROUNDS)
            .map(|_| PERIODS.map(|period| time(event, place, period)))
            .filter_map(|[few, many]| solve(few?, many?))
            .collect();
        typical(&rounds)
    })
}

/// Solves two equations, each the cost of a number of traps and a signal.
fn solve(few: u64, many: u64) -> Option<TrapCosts> {
    let trap_ns = many.checked_sub(few)? / (PERIODS[1] - PERIODS[0]);
    let signal_ns = few.checked_sub(PERIODS[0] * trap_ns)?;
    (trap_ns > 0).then_some(TrapCosts { trap_ns, signal_ns })
}

/// Medians of a trap's cost and of its ratio to a signal's: the machine's speed changes from round to round, their
/// ratio does not.
fn typical(rounds: &[TrapCosts]) -> Option<TrapCosts> {
    if rounds.len() <= ROUNDS / 2 {
        return None;
    }
    let median = |of: fn(&TrapCosts) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        *values.select_nth_unstable_by(rounds.len() / 2, f64::total_cmp).1
    };
    let trap_ns = median(|costs| costs.trap_ns as f64);
    let ratio = median(|costs| costs.signal_ns as f64 / costs.trap_ns as f64);
    Some(TrapCosts {
        trap_ns: trap_ns as u64,
        signal_ns: (trap_ns * ratio) as u64,
    })
}

/// From one signal to the next.
fn time(event: &Event, place: extern "C" fn(u64) -> u64, period: u64) -> Option<u64> {
    SIGNALS.store(0, Relaxed);
    event.set_period(period).ok()?;
    event.run(true).ok()?;
    for round in 0..2 * period {
        black_box(black_box(place)(round));
    }
    event.run(false).ok()?;
    (SIGNALS.load(Relaxed) == 2).then(|| SECOND_NS.load(Relaxed).saturating_sub(FIRST_NS.load(Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trap_takes_microseconds() {
        let _guard = super::super::MEASURING.lock();
        let Some(costs) = costs() else {
            return pleach_facilities::skip("no breakpoints");
        };
        println!("{costs:?}");
        assert!((100..1_000_000).contains(&costs.trap_ns), "{costs:?}");
        assert!(costs.signal_ns < 1_000_000, "{costs:?}");
    }

    #[test]
    fn both_costs_come_out_of_two_measurements() {
        let expected = TrapCosts {
            trap_ns: 10_500,
            signal_ns: 3_000,
        };
        assert_eq!(solve(2 * 10_500 + 3_000, 6 * 10_500 + 3_000), Some(expected));
        assert_eq!(solve(5_000, 4_000), None);
        // A machine that is twice as slow for a third of the time.
        let slow = TrapCosts {
            trap_ns: 21_000,
            signal_ns: 6_000,
        };
        let rounds: Vec<_> = (0..ROUNDS)
            .map(|round| if round % 3 == 0 { slow } else { expected })
            .collect();
        assert_eq!(typical(&rounds), Some(expected));
        assert_eq!(typical(&rounds[..ROUNDS / 2]), None);
    }
}
