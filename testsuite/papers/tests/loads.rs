//! Load-value profiles: shadow execution reports the values that the program loads, and compression keeps their
//! distribution approximately.

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pleach_collector::stream::{Generator, Periodic, Sampler, Split, Start};
use pleach_collector::vector::{CodeAddress, ModuleId};
use pleach_papers::streams::error::{Selection, invariance_error};
use pleach_papers::streams::event::Event;
use pleach_papers::streams::loads::observe;
use pleach_shadow::{Engine, Limits, recover};
use std::collections::HashMap;
use std::num::NonZeroU64;

const LOADS: usize = 1 << 16;
const TABLE: u64 = 0xfeed_0000;

static mut ENGINE: *mut Engine = core::ptr::null_mut();
static mut SEEN: [(u64, u64); LOADS] = [(0, 0); LOADS];
static COUNT: AtomicU64 = AtomicU64::new(0);
static INSTRUCTIONS: AtomicU64 = AtomicU64::new(0);

/// Seven values in turn, and one that is always the same but for each 16th time.
static VALUES: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];
static STEADY: AtomicU64 = AtomicU64::new(0);
static RARE: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_request(_: c_int, _: *mut c_void, context: *mut c_void) {
    // SAFETY: one thread; its own handler's context, and memory that stays.
    unsafe {
        let engine = &mut *ENGINE;
        engine.load_frame(context);
        engine.begin();
        let limits = Limits {
            max_branches: 1 << 20,
            max_instructions: 400_000,
            max_new_decodes: 1 << 20,
        };
        let mut count = 0;
        let seen = &raw mut SEEN;
        let outcome = observe(engine, &limits, &mut |_| {}, &mut |pc, value| {
            (*seen)[count % LOADS] = (pc, value);
            count += 1;
        });
        COUNT.store(count as u64, Relaxed);
        INSTRUCTIONS.store(outcome.instructions.into(), Relaxed);
    }
}

extern "C" fn on_fault(signal: c_int, _: *mut c_void, context: *mut c_void) {
    // SAFETY: this thread's engine.
    unsafe {
        if !recover(ENGINE, context) {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

#[inline(never)]
fn work(rounds: u64) -> u64 {
    let mut sum = 0u64;
    for round in 0..rounds {
        let steady = if round % 16 == 15 { &RARE } else { &STEADY };
        sum = sum.wrapping_mul(3) ^ VALUES[round as usize % 7].load(Relaxed) ^ steady.load(Relaxed);
        // What was stored ahead is what is loaded ahead.
        VALUES[0].store(TABLE, Relaxed);
    }
    sum
}

fn install(signal: c_int, handler: extern "C" fn(c_int, *mut c_void, *mut c_void)) {
    // SAFETY: a handler of this signature.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(signal, &action, core::ptr::null_mut());
    }
}

#[test]
fn loads_are_told_with_their_values() {
    // SAFETY: before the handlers are installed.
    unsafe { ENGINE = Engine::reserve().unwrap() };
    install(libc::SIGUSR1, on_request);
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
        install(signal, on_fault);
    }
    for (value, number) in VALUES.iter().zip(TABLE + 1..) {
        value.store(number, Relaxed);
    }
    STEADY.store(0xc0ffee, Relaxed);
    RARE.store(0xbad, Relaxed);
    // SAFETY: our own handler, which returns.
    unsafe { libc::raise(libc::SIGUSR1) };
    std::hint::black_box(work(std::hint::black_box(20_000)));

    let count = COUNT.load(Relaxed) as usize;
    // SAFETY: the handler is done.
    let seen = unsafe { &(&raw const SEEN).as_ref().unwrap()[..count.min(LOADS)] };
    println!("{count} loads in {} instructions", INSTRUCTIONS.load(Relaxed));

    // In order, with the store of the round before.
    let table: Vec<u64> = seen
        .iter()
        .map(|(_, value)| *value)
        .filter(|v| v & !7 == TABLE)
        .collect();
    assert!(table.len() > 5000, "{}", table.len());
    let expected = (0..table.len()).map(|round| match round % 7 {
        0 if round > 0 => TABLE,
        place => TABLE + 1 + place as u64,
    });
    assert!(table.iter().copied().eq(expected));
    let of = |value| seen.iter().filter(|load| load.1 == value).count();
    assert!(of(0xbad) > 0 && of(0xc0ffee).abs_diff(15 * of(0xbad)) < 16);

    // As a profile: of two loads, one has values that an optimiser could use.
    let events = seen.iter().map(|(pc, value)| Event::LoadValue {
        pc: CodeAddress {
            module: ModuleId::EXTERNAL,
            offset: *pc,
        },
        value: *value,
    });
    let mut truth = HashMap::new();
    let mut generator = Generator::new(1);
    let rate = NonZeroU64::new(16).unwrap();
    let mut sampler = Split::new(11, &mut generator, |g| Periodic::new(rate, Start::Stationary, g));
    let mut estimate = HashMap::new();
    for event in events {
        *truth.entry(event).or_insert(0) += 1;
        if let Some(message) = sampler.push(event) {
            *estimate.entry(message.event).or_insert(0) += message.weight;
        }
    }
    let error = invariance_error(&truth, &estimate, &Selection::default()).unwrap();
    println!("{} different loads, error {:.3} %", truth.len(), error * 100.0);
    assert!(error < 0.02, "{error}");
}
