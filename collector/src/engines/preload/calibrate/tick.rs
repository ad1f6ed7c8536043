//! Measures the cost of a tick: the timer interrupt, the signal, its return, and arming the next tick. On a virtual
//! machine this is ten times the cost of the signal alone.
//!
//! The same work runs with and without ticks, in short pieces, so that some run without interference by other programs.

#![allow(unsafe_code, reason = "what the sampler does in a program is timed in this one")]

use super::handled::handled;
use crate::engines::lbr::attr;
use crate::engines::lbr::sys::{Event, thread_cpu_ns};
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64};

const PIECE_NS: u64 = 2_000_000;
const PIECES: usize = 9;
/// The period: ticks in quick succession would cost more than single ones.
const PERIOD_NS: u64 = 400_000;
/// Minimum of ticks in a piece for a measurement.
const MIN_TICKS: u64 = 3;
/// Measurements of which the first without too much interference counts.
const ATTEMPTS: usize = 3;
/// Lower bound of the measured cost.
const MIN_COST_NS: u64 = 500;

/// The event that is measured; null if none.
static EVENT: AtomicPtr<Event> = AtomicPtr::new(null_mut());
static TICKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_tick(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    TICKS.fetch_add(1, Relaxed);
    // SAFETY: null, or an event that lives until no tick is armed.
    if let Some(event) = unsafe { EVENT.load(Relaxed).as_ref() } {
        arm(event);
    }
}

/// The handler: re-arms the event, as the sampler does.
fn arm(event: &Event) {
    let _ = event.set_period(PERIOD_NS);
    let _ = event.once();
}

/// CPU time of a tick in nanoseconds; `None` without such a timer. One caller at a time.
pub(super) fn cost() -> Option<u64> {
    // Ticks go to the thread that opened the event, so each measurement has its own.
    (0..ATTEMPTS).find_map(|_| std::thread::spawn(measure).join().ok()?)
}

fn measure() -> Option<u64> {
    let event = Event::open(&attr::tick(PERIOD_NS), 0, -1).ok()?;
    handled(event, on_tick, &EVENT, compare)
}

fn compare(event: &Event) -> Option<u64> {
    let mut rounds = 50_000;
    // The quickest of three: a single one may be interfered with, and pieces would have too few ticks.
    while (0..3).map(|_| work(rounds)).min()? < PIECE_NS {
        rounds *= 2;
    }
    let (mut without, mut with) = (u64::MAX, (u64::MAX, 0));
    for _ in 0..PIECES {
        without = without.min(work(rounds));
        let before = TICKS.load(Relaxed);
        arm(event);
        let time = work(rounds);
        event.run(false).ok()?;
        with = with.min((time, TICKS.load(Relaxed) - before));
    }
    let (with, ticks) = with;
    let extra = with.checked_sub(without)?;
    (ticks >= MIN_TICKS).then(|| (extra / ticks).max(MIN_COST_NS))
}

fn work(rounds: u64) -> u64 {
    let start = thread_cpu_ns();
    let mut word = 1u64;
    for round in 0..rounds {
        word = black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round);
    }
    black_box(word);
    thread_cpu_ns() - start
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_tick_takes_microseconds() {
        let _guard = super::super::MEASURING.lock();
        let Some(cost) = super::cost() else {
            return pleach_facilities::skip("no perf events, or too much interference");
        };
        println!("{cost} ns");
        assert!((super::MIN_COST_NS..2_000_000).contains(&cost), "{cost}");
    }
}
