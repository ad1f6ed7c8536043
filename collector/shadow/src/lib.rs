//! Shadow execution: what a thread will do next, found without letting it do it.
//!
//! An [`Engine`] runs ahead from the registers of an interrupted thread, on copies. Common integer instructions are
//! interpreted; all others are run by the processor, one at a time, on the shadow's registers. Stores go to a private
//! overlay, where later loads find them. What cannot be known (`rdtsc`, `cpuid` …) is marked, and what is computed from it. A
//! burst ends at a system call, where something marked decides, at a fault, or when a budget is used up. The program never sees any of it.
//!
//! [`Engine::run`] is for signal handlers: no allocation, locks, thread-local storage, system calls or panics. The
//! signals SIGSEGV, SIGBUS, SIGFPE and SIGILL must not be blocked while it runs (the kernel kills a process that faults
//! with the signal blocked), and their handlers have to call [`recover`] first.
//!
//! ```no_run
//! use core::ffi::c_void;
//! use pleach_shadow::{Engine, Limits, recover};
//!
//! static mut ENGINE: *mut Engine = core::ptr::null_mut(); // set by `Engine::reserve()` at start-up
//!
//! extern "C" fn on_tick(_signal: i32, _info: *mut c_void, context: *mut c_void) {
//!     // SAFETY: one thread only.
//!     let engine = unsafe { &mut *ENGINE };
//!     // SAFETY: this handler's context.
//!     unsafe { engine.load_frame(context) };
//!     let outcome = engine.run_loaded(&Limits::default(), &mut |from, to| drop((from, to)));
//!     let _ = outcome.end;
//! }
//!
//! extern "C" fn on_fault(_signal: i32, _info: *mut c_void, context: *mut c_void) {
//!     // SAFETY: as above.
//!     if unsafe { recover(ENGINE, context) } {
//!         return;
//!     }
//!     // The program's own fault.
//! }
//! ```
//!
//! Not noticed: stores to memory that may not be written. Other threads go on meanwhile: what they store is seen too early
//! or not at all.

mod alu;
mod blocks;
mod decode;
mod fault;
mod fetch;
mod gather;
mod interpret;
mod memory;
mod native;
mod observe;
mod op;
mod opcodes;
mod overlay;
mod rewrite;
mod save;
mod state;
mod strings;
mod sys;
mod taint;
mod thunk;

pub use fault::recover;
pub use opcodes::Handling;
pub use state::State;
pub use taint::Taint;

use blocks::{Blocks, Shelf};
use core::ffi::c_void;
use core::mem::size_of;
use iced_x86::InstructionInfoFactory;
use overlay::Overlay;
use state::Machine;
use thunk::Thunks;

/// Why a burst ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum End {
    /// As many taken branches as allowed.
    Branches = 0,
    /// As many instructions as allowed.
    Instructions = 1,
    /// As many newly decoded instructions as allowed.
    Decodes = 2,
    /// The next instruction is a system call.
    SystemCall = 3,
    /// The next instruction depends on what cannot be known: the time, for instance.
    Taint = 4,
    /// The next instruction cannot be followed.
    Instruction = 5,
    /// The next instruction faults: memory that is not there, a division by zero, an undecodable byte.
    Fault = 6,
    /// No room for more stores.
    OverlayFull = 7,
    /// A repeated string instruction over too much memory.
    Repeat = 8,
    /// The same state came twice: the program waits for something.
    Spin = 9,
    /// The next instruction was written by the burst itself.
    ModifiedCode = 10,
}

/// What a burst may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Taken branches.
    pub max_branches: u32,
    /// Instructions.
    pub max_instructions: u32,
    /// Instructions decoded for the first time, which cost as much as some twenty that are known.
    pub max_new_decodes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_branches: 1000,
            max_instructions: 64_000,
            max_new_decodes: 1000,
        }
    }
}

/// What a burst was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// Address of the first instruction that did not run.
    pub end_pc: u64,
    /// Instructions that ran.
    pub instructions: u32,
    /// Taken branches among them.
    pub branches: u32,
    /// Instructions decoded for the first time.
    pub decodes: u32,
    /// Instructions run by the processor.
    pub thunks: u32,
}

/// A shadow processor with its memory.
#[repr(C, align(4096))]
pub struct Engine {
    state: State,
    /// Stack pointer to which a fault returns.
    stack: u64,
    /// Between the begin and the end of a burst.
    running: bool,
    end: End,
    /// Number of the burst, 1 to 65535.
    generation: u16,
    instructions_left: u32,
    branches_left: u32,
    decodes_left: u32,
    thunks_run: u32,
    /// Instructions with something marked that the burst may still have.
    tainted_left: u32,
    taint: Taint,
    /// Something is marked.
    is_tainted: bool,
    /// Stores and other things that make progress.
    effects: u32,
    spin: Spin,
    sink: Option<Sink>,
    machine: Machine,
    thunks: Thunks,
    info: InstructionInfoFactory,
    bounce: Bounce,
    area: save::Area,
    /// Where registers were saved last in this burst, and a hash of what was.
    saved: (u64, u64),
    opcodes: opcodes::Opcodes,
    overlay: Overlay,
    cursor: Option<fetch::Cursor>,
    /// Behind the engine.
    blocks: Shelf,
}

/// Who is told of branches.
#[derive(Clone, Copy)]
struct Sink(*mut dyn FnMut(u64, u64));

/// A state seen before.
#[derive(Clone, Copy)]
struct Spin {
    pc: u64,
    registers: [u64; 16],
    flags: u64,
    effects: u32,
    /// Branches so far.
    count: u32,
}

/// Room for a memory operand at its own place within a line.
#[repr(C, align(64))]
struct Bounce([u8; 64 + 128]);

impl core::fmt::Debug for Engine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Engine {{ state: {:?}, end: {:?} }}", self.state, self.end)
    }
}

/// Memory for an engine was refused; the kernel's error number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReserveError(pub i32);

impl core::fmt::Display for ReserveError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "no memory for shadow execution (error {})", self.0)
    }
}

impl core::error::Error for ReserveError {}

/// Bytes of an engine's mapping; its thunks have two more, of 256 KiB, of the same memory.
pub const ENGINE_SIZE: usize = size_of::<Engine>() + size_of::<Blocks>();
const _: () = assert!(ENGINE_SIZE <= 4 << 20);

impl Engine {
    /// Maps an engine and all it will ever need. Pages are touched as they are used.
    ///
    /// Not for signal handlers: the instruction decoder allocates its tables here, once in a process. Where executable
    /// memory is refused, bursts end at instructions that are not interpreted.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve() -> Result<*mut Self, ReserveError> {
        Self::with(Thunks::reserve())
    }

    /// An engine that never makes executable memory.
    ///
    /// # Errors
    /// As for [`Engine::reserve`].
    pub fn reserve_without_thunks() -> Result<*mut Self, ReserveError> {
        Self::with(Thunks::none())
    }

    fn with(thunks: Thunks) -> Result<*mut Self, ReserveError> {
        const CAPABILITIES2: u64 = 26;
        let engine = sys::map(ENGINE_SIZE, sys::READ_WRITE, sys::PRIVATE)
            .map_err(ReserveError)?
            .cast::<Self>();
        // SAFETY: the mapping is new and all zeroes, which is valid for all that is not written here.
        unsafe {
            (&raw mut (*engine).state).write(State::new());
            (&raw mut (*engine).sink).write(None);
            (&raw mut (*engine).cursor).write(None);
            (&raw mut (*engine).blocks).write(Shelf::at(engine.add(1).cast()));
            (&raw mut (*engine).machine).write(Machine::find(auxiliary(CAPABILITIES2)));
            (&raw mut (*engine).thunks).write(thunks);
            (&raw mut (*engine).info).write(InstructionInfoFactory::new());
            (*engine).warm_up();
        }
        Ok(engine)
    }

    /// Unmaps an engine.
    ///
    /// # Safety
    /// It comes from [`Engine::reserve`] and is not used any more.
    pub unsafe fn release(engine: *mut Self) {
        // SAFETY: see above.
        unsafe {
            (*engine).thunks.release();
            core::ptr::drop_in_place(&raw mut (*engine).info);
            sys::unmap(engine.cast(), ENGINE_SIZE);
        }
    }

    /// Makes the decoder allocate what it is going to need.
    fn warm_up(&mut self) {
        // vzeroall, fxrstor, cmpxchg16b and rep movs use more registers and memory than what a thunk is made for.
        for code in [
            &[0xc5, 0xfc, 0x77][..],
            &[0x0f, 0xae, 0x08],
            &[0x48, 0x0f, 0xc7, 0x08],
            &[0xf3, 0x48, 0xa5],
        ] {
            let mut decoder = iced_x86::Decoder::new(64, code, iced_x86::DecoderOptions::NONE);
            let _ = self.info.info(&decoder.decode());
        }
    }

    /// To be called in a child made by `fork` before the engine runs there.
    ///
    /// Everything but the memory of thunks is private; that one is shared with the parent, so the child gets its own. It is
    /// safe in a handler of `pthread_atfork`, not in a signal handler that interrupted [`Engine::run`].
    pub fn forked(&mut self) {
        if self.thunks.exist() {
            self.thunks.release();
            self.thunks = Thunks::reserve();
        }
        self.running = false;
        self.invalidate();
    }

    /// Drops all decoded instructions. Changed bytes are noticed without it.
    pub fn invalidate(&mut self) {
        self.blocks.clear();
        self.thunks.clear();
    }

    /// Whether instructions can be run by the processor.
    pub fn has_thunks(&self) -> bool {
        self.thunks.exist()
    }

    /// The shadow registers: before a burst what it begins with, after it what it ended with.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same, to be changed before a burst.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Copies what a signal interrupted to the shadow registers.
    ///
    /// # Safety
    /// `context` is the third argument of the handler that runs, in the thread that the signal interrupted.
    pub unsafe fn load_frame(&mut self, context: *mut c_void) {
        let machine = self.machine;
        // SAFETY: see above.
        unsafe { self.state.load_frame(context, &machine) };
    }

    /// Where the memory operand of an instruction lies, with these general registers.
    pub fn operand(&mut self, general: &[u64; 16], pc: u64, code: &[u8]) -> Option<u64> {
        let op = decode::operand_of(code, pc)?;
        let mine = self.state;
        (*self.state.general_mut(), self.state.pc) = (*general, pc);
        let address = self.address(&op);
        self.state = mine;
        Some(address)
    }

    /// What memory holds as the last burst left it, its own stores included.
    ///
    /// # Safety
    /// The memory can be read.
    pub unsafe fn read(&self, address: u64, to: &mut [u8]) {
        // SAFETY: see above.
        unsafe { memory::copy(address, to) };
        self.overlay.patch(address, to);
    }

    /// Runs ahead from a state; `sink` gets each taken branch as address and target.
    ///
    /// `sink` is left behind if it faults. What the x87 holds afterwards is the shadow's; a signal handler's return mends that.
    pub fn run(&mut self, state: &State, limits: &Limits, sink: &mut dyn FnMut(u64, u64)) -> Outcome {
        self.state = *state;
        self.run_loaded(limits, sink)
    }

    /// Runs ahead from [`Engine::state`].
    pub fn run_loaded(&mut self, limits: &Limits, sink: &mut dyn FnMut(u64, u64)) -> Outcome {
        self.begin();
        self.go_on(limits, sink)
    }

    /// Forgets the stores of the burst before.
    pub fn begin(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.blocks.age();
            self.generation = 1;
        }
        self.overlay.clear();
        (self.taint, self.is_tainted) = (Taint::NONE, false);
        self.tainted_left = taint::MOST;
        self.saved = (0, 0);
        self.effects = 0;
        (self.spin.pc, self.spin.count) = (0, 0);
    }

    /// Goes on where a burst ended.
    pub fn go_on(&mut self, limits: &Limits, sink: &mut dyn FnMut(u64, u64)) -> Outcome {
        // What a fault leaves.
        self.end = End::Fault;
        self.instructions_left = limits.max_instructions;
        self.branches_left = limits.max_branches;
        self.decodes_left = limits.max_new_decodes;
        self.thunks_run = 0;
        let sink: *mut (dyn FnMut(u64, u64) + '_) = sink;
        // SAFETY: it is dropped before this function ends; only its lifetime changes.
        self.sink = Some(Sink(unsafe {
            core::mem::transmute::<*mut (dyn FnMut(u64, u64) + '_), *mut (dyn FnMut(u64, u64) + 'static)>(sink)
        }));
        let engine: *mut Self = self;
        // SAFETY: the interpreter owns nothing. A fault leaves it through `fault::leave`.
        unsafe {
            core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut (*engine).state.host_mxcsr, options(nostack, preserves_flags));
            (&raw mut (*engine).running).write_volatile(true);
            fault::enter(engine, interpret::follow);
            (&raw mut (*engine).running).write_volatile(false);
        }
        self.sink = None;
        Outcome {
            end: self.end,
            end_pc: self.state.pc(),
            instructions: limits.max_instructions - self.instructions_left,
            branches: limits.max_branches - self.branches_left,
            decodes: limits.max_new_decodes - self.decodes_left,
            thunks: self.thunks_run,
        }
    }
}

/// An entry of the auxiliary vector.
fn auxiliary(kind: u64) -> u64 {
    unsafe extern "C" {
        fn getauxval(kind: u64) -> u64;
    }
    // SAFETY: libc's, which reads a table.
    unsafe { getauxval(kind) }
}
