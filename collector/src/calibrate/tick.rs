//! What a tick takes of a program: the interrupt of its timer, the signal, the way back, and arming the next one. On a virtual
//! machine that is ten times what the signal alone takes.
//!
//! The same work is done with and without ticks, in pieces that are short, so that other programs leave some alone.

use super::thread_cpu_ns;
use std::hint::black_box;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const PIECE_NS: u64 = 2_000_000;
const PIECES: usize = 9;
/// Ticks that come one after the other cost more than single ones.
const PERIOD_NS: u64 = 400_000;
/// Fewer ticks in a piece say nothing.
const ENOUGH: u64 = 3;
const LEAST_NS: u64 = 500;

// _IO('$', …): arm for so many ticks, stop, set the period.
const REFRESH: libc::c_ulong = 0x2402;
const DISABLE: libc::c_ulong = 0x2401;
const PERIOD: libc::c_ulong = 0x4008_2404;

static EVENT: AtomicI32 = AtomicI32::new(-1);
static TICKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_tick(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    TICKS.fetch_add(1, Relaxed);
    arm(EVENT.load(Relaxed));
}

fn arm(event: i32) {
    // SAFETY: our event; the period lives here.
    unsafe {
        libc::ioctl(event, PERIOD, &PERIOD_NS);
        libc::ioctl(event, REFRESH, 1);
    }
}

/// CPU time of a tick in nanoseconds; `None` where there is no such timer. One caller at a time.
pub(super) fn cost() -> Option<u64> {
    // Ticks go to a thread: this one is ours.
    std::thread::spawn(measure).join().ok()?
}

fn measure() -> Option<u64> {
    let signal = libc::SIGRTMAX() - 3;
    let event = open(signal)?;
    EVENT.store(event, Relaxed);
    // SAFETY: plain structures; what was there before comes back when no tick is armed any more.
    unsafe {
        let mut new: libc::sigaction = zeroed();
        let mut old: libc::sigaction = zeroed();
        new.sa_sigaction = on_tick as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&mut new.sa_mask);
        let mut ours: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut ours);
        libc::sigaddset(&mut ours, signal);
        if libc::sigaction(signal, &new, &mut old) != 0 {
            libc::close(event);
            return None;
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &ours, null_mut());
        let cost = compare(event);
        libc::ioctl(event, DISABLE, 0);
        libc::close(event);
        // A tick that was on its way arrives now.
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, null_mut());
        libc::sigaction(signal, &old, null_mut());
        cost
    }
}

fn compare(event: i32) -> Option<u64> {
    let mut rounds = 50_000;
    while work(rounds) < PIECE_NS {
        rounds *= 2;
    }
    let (mut without, mut with) = (u64::MAX, (u64::MAX, 0));
    for _ in 0..PIECES {
        without = without.min(work(rounds));
        let before = TICKS.load(Relaxed);
        arm(event);
        let time = work(rounds);
        // SAFETY: our event.
        unsafe { libc::ioctl(event, DISABLE, 0) };
        with = with.min((time, TICKS.load(Relaxed) - before));
    }
    let (with, ticks) = with;
    let extra = with.checked_sub(without)?;
    (ticks >= ENOUGH).then(|| (extra / ticks).max(LEAST_NS))
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

/// An event as the sampler's: a clock of this thread's, not yet armed.
fn open(signal: i32) -> Option<i32> {
    #[repr(C)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup_events: u32,
        breakpoint_type: u32,
        breakpoint_address: u64,
    }
    const SOFTWARE: u32 = 1;
    const TASK_CLOCK: u64 = 1;
    /// Disabled; without the kernel and the hypervisor.
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
    const CLOSE_ON_EXEC: u64 = 8;
    const SET_SIGNAL: i32 = 10;
    const SET_OWNER: i32 = 15;
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: TASK_CLOCK,
        period: PERIOD_NS,
        sample_type: 0,
        read_format: 0,
        flags: FLAGS,
        wakeup_events: 1,
        breakpoint_type: 0,
        breakpoint_address: 0,
    };
    // SAFETY: the structures live here.
    unsafe {
        let event = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            -1,
            -1,
            CLOSE_ON_EXEC,
        ) as i32;
        if event < 0 {
            return None;
        }
        let owner = [0, libc::syscall(libc::SYS_gettid) as i32];
        let is_set = libc::fcntl(event, SET_OWNER, owner.as_ptr()) == 0
            && libc::fcntl(event, SET_SIGNAL, signal) == 0
            && libc::fcntl(event, libc::F_SETFL, libc::O_RDWR | libc::O_ASYNC) == 0;
        if !is_set {
            libc::close(event);
        }
        is_set.then_some(event)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_tick_takes_microseconds() {
        let Some(cost) = super::cost() else {
            return println!("skipped: no event, or no quiet moment");
        };
        println!("{cost} ns");
        assert!((super::LEAST_NS..2_000_000).contains(&cost), "{cost}");
    }
}
