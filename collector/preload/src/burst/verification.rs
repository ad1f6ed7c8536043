//! Verification of shadow execution: the registers after each instruction of a shadow burst are logged, and compared
//! with those of the program, which runs the same instructions under the trap flag.

use crate::burst::engines::{self, RunningEngine};
use crate::dispositions;
use crate::signal_entry::Context;
use crate::{mappings, shard_writer};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use pleach_shadow::{End, Engine, Limits, State, Taint};
use pleach_wire::shard::{Disagreement, Encoder, FrameKind, REGISTERS};

/// Maximum number of instructions of a burst that are compared.
const MAX_INSTRUCTIONS: usize = 2048;

/// Number of hashes: 32 of vector registers, and those at the following indices.
const OTHERS: usize = 35;
const MASKS: usize = 32;
const X87: usize = 33;
const MXCSR: usize = 34;

fn hash(words: impl Iterator<Item = u64>) -> u32 {
    let add = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    (words.fold(0, add) >> 32) as u32
}

/// All registers after an instruction.
#[derive(Clone, Copy)]
struct Registers {
    /// General registers in the order of the encoding, flags, program counter.
    general: [u64; REGISTERS],
    /// A hash of each other register.
    others: [u32; OTHERS],
    /// Registers and flags whose values shadow execution cannot know.
    taint: Taint,
}

struct Log {
    entries: [Registers; MAX_INSTRUCTIONS],
}

/// The buffers of verification. One thread at a time uses them.
struct Shared {
    busy: AtomicBool,
    log: UnsafeCell<Log>,
    /// Buffer for the mappings.
    maps: UnsafeCell<[u8; 16 * 1024]>,
}

// SAFETY: Lease.
unsafe impl Sync for Shared {}

const NONE: Registers = Registers {
    general: [0; REGISTERS],
    others: [0; OTHERS],
    taint: Taint::NONE,
};
static SHARED: Shared = Shared {
    busy: AtomicBool::new(false),
    log: UnsafeCell::new(Log {
        entries: [NONE; MAX_INSTRUCTIONS],
    }),
    maps: UnsafeCell::new([0; 16 * 1024]),
};

/// Verification in a thread.
#[derive(Debug)]
pub struct Verification {
    active: bool,
    engine: *mut Engine,
    /// Entries of the log.
    count: usize,
    /// The next one to compare.
    next: usize,
    /// Flags that differ since an instruction that leaves them undefined.
    ignored_flags: u64,
    /// Instructions compared and not yet stored.
    compared: u32,
}

impl Verification {
    /// Runs a shadow burst from the tick, and logs it. False: no engine is free, or another thread verifies.
    pub fn begin(&mut self, ordinal: u32, context: &mut Context, running: &RunningEngine) -> bool {
        (self.count, self.next, self.compared, self.ignored_flags) = (0, 0, 0, 0);
        if SHARED.busy.swap(true, Acquire) {
            return false;
        }
        let Some(engine) = engines::lease(ordinal) else {
            SHARED.busy.store(false, Release);
            return false;
        };
        (self.active, self.engine) = (true, engine);
        // SAFETY: Lease: this thread set `busy`.
        let log = unsafe { &mut *SHARED.log.get() };
        let one = Limits {
            max_instructions: 1,
            ..Limits::default()
        };
        // SAFETY: Lease and Frame.
        self.count = unsafe {
            engines::guarded(engine, running, |engine| {
                engine.load_frame((context as *mut Context).cast());
                engine.begin();
                let follow = |entry: &mut Registers| {
                    let outcome = engine.go_on(&one, &mut |_| ());
                    *entry = Registers::from_state(engine.state());
                    entry.taint = *engine.taint();
                    outcome.end == End::Instructions
                };
                log.entries.iter_mut().map(follow).take_while(|went| *went).count()
            })
        };
        true
    }

    /// Compares registers after the program's instruction at `from`. True if the comparison is over.
    pub fn is_over(&mut self, from: u64, context: &mut Context) -> bool {
        self.active && !self.check(from, context)
    }

    fn check(&mut self, from: u64, context: &mut Context) -> bool {
        if self.next >= self.count {
            return false;
        }
        // SAFETY: Lease: this thread set `busy`.
        let log = unsafe { &*SHARED.log.get() };
        let Some(shadow) = log.entries.get(self.next) else {
            return false;
        };
        // SAFETY: Lease and Frame.
        let mut real = unsafe {
            (*self.engine).load_frame((context as *mut Context).cast());
            Registers::from_state((*self.engine).state())
        };
        const FLAGS: usize = REGISTERS - 2;
        // The trap flag.
        real.general[FLAGS] &= !0x100;
        // A repeated instruction traps each time.
        if real.general[REGISTERS - 1] == from && shadow.general[REGISTERS - 1] != from {
            return true;
        }
        self.next += 1;
        self.compared += 1;
        const STATUS: u64 = 0x8d5;
        let unknown = &shadow.taint;
        let flags = (shadow.general[FLAGS] ^ real.general[FLAGS]) & STATUS & !u64::from(unknown.flags);
        self.ignored_flags &= flags;
        let new_flags = flags & !self.ignored_flags;
        self.ignored_flags |= new_flags;
        let is_known = |i: usize| i >= 16 || unknown.general >> i & 1 == 0;
        let rest = (0..REGISTERS).any(|i| i != FLAGS && is_known(i) && shadow.general[i] != real.general[i])
            || (shadow.general[FLAGS] ^ real.general[FLAGS]) & !STATUS & !0x10100 != 0;
        let differs = |i: &usize| shadow.others[*i] != real.others[*i];
        let others: u64 = (0..OTHERS).filter(differs).map(|i| 1 << i).sum();
        let others = if unknown.has_others() { 0 } else { others };
        if !rest && others == 0 && new_flags == 0 {
            return true;
        }
        let before = self.next.checked_sub(2).and_then(|at| log.entries.get(at));
        let mut found = Disagreement {
            from,
            only_flags: !rest && others == 0,
            others,
            before: before.map_or([0; REGISTERS], |b| b.general),
            shadow: shadow.general,
            real: real.general,
            ..Disagreement::default()
        };
        found.length = crate::sys::read_memory(from, &mut found.code) as u8;
        found.handlers = dispositions::has_handlers();
        // SAFETY: Lease, of both.
        let (engine, maps) = unsafe { (&mut *self.engine, &mut *SHARED.maps.get()) };
        let operand = before.and_then(|before| engine.operand(before.general.first_chunk()?, from, &found.code));
        found.shared_memory = operand.is_some_and(|address| mappings::is_shared(address, maps));
        let goes_on = found.only_flags;
        self.store_result(Some(&found));
        goes_on
    }

    /// Stores the number of instructions compared, and a disagreement.
    fn store_result(&mut self, found: Option<&Disagreement>) {
        let mut buffer = [0; 512];
        let mut e = Encoder::new(&mut buffer);
        e.u32(core::mem::take(&mut self.compared));
        if let Some(found) = found {
            found.encode(&mut e);
        }
        shard_writer::append(e.finish(FrameKind::Verified));
    }

    /// Stores the opcodes that the engine met for the first time, and how it ran them.
    fn store_opcodes(&mut self) {
        const MAX_OPCODES: u32 = 150;
        let mut buffer = [0; 512];
        let mut e = Encoder::new(&mut buffer);
        let mut count = 0;
        // SAFETY: Lease.
        unsafe { &mut *self.engine }.tell_opcodes(&mut |code, modes| {
            count += 1;
            if count <= MAX_OPCODES {
                e.bytes(&code.to_le_bytes());
                e.bytes(&[modes]);
            }
            count <= MAX_OPCODES
        });
        if count > 0 {
            shard_writer::append(e.finish(FrameKind::Opcodes));
        }
    }

    /// Ends the verification.
    pub fn end(&mut self) {
        if core::mem::take(&mut self.active) {
            self.store_result(None);
            self.store_opcodes();
            engines::release(core::mem::replace(&mut self.engine, null_mut()));
            SHARED.busy.store(false, Release);
        }
    }
}

impl Registers {
    fn from_state(state: &State) -> Self {
        let mut general = [0; REGISTERS];
        for (to, from) in general.iter_mut().zip(state.general()) {
            *to = *from;
        }
        general[REGISTERS - 2] = state.rflags();
        general[REGISTERS - 1] = state.pc();
        let mut others = [0u32; OTHERS];
        for (to, vector) in others.iter_mut().zip(state.vectors()) {
            *to = hash(vector.iter().copied());
        }
        others[MASKS] = hash(state.masks().iter().copied());
        // Control, status and tags of the x87, without the address of its last instruction.
        let x87 = state.x87();
        let word = |at: usize| {
            let bytes = x87.get(at..at + 8).and_then(|b| <[u8; 8]>::try_from(b).ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let registers = (0..8).flat_map(|register| [word(32 + 16 * register), word(40 + 16 * register) & 0xffff]);
        others[X87] = hash(registers.chain([word(0) & 0xff_ffff_ffff]));
        others[MXCSR] = state.mxcsr();
        Self {
            general,
            others,
            taint: Taint::NONE,
        }
    }
}
