//! Shadow execution: predicts the next instructions of a thread without executing them in it.
//!
//! An [`Engine`] runs ahead from the registers of an interrupted thread, on copies. Common integer instructions are
//! interpreted. The processor runs all others, one at a time, on the shadow's registers. Stores go to a private
//! overlay, which later loads read first. Values that cannot be predicted (`rdtsc`, `cpuid` …) are tainted, and so are
//! values computed from them. A burst ends at a system call, at a fault, where a tainted value decides the control
//! flow, or when a limit is reached. The program cannot observe a burst.
//!
//! [`Engine::run`] is for signal handlers. The signals SIGSEGV, SIGBUS, SIGFPE and SIGILL must not be blocked while it
//! runs (the kernel kills a process that faults with the signal blocked), and their handlers must call [`recover`]
//! first.
//!
//! # Burst invariant
//!
//! A burst lasts from `fault::enter` until it returns, or until [`recover`] returns from it in its place. During a
//! burst all of the following holds. Unsafe functions of this crate that are "called within a burst" require it, and
//! `SAFETY` notes cite its parts by name.
//!
//! - **Exclusive.** One thread uses the engine, its blocks and its thunks: the one whose handler entered the burst. A
//!   handler that interrupts the burst uses the engine only through [`recover`], which never resumes the burst.
//! - **Copies.** The interrupted thread is frozen in that handler. Its registers were copied to [`State`]; the burst
//!   changes only the copy, the overlay, and other fields of the engine. It never writes memory of the program.
//! - **Loads may fault.** The burst may load from any address, mapped or not, but only by `memory::load`: a fault there
//!   ends the burst with [`End::Fault`]. Other threads go on, so loaded bytes may change at any time. They are data: no
//!   index or pointer of the engine derives from them without a bound.
//! - **Abandonable.** A fault may end the burst at any load or thunk, and discards all frames since `enter`. Code
//!   within a burst therefore owns nothing that needs dropping, and the engine is valid at each of these points; a
//!   block that is not finished, for example, cannot be found.
//! - **Async-signal-safe.** Code within a burst does not allocate, lock, panic, make system calls, or use thread-local
//!   storage. The decoder's tables are allocated before, by [`Engine::reserve`].
//! - **Thunk code.** A thunk was emitted by `Thunks::make` since thunks were last cleared. It accesses only the state
//!   and the operand that it is given, restores the host's registers, and is not overwritten while it runs.
//!
//! ```no_run
//! use core::ffi::c_void;
//! use pleach_shadow::{Engine, Limits, recover};
//!
//! static mut ENGINE: *mut Engine = core::ptr::null_mut(); // set by `Engine::reserve()` at start-up
//!
//! extern "C" fn on_tick(_signal: i32, _info: *mut c_void, context: *mut c_void) {
//!     // SAFETY: only this thread uses the engine.
//!     let engine = unsafe { &mut *ENGINE };
//!     // SAFETY: the context is this handler's third argument.
//!     unsafe { engine.load_frame(context) };
//!     let outcome = engine.run_loaded(&Limits::default(), &mut |_observed| ());
//!     let _ = outcome.end;
//! }
//!
//! extern "C" fn on_fault(_signal: i32, _info: *mut c_void, context: *mut c_void) {
//!     // SAFETY: only this thread uses the engine, and the context is this handler's third argument.
//!     if unsafe { recover(ENGINE, context) } {
//!         return;
//!     }
//!     // The program's own fault.
//! }
//! ```
//!
//! Four inaccuracies remain. Stores to read-only memory do not fault. Stores of other threads during the burst may be
//! seen too early or not at all. Code that the burst itself changes after it has run it is not run again as changed.
//! Loads from the registers of a device that a program has mapped are loads: what they clear is gone.

#![allow(unsafe_code, reason = "it executes another program's instructions on its memory")]

mod access;
mod alu;
mod blocks;
mod decode;
mod fault;
mod fetch;
mod gather;
mod interpret;
mod memory;
mod native;
mod op;
mod opcodes;
mod operand;
mod overlay;
mod pages;
mod rewrite;
mod save;
mod state;
mod strings;
mod sys;
mod taint;
mod thunk;

pub use fault::recover;
pub use opcodes::Handling;
pub use pages::{Page, ReadPage};
pub use state::{FLOATING_IMAGE, Registers, State};
pub use taint::Taint;

use blocks::{Blocks, Shelf};
use core::ffi::c_void;
use core::mem::size_of;
use iced_x86::InstructionInfoFactory;
use overlay::Overlay;
use pages::Pages;
use pleach_wire::kinds::EndReason;
use state::Machine;
use thunk::Thunks;

/// Why a burst ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum End {
    /// The limit of taken branches was reached.
    Branches = 0,
    /// The limit of instructions was reached.
    Instructions = 1,
    /// The limit of newly decoded instructions was reached.
    Decodes = 2,
    /// The next instruction is a system call.
    SystemCall = 3,
    /// The next instruction depends on a value that cannot be predicted, such as the time.
    Taint = 4,
    /// The next instruction is not supported.
    Instruction = 5,
    /// The next instruction faults: unmapped memory, a division by zero, an invalid encoding.
    Fault = 6,
    /// The overlay has no space for another store.
    OverlayFull = 7,
    /// A repeated string instruction exceeds the limit of iterations.
    Repeat = 8,
    /// A state recurred: the program waits for another thread or a signal.
    Spin = 9,
    /// The burst itself has written the next instruction.
    ModifiedCode = 10,
}

impl From<End> for EndReason {
    fn from(end: End) -> Self {
        match end {
            End::Branches | End::Instructions => Self::Budget,
            End::Decodes => Self::Decoding,
            End::SystemCall => Self::SystemCall,
            End::Taint => Self::Unknown,
            End::Instruction | End::ModifiedCode => Self::Instruction,
            End::Fault => Self::Fault,
            End::OverlayFull | End::Repeat => Self::Memory,
            End::Spin => Self::Spin,
        }
    }
}

/// The limits of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Taken branches.
    pub max_branches: u32,
    /// Instructions.
    pub max_instructions: u32,
    /// Instructions decoded for the first time; each costs about as much as twenty decoded ones.
    pub max_new_decodes: u32,
}

impl Limits {
    /// Limits of a sampled burst of `max_branches` taken branches.
    pub fn of_sample(max_branches: u32) -> Self {
        /// Instructions for each taken branch.
        const INSTRUCTIONS_PER_BRANCH: u32 = 64;
        /// Decoding costs the most.
        const MAX_NEW_DECODES: u32 = 2000;
        Self {
            max_branches,
            max_instructions: max_branches.saturating_mul(INSTRUCTIONS_PER_BRANCH),
            max_new_decodes: MAX_NEW_DECODES,
        }
    }
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

/// The result of a burst.
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

static ORIGINAL: std::sync::OnceLock<fn(u64) -> Option<u8>> = std::sync::OnceLock::new();

/// Sets the function that returns the original byte under a breakpoint, if any. Only the first call has an effect.
pub fn set_original(function: fn(u64) -> Option<u8>) {
    let _ = ORIGINAL.set(function);
}

/// The byte that a breakpoint at an address replaced.
fn original(address: u64) -> Option<u8> {
    ORIGINAL.get().and_then(|function| function(address))
}

/// A shadow processor with its memory.
#[repr(C, align(4096))]
pub struct Engine {
    state: State,
    /// Stack pointer to which a fault returns.
    stack: u64,
    /// A burst is running: see the burst invariant.
    running: bool,
    end: End,
    /// Number of the burst, 1 to 65535.
    generation: u16,
    instructions_left: u32,
    branches_left: u32,
    decodes_left: u32,
    thunks_run: u32,
    /// Instructions that the burst may still run while a value is tainted.
    tainted_left: u32,
    taint: Taint,
    /// A value is tainted.
    is_tainted: bool,
    /// Number of stores and other side effects, which show progress.
    effects: u32,
    spin: Spin,
    sink: Option<Sink>,
    machine: Machine,
    thunks: Thunks,
    info: InstructionInfoFactory,
    bounce: Bounce,
    area: save::Area,
    /// Address of the last register save area in this burst, and a hash of its contents.
    saved: (u64, u64),
    opcodes: opcodes::Opcodes,
    overlay: Overlay,
    cursor: Option<fetch::Cursor>,
    /// The memory of the process whose threads run ahead; null: of this process. Owned.
    pages: *mut Pages,
    /// In the same mapping, after the engine.
    blocks: Shelf,
}

/// A taken branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Address of the instruction.
    pub from: u64,
    /// Its target.
    pub to: u64,
    /// The third integer argument, if the branch enters a function: the length for `memcpy` and its like. `None`: the
    /// value cannot be predicted.
    pub third_argument: Option<u64>,
}

/// What a burst reports, in the order of execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observed {
    /// A taken branch.
    Taken(Taken),
    /// A division of general registers that did not fault.
    Division {
        /// Address of the instruction.
        at: u64,
        /// What it divides by, as many bits as the instruction reads.
        divisor: u64,
    },
}

/// The callback for what is observed.
#[derive(Clone, Copy)]
struct Sink(*mut dyn FnMut(Observed));

/// An earlier state, for the detection of spinning.
#[derive(Clone, Copy)]
struct Spin {
    pc: u64,
    registers: [u64; 16],
    flags: u64,
    effects: u32,
    /// Branches so far.
    count: u32,
}

/// A buffer for a memory operand, at the operand's offset within a cache line.
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

/// Bytes of an engine's mapping. Its thunks have two more mappings of the same 256 KiB.
pub const ENGINE_SIZE: usize = size_of::<Engine>() + size_of::<Blocks>();
const _: () = assert!(ENGINE_SIZE <= 4 << 20);

impl Engine {
    /// Maps an engine with all memory that it will use. Pages are touched on demand.
    ///
    /// Not async-signal-safe: the instruction decoder allocates its tables here, once in a process. If the kernel
    /// refuses executable memory, bursts end at instructions that are not interpreted.
    ///
    /// # Errors
    /// The kernel refuses the memory.
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
        // SAFETY: the mapping is new and all zeroes, which is a valid value of every field that is not written here.
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
        // SAFETY: the caller passes the owner of the mapping, and no burst runs.
        unsafe {
            (*engine).thunks.release();
            (*engine).read_own_memory();
            core::ptr::drop_in_place(&raw mut (*engine).info);
            sys::unmap(engine.cast(), ENGINE_SIZE);
        }
    }

    /// Keeps an engine out of children made by `fork`, which cost less without its memory. False if the kernel refuses:
    /// children then have it, and [`Engine::forked`] is for them.
    ///
    /// # Safety
    /// It comes from [`Engine::reserve`], and was not released.
    pub unsafe fn keep_from_children(engine: *mut Self) -> bool {
        // SAFETY: by the caller.
        let thunks = unsafe { &(*engine).thunks };
        let set = |is_inherited| {
            sys::set_inherited(engine.cast(), ENGINE_SIZE, is_inherited) && thunks.set_inherited(is_inherited)
        };
        let is_kept = set(false);
        if !is_kept {
            set(true);
        }
        is_kept
    }

    /// Makes the decoder allocate all memory that it will need.
    fn warm_up(&mut self) {
        // vzeroall, fxrstor, cmpxchg16b and rep movs use more registers and memory operands than any supported
        // instruction.
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

    /// Must be called in a child of `fork` before the engine runs there.
    ///
    /// The memory of thunks is shared with the parent, so the child gets its own; all other memory is private. This may
    /// be called in a handler of `pthread_atfork`, but not in a signal handler that interrupted [`Engine::run`].
    pub fn forked(&mut self) {
        if self.thunks.exist() {
            self.thunks.release();
            self.thunks = Thunks::reserve();
        }
        self.running = false;
        self.invalidate();
    }

    /// Drops all decoded instructions. Not needed after changes of code, which are detected.
    pub fn invalidate(&mut self) {
        self.blocks.clear();
        self.thunks.clear();
    }

    /// The number of the system call before which the last burst ended. `None`: it cannot be predicted.
    pub fn system_call(&self) -> Option<u32> {
        const RAX: usize = 0;
        let number = self.state.registers[RAX] as u32;
        (self.taint.general & 1 << RAX == 0).then_some(number)
    }

    /// Whether the processor can run instructions for the shadow.
    pub fn has_thunks(&self) -> bool {
        self.thunks.exist()
    }

    /// The shadow registers: the start state before a burst, the end state after it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The shadow registers, to be changed before a burst.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Copies the registers of the interrupted thread to the shadow registers.
    ///
    /// # Safety
    /// `context` is the third argument of the handler that runs, in the thread that the signal interrupted.
    pub unsafe fn load_frame(&mut self, context: *mut c_void) {
        let machine = self.machine;
        // SAFETY: the caller makes the same promise.
        unsafe { self.state.load_frame(context, &machine) };
    }

    /// Copies the registers of a stopped thread, of this process or another, to the shadow registers.
    pub fn load_registers(&mut self, registers: &Registers<'_>) {
        let machine = self.machine;
        self.state.load_registers(registers, &machine);
    }

    /// Bursts read the memory of another process from now on. They may then run outside of signal handlers; faults of
    /// thunks still need [`recover`].
    pub fn read_memory_of_other(&mut self, read: ReadPage) {
        self.read_own_memory();
        self.invalidate();
        self.pages = Box::into_raw(Box::new(Pages::new(read)));
    }

    /// Bursts read the memory of this process, as at first.
    fn read_own_memory(&mut self) {
        let pages = core::mem::replace(&mut self.pages, core::ptr::null_mut());
        if !pages.is_null() {
            // SAFETY: it comes from `Box::into_raw`, and no burst runs.
            drop(unsafe { Box::from_raw(pages) });
        }
    }

    /// The address of an instruction's memory operand, given the general registers.
    pub fn operand(&mut self, general: &[u64; 16], pc: u64, code: &[u8]) -> Option<u64> {
        let op = operand::read_memory_operand(code, pc)?;
        let mine = self.state;
        (*self.state.general_mut(), self.state.pc) = (*general, pc);
        let address = self.address(&op);
        self.state = mine;
        Some(address)
    }

    /// Reads memory as the last burst left it, including its own stores.
    ///
    /// # Safety
    /// The memory is readable.
    pub unsafe fn read(&self, address: u64, to: &mut [u8]) {
        // SAFETY: outside of a burst a fault would not be recovered, but the caller promises that there is none.
        unsafe { memory::copy(address, to) };
        self.overlay.patch(address, to);
    }

    /// Runs ahead from a state; `sink` gets each taken branch.
    ///
    /// If `sink` faults, it is abandoned like the burst. The x87 state is clobbered; `sigreturn` restores it.
    pub fn run(&mut self, state: &State, limits: &Limits, sink: &mut dyn FnMut(Observed)) -> Outcome {
        self.state = *state;
        self.run_loaded(limits, sink)
    }

    /// Runs ahead from [`Engine::state`].
    pub fn run_loaded(&mut self, limits: &Limits, sink: &mut dyn FnMut(Observed)) -> Outcome {
        self.begin();
        self.go_on(limits, sink)
    }

    /// Begins a burst: discards the stores and taints of the previous one.
    pub fn begin(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.blocks.age();
            self.generation = 1;
        }
        self.overlay.clear();
        // SAFETY: null or the engine's own, and no burst runs.
        if let Some(pages) = unsafe { self.pages.as_mut() } {
            pages.forget();
        }
        (self.taint, self.is_tainted) = (Taint::NONE, false);
        self.tainted_left = taint::MAX_TAINTED_INSTRUCTIONS;
        self.saved = (0, 0);
        self.effects = 0;
        (self.spin.pc, self.spin.count) = (0, 0);
    }

    /// Continues where the burst ended, with new limits.
    pub fn go_on(&mut self, limits: &Limits, sink: &mut dyn FnMut(Observed)) -> Outcome {
        // The result if a fault ends the burst.
        self.end = End::Fault;
        self.instructions_left = limits.max_instructions;
        self.branches_left = limits.max_branches;
        self.decodes_left = limits.max_new_decodes;
        self.thunks_run = 0;
        let sink: *mut (dyn FnMut(Observed) + '_) = sink;
        // SAFETY: only the lifetime changes, and the field is cleared before this function returns.
        self.sink = Some(Sink(unsafe {
            core::mem::transmute::<*mut (dyn FnMut(Observed) + '_), *mut (dyn FnMut(Observed) + 'static)>(sink)
        }));
        let engine: *mut Self = self;
        // SAFETY: this establishes the burst invariant. Exclusive: `self` is borrowed mutably, and is used only through
        // `engine` until `enter` returns. Abandonable: `follow` owns nothing that needs dropping.
        unsafe {
            core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut (*engine).state.host_mxcsr, options(nostack, preserves_flags));
            (&raw mut (*engine).running).write_volatile(true);
            fault::enter(engine, interpret::follow);
            (&raw mut (*engine).running).write_volatile(false);
            if !(*engine).pages.is_null() {
                // Outside of signal handlers nothing restores the x87 state.
                core::arch::asm!("fninit", options(nomem, nostack, preserves_flags));
            }
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
    // SAFETY: `getauxval` only reads the auxiliary vector.
    unsafe { getauxval(kind) }
}
