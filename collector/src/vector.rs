//! Branch vectors: what every engine produces and everything downstream reads.

mod compressed;
pub mod coverage;
mod in_turn;
mod join;

pub use compressed::{Compressed, Epoch, Window};
pub use in_turn::in_turn;
pub use join::{JoinError, join};
pub use pleach_wire::kinds::{EndReason, Engine};

use std::fmt;
use std::path::PathBuf;

/// Position of a module in [`VectorSet::modules`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModuleId(pub u32);

impl ModuleId {
    /// Code that belongs to no file: JIT-mapped pages, the vDSO, addresses outside every mapping.
    pub const EXTERNAL: Self = Self(u32::MAX);
}

/// A code address that means the same in every process: a module and an offset in its *file*.
///
/// In [`ModuleId::EXTERNAL`] the offset is the run-time address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CodeAddress {
    /// The mapped file.
    pub module: ModuleId,
    /// Offset in the file, not a virtual address: ELF program headers translate it.
    pub offset: u64,
}

/// One taken branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Branch {
    /// Address of the branch instruction.
    pub from: CodeAddress,
    /// Address that control reached.
    pub to: CodeAddress,
}

/// Position of an event's name in [`VectorSet::events`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventId(pub u32);

/// Whether the processor had predicted a branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Prediction {
    /// The hardware does not say.
    #[default]
    Unknown = 0,
    /// It had predicted it.
    Predicted = 1,
    /// It had mispredicted it.
    Mispredicted = 2,
}

impl Prediction {
    /// Decodes a stored discriminant.
    pub fn from_u8(value: u8) -> Option<Self> {
        [Self::Unknown, Self::Predicted, Self::Mispredicted]
            .into_iter()
            .find(|prediction| *prediction as u8 == value)
    }
}

/// Facts that branch-record hardware adds to one branch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BranchFacts {
    /// Whether the branch was predicted.
    pub prediction: Prediction,
    /// Cycles since the previous branch; 0 if unknown.
    pub cycles: u16,
}

/// Facts that a hardware sample adds to a burst.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HardwareSample {
    /// The event at whose overflow the branches were read.
    pub event: EventId,
    /// The instruction pointer of the sample. It need not follow the last branch, because samples arrive late.
    pub ip: CodeAddress,
    /// One for each branch; empty if the hardware reports neither prediction nor cycles.
    pub facts: Box<[BranchFacts]>,
}

/// The time of taken branches right after a burst, measured between two executions of an instruction that recurs there
/// ([`pleach_wire::timing_target`]).
///
/// Ticks sample CPU time: code that takes twice as long per branch is sampled twice as often per branch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BurstTiming {
    /// Taken branches, estimated from their distances in the burst; above zero.
    pub branches: f32,
    /// CPU time of the program for these branches in nanoseconds, without the cost of the measurement; not below zero.
    ///
    /// The cost of the measurement varies by some hundred nanoseconds, so fast code needs the mean of several bursts.
    pub nanoseconds: f32,
}

/// An operand that was observed: what a division divides by, or the length of a memory operation, which is a call of
/// `memcpy`, `memmove`, `memset`, `memcmp` or `bcmp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObservedValue {
    /// Position of the last branch before it. Of a memory operation it enters the routine: it is the call, or a jump
    /// that the call led to.
    pub branch: u32,
    /// The instruction that divides; `None` for a memory operation.
    pub division: Option<CodeAddress>,
    /// The divisor, as many bits as the instruction reads; or the length in bytes.
    pub value: u64,
}

/// A sample of a kernel event: a page fault, a context switch. The kernel takes it, whatever the engine; it has no
/// branches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventSample {
    /// The event.
    pub event: EventId,
    /// Kernel thread id.
    pub thread: u32,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The instruction of the program at which the event occurred; after a system call, the instruction behind it.
    pub at: CodeAddress,
    /// Number of events that the sample represents.
    pub period: u64,
}

/// Consecutive taken branches of one thread, oldest first.
///
/// Between `branches[i].to` and `branches[i + 1].from` control fell through.
#[derive(Clone, PartialEq, Debug)]
pub struct Burst {
    /// Position in [`VectorSet::processes`].
    pub process: u32,
    /// Kernel thread id.
    pub thread: u32,
    /// Nanoseconds of `CLOCK_MONOTONIC` when the burst began.
    pub time_ns: u64,
    /// The engine that produced it.
    pub engine: Engine,
    /// The address at which the thread was interrupted. The code from here to the first branch is biased towards slow
    /// code.
    pub start: Option<CodeAddress>,
    /// The taken branches.
    pub branches: Vec<Branch>,
    /// Values that were observed meanwhile, in their order; empty for engines that cannot see registers.
    pub values: Vec<ObservedValue>,
    /// The address at which the burst stopped: the code from the last branch's target up to this address ran.
    pub end: Option<CodeAddress>,
    /// Why it stopped.
    pub end_reason: EndReason,
    /// The number of the system call before which it stopped, if it did and the engine knows it.
    pub system_call: Option<u32>,
    /// Instructions from `start` to `end`, 0 where the engine cannot count them.
    pub instructions: u32,
    /// Number of equal bursts that this one represents.
    pub count: u64,
    /// The program is known to have executed the burst. Shadow execution only predicts: its burst is proved if the
    /// program was isolated (one thread, no signal handlers, no shared memory) and is known to have passed the end of
    /// the burst.
    pub proved: bool,
    /// Facts from branch-record hardware. Boxed, because most bursts have none.
    pub hardware: Option<Box<HardwareSample>>,
    /// Time of the branches after the burst. It is measured for a share of the bursts of [`Engine::RunAhead`].
    pub timing: Option<BurstTiming>,
}

/// A GNU build-id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(pub Vec<u8>);

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// A file that was mapped executable in some sampled process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Module {
    /// Path as the kernel reported it.
    pub path: PathBuf,
    /// Identity of the build, where the file has one.
    pub build_id: Option<BuildId>,
    /// Executable mappings seen, as (run-time start, run-time end, file offset), with the process that had them.
    pub mappings: Vec<ModuleMapping>,
}

/// One executable mapping of a module in one process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModuleMapping {
    /// Position in [`VectorSet::processes`].
    pub process: u32,
    /// First run-time address.
    pub start: u64,
    /// One past the last run-time address.
    pub end: u64,
    /// Offset in the file of the first byte.
    pub file_offset: u64,
}

/// One sampled process image (a new one after `execve`).
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Position of the parent's record, for a child made by `fork`.
    pub parent: Option<u32>,
    /// Command line, arguments separated by a space.
    pub command: String,
    /// CPU seconds of the program, the sampler's own excluded.
    pub program_cpu_seconds: f64,
    /// CPU seconds that the sampler took in this process, all its costs included.
    pub own_cpu_seconds: f64,
    /// Bursts that could not be stored.
    pub lost: u64,
    /// Ticks at which sampling was declined (blocked signals, foreign handlers, no stack space).
    pub declined: u64,
    /// The process ended by its own call of `exit` or `_exit` (or by returning from `main`), and never had a second
    /// thread or a signal handler. Only its own calls can have ended its activations early.
    pub undisturbed: bool,
}

/// Everything one recording produced.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VectorSet {
    /// Mapped files, referred to by [`ModuleId`].
    pub modules: Vec<Module>,
    /// Sampled process images.
    pub processes: Vec<Process>,
    /// Names of hardware events (`cycles:u`) and kernel events (`page-faults`), referred to by [`EventId`].
    pub events: Vec<String>,
    /// Bursts in the order they were stored.
    pub bursts: Vec<Burst>,
    /// Samples of kernel events.
    pub samples: Vec<EventSample>,
    /// A sample of the bursts that exceeded the size limit.
    pub compressed: Option<Compressed>,
    /// What breakpoints showed, by module; empty if there were none.
    pub coverage: Vec<coverage::ModuleCoverage>,
}

impl VectorSet {
    /// Recorded bursts, compressed ones included.
    pub fn burst_count(&self) -> u64 {
        let stored: u64 = self.bursts.iter().map(|burst| burst.count).sum();
        let epochs = self.compressed.iter().flat_map(|compressed| &compressed.epochs);
        stored + epochs.map(|epoch| epoch.bursts).sum::<u64>()
    }
}
