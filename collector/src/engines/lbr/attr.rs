//! Encodes the `perf_event_attr` of each event. Makes no system calls.

use crate::perf::attr::{SAMPLE_ID_ALL, branch_type, sample_type};

/// Bytes of an attribute: all kernels since 4.1 know as many.
pub const SIZE: usize = 112;
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const FREQUENCY: u64 = 1 << 10;
const ENABLE_ON_EXEC: u64 = 1 << 12;
/// FORK and EXIT.
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const EXCLUDE_KERNEL_CALLS: u64 = 1 << 21;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;
const BUILD_ID: u64 = 1 << 34;
const SOFTWARE: u32 = 1;
const BREAKPOINT: u32 = 5;
const TASK_CLOCK: u64 = 1;
/// Both events have these, so that every record ends in the same fields.
const COMMON: u64 =
    sample_type::TID | sample_type::TIME | sample_type::CPU | sample_type::PERIOD | sample_type::IDENTIFIER;

/// The threads that an event covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A process that is about to call `execve`, and its descendants.
    FromExec,
    /// A thread that runs already, and the threads and processes that it creates. Not started.
    Running,
    /// Only the calling thread, for measurements and to find out whether the kernel grants the event. Not started.
    This,
}

impl Scope {
    fn flags(self) -> u64 {
        let flags = DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | SAMPLE_ID_ALL | USE_CLOCKID;
        match self {
            Self::FromExec => flags | INHERIT | ENABLE_ON_EXEC,
            Self::Running => flags | INHERIT,
            Self::This => flags,
        }
    }
}

/// The event that takes samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// Type.
    pub kind: u32,
    /// Configuration.
    pub config: u64,
    /// Events between two samples.
    pub period: u64,
    /// Its threads.
    pub scope: Scope,
    /// Read branch records: all kinds of branches of user code.
    pub branches: bool,
    /// Say at which hardware entry a stack begins; AMD's branch sampling and kernels before 5.7 refuse it.
    pub hardware_index: bool,
}

impl Sampling {
    /// The attribute.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut fields = Fields {
            kind: self.kind,
            config: self.config,
            period: self.period,
            sample_type: COMMON | sample_type::IP,
            flags: self.scope.flags(),
            ..Fields::default()
        };
        if self.branches {
            fields.sample_type |= sample_type::BRANCH_STACK;
            fields.branch_type = branch_type::USER | branch_type::ANY;
            if self.hardware_index {
                fields.branch_type |= branch_type::HW_INDEX;
            }
        }
        fields.to_bytes()
    }
}

/// How often a kernel event is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rate {
    /// Sample one event in `n`.
    Period(u64),
    /// Samples per second: the kernel adapts the period of each thread, and every sample has its own.
    Frequency(u64),
}

/// A software event of the kernel, whose samples have the address of the program's instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelSampling {
    /// `PERF_COUNT_SW_…`.
    pub config: u64,
    /// How often.
    pub rate: Rate,
    /// Its threads.
    pub scope: Scope,
    /// Also where the kernel runs for the program, which needs a privilege.
    pub with_kernel: bool,
}

impl KernelSampling {
    /// The attribute.
    pub fn to_bytes(self) -> Vec<u8> {
        let (period, frequency) = match self.rate {
            Rate::Period(period) => (period, 0),
            Rate::Frequency(rate) => (rate, FREQUENCY),
        };
        let kernel = if self.with_kernel { EXCLUDE_KERNEL } else { 0 };
        Fields {
            kind: SOFTWARE,
            config: self.config,
            period,
            // Where the kernel runs, the calls tell the address of the program's instruction.
            sample_type: COMMON | sample_type::IP | sample_type::CALLCHAIN,
            flags: (self.scope.flags() | frequency | EXCLUDE_KERNEL_CALLS) & !kernel,
            max_calls: 1,
            ..Fields::default()
        }
        .to_bytes()
    }
}

/// The tracking event: records mappings, names, forks and exits, and counts CPU time. It is never stopped, and owns the
/// buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tracking {
    /// Its threads.
    pub scope: Scope,
    /// Bytes in the buffer at which to wake its reader.
    pub watermark: u32,
    /// Identify mapped files by build-id instead of inode; kernels before 5.12 refuse it.
    pub build_ids: bool,
}

impl Tracking {
    /// The attribute.
    pub fn to_bytes(self) -> Vec<u8> {
        let told = MMAP | MMAP2 | COMM | COMM_EXEC | TASK | WATERMARK;
        Fields {
            kind: SOFTWARE,
            config: TASK_CLOCK,
            sample_type: COMMON,
            flags: self.scope.flags() | told | if self.build_ids { BUILD_ID } else { 0 },
            watermark: self.watermark,
            ..Fields::default()
        }
        .to_bytes()
    }
}

/// A clock event of the calling thread that sends signals and writes no records: the source of the sampler's ticks.
pub fn tick(period_ns: u64) -> Vec<u8> {
    Fields {
        kind: SOFTWARE,
        config: TASK_CLOCK,
        period: period_ns,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        // Not a watermark without its flag: overflows until a signal.
        watermark: 1,
        ..Fields::default()
    }
    .to_bytes()
}

/// A breakpoint of the calling thread that sends a signal after each `period` executions of an instruction: the sampler
/// times bursts with it.
pub fn breakpoint(address: u64, period: u64) -> Vec<u8> {
    Fields {
        kind: BREAKPOINT,
        period,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        watermark: 1,
        breakpoint: Some(address),
        ..Fields::default()
    }
    .to_bytes()
}

/// The fields in use.
#[derive(Default)]
struct Fields {
    kind: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    flags: u64,
    watermark: u32,
    branch_type: u64,
    breakpoint: Option<u64>,
    max_calls: u16,
}

impl Fields {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; SIZE];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &self.kind.to_ne_bytes());
        put(4, &(SIZE as u32).to_ne_bytes());
        put(8, &self.config.to_ne_bytes());
        put(16, &self.period.to_ne_bytes());
        put(24, &self.sample_type.to_ne_bytes());
        put(40, &self.flags.to_ne_bytes());
        put(48, &self.watermark.to_ne_bytes());
        if let Some(address) = self.breakpoint {
            const EXECUTE: u32 = 4;
            put(52, &EXECUTE.to_ne_bytes());
            put(56, &address.to_ne_bytes());
            put(64, &(size_of::<usize>() as u64).to_ne_bytes());
        }
        put(72, &self.branch_type.to_ne_bytes());
        put(92, &(libc::CLOCK_MONOTONIC).to_ne_bytes());
        put(108, &self.max_calls.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> String {
        let words = bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        let words = words.enumerate().filter(|(_, word)| *word != 0);
        words.map(|(at, word)| format!("{:3} {word:#x}\n", at * 8)).collect()
    }

    /// Checked against `include/uapi/linux/perf_event.h`.
    #[test]
    fn attributes_are_laid_out_as_the_kernel_has_them() {
        let sampling = Sampling {
            kind: 4,
            config: 0x20c4,
            period: 100_003,
            scope: Scope::FromExec,
            branches: true,
            hardware_index: true,
        };
        let tracking = Tracking {
            scope: Scope::FromExec,
            watermark: 4096,
            build_ids: true,
        };
        insta::assert_snapshot!(words(&sampling.to_bytes()), @r"
          0 0x7000000004
          8 0x20c4
         16 0x186a3
         24 0x10987
         40 0x2041063
         72 0x20009
         88 0x100000000
        ");
        insta::assert_snapshot!(words(&tracking.to_bytes()), @r"
          0 0x7000000001
          8 0x1
         24 0x10186
         40 0x403847363
         48 0x1000
         88 0x100000000
        ");
        let plain = Sampling {
            hardware_index: false,
            scope: Scope::This,
            ..sampling
        };
        let faults = KernelSampling {
            config: 2,
            rate: Rate::Frequency(1000),
            scope: Scope::FromExec,
            with_kernel: true,
        };
        insta::assert_snapshot!(words(&faults.to_bytes()), @r"
          0 0x7000000001
          8 0x2
         16 0x3e8
         24 0x101a7
         40 0x2241443
         88 0x100000000
        104 0x100000000
        ");
        insta::assert_snapshot!(words(&plain.to_bytes()), @r"
          0 0x7000000004
          8 0x20c4
         16 0x186a3
         24 0x10987
         40 0x2040061
         72 0x9
         88 0x100000000
        ");
    }
}
