//! Bursts by shadow execution: the thread's future, run ahead on a copy of its state, while the program waits.
//!
//! Engines are few and large, so threads share them: each prefers one, takes another if that is in use, and lets the tick
//! pass if all are.

use crate::burst::sampler::Sampler;
use crate::interpose::faults;
use crate::isolation;
use crate::mappings::{self, Range};
use crate::signal_entry::Context;
use crate::sys::{self, syscall};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};
use pleach_collector::shadow::{self, End, Limits};
use pleach_collector::vector::{EndReason, Engine};

/// As many threads can be followed at the same time.
const ENGINES: usize = 6;
/// Instructions of a burst for each taken branch it may have; more are a stretch without end.
const INSTRUCTIONS_PER_BRANCH: u32 = 64;

/// Code that a burst may meet for the first time: decoding is what costs most.
const MAX_DECODES: u32 = 2000;

struct Slot {
    busy: AtomicBool,
    engine: AtomicPtr<shadow::Engine>,
}

static SLOTS: [Slot; ENGINES] = [const {
    Slot {
        busy: AtomicBool::new(false),
        engine: AtomicPtr::new(null_mut()),
    }
}; ENGINES];
static ON: AtomicBool = AtomicBool::new(false);

/// The engine that runs in a thread right now.
#[derive(Debug)]
pub struct Running(AtomicPtr<shadow::Engine>);

impl Running {
    /// The engine; its faults are not the program's.
    pub fn running(&self) -> Option<*mut shadow::Engine> {
        let engine = self.0.load(Relaxed);
        (!engine.is_null()).then_some(engine)
    }
}

/// Whether signals that instructions raise come to us first.
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Makes everything ready in the first thread. False: threads are stepped instead.
pub fn begin() -> bool {
    let ready = new_engine(&SLOTS[0]) && faults::install();
    ON.store(ready, Relaxed);
    ready
}

fn new_engine(slot: &Slot) -> bool {
    let engine = shadow::Engine::reserve().unwrap_or(null_mut());
    slot.engine.store(engine, Release);
    !engine.is_null()
}

/// Takes note of one thread more.
pub fn begin_thread() {
    if !is_on() {
        return;
    }
    if let Some(slot) = SLOTS.iter().find(|slot| slot.engine.load(Relaxed).is_null())
        && !slot.busy.swap(true, Acquire)
    {
        if slot.engine.load(Relaxed).is_null() {
            new_engine(slot);
        }
        slot.busy.store(false, Release);
    }
}

/// Starts over in a child made by `fork`, which has one thread.
pub fn begin_child() {
    for slot in &SLOTS {
        slot.busy.store(false, Relaxed);
        // SAFETY: null or ours; nobody uses it.
        if let Some(engine) = unsafe { slot.engine.load(Relaxed).as_mut() } {
            engine.forked();
        }
    }
}

/// Whether faults would come to us. That the program blocks them is no matter: they are let through for the burst only.
pub fn is_possible() -> bool {
    is_on() && faults::are_ours()
}

/// Ends the shadow execution that raised a fault.
pub fn recover(engine: *mut shadow::Engine, context: &mut Context) -> bool {
    // SAFETY: the engine runs in this thread, below the frame of the fault.
    unsafe { shadow::recover(engine, (context as *mut Context).cast()) }
}

/// An engine that no other thread uses, if possible the one that this thread used before.
pub fn lease(preferred: u32) -> Option<*mut shadow::Engine> {
    (0..ENGINES).find_map(|offset| {
        let slot = SLOTS.get((preferred as usize + offset) % ENGINES)?;
        let engine = slot.engine.load(Acquire);
        (!engine.is_null() && !slot.busy.swap(true, Acquire)).then_some(engine)
    })
}

/// Gives it back.
pub fn release(engine: *mut shadow::Engine) {
    if let Some(slot) = SLOTS.iter().find(|slot| slot.engine.load(Relaxed) == engine) {
        slot.busy.store(false, Release);
    }
}

/// Lets an engine do something that may fault.
///
/// # Safety
/// It is leased, and signals are blocked.
pub unsafe fn guarded<R>(
    engine: *mut shadow::Engine,
    running: &Running,
    act: impl FnOnce(&mut shadow::Engine) -> R,
) -> R {
    // The kernel puts the frame of a fault on the alternate stack, over that of the tick, unless there is none. The
    // frame of the tick brings it back.
    let none = libc::stack_t {
        ss_sp: null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: the structure lives here.
    unsafe { syscall!(libc::SYS_sigaltstack, &raw const none, 0) };
    running.0.store(engine, Relaxed);
    sys::signal_mask(libc::SIG_UNBLOCK, faults::MASK);
    // SAFETY: given.
    let result = act(unsafe { &mut *engine });
    sys::signal_mask(libc::SIG_SETMASK, sys::ALL_SIGNALS);
    running.0.store(null_mut(), Relaxed);
    result
}

impl Sampler {
    /// A burst of shadow execution from the program's state.
    pub fn run_ahead(&mut self, context: &mut Context, running: &Running) {
        let Some(engine) = lease(self.ordinal) else {
            self.decline(self.record.begin_cpu_ns);
            return;
        };
        let limits = Limits {
            max_branches: self.burst as u32,
            max_instructions: self.burst as u32 * INSTRUCTIONS_PER_BRANCH,
            max_new_decodes: MAX_DECODES,
        };
        self.begin_clock();
        let (record, clock) = (&mut self.record, &mut self.clock);
        let mut range = Range::default();
        let (mut unknown, mut reads_clocks) = (false, false);
        let clocks = isolation::clocks();
        // SAFETY: leased; handlers block all signals; the frame is the kernel's.
        let outcome = unsafe {
            guarded(engine, running, |engine| {
                engine.load_frame((context as *mut Context).cast());
                engine.run_loaded(&limits, &mut |from, to| {
                    if !range.contains(to) {
                        range = mappings::find(to).unwrap_or_default();
                        unknown |= !range.contains(to);
                        reads_clocks |= range.contains(clocks);
                    }
                    record.branch(from, to);
                    clock.meet(to);
                })
            })
        };
        release(engine);
        record.unknown = unknown;
        record.alone =
            !reads_clocks && !mappings::find(record.start).is_some_and(|r| r.contains(clocks)) && isolation::now();
        record.instructions = outcome.instructions;
        let cpu = sys::thread_cpu_ns();
        let ours = cpu.saturating_sub(record.begin_cpu_ns);
        let (reason, time_ns) = (reason(outcome.end), record.begin_ns);
        self.finish(Engine::RunAhead, reason, outcome.end_pc, cpu, ours);
        self.arm_clock(reason, time_ns);
    }
}

fn reason(end: End) -> EndReason {
    match end {
        End::Branches | End::Instructions => EndReason::Budget,
        End::Decodes => EndReason::Decoding,
        End::SystemCall => EndReason::SystemCall,
        End::Taint => EndReason::Unknown,
        End::Instruction | End::ModifiedCode => EndReason::Instruction,
        End::Fault => EndReason::Fault,
        End::OverlayFull | End::Repeat => EndReason::Memory,
        End::Spin => EndReason::Spin,
    }
}
