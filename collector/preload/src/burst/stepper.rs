//! The trap-flag engine's state: the instruction that is stepped, and a cache of decoded instructions.

use crate::coverage;
use crate::mappings::{self, Range};
use crate::settings;
use crate::signal_entry::Context;
use crate::sys;
use pleach_wire::kinds::EndReason;
use pleach_wire::x86::{self, Instruction, Kind};

/// Entries of the cache of instructions, which is direct-mapped by address.
const CACHE_CAPACITY: usize = 4096;
/// Maximum of iterations of a repeated string instruction that are stepped, one trap for each.
const MAX_REPEAT: u64 = 64;
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) address: u64,
    pub(super) target: u64,
    length: u8,
    pub(super) kind: Kind,
}

impl Entry {
    pub(super) fn next(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.length))
    }
}

/// The trap-flag engine's state in one thread.
#[derive(Debug)]
pub struct Stepper {
    pub(super) active: bool,
    /// Abandoned bursts whose trap flag may still come back from a signal frame.
    pub(super) abandoned: u32,
    /// The instruction that the next trap completes.
    pub(super) stepped: Entry,
    /// CPU time of the program's system calls within the burst.
    pub(super) program_ns: u64,
    /// Measured cost of a trap.
    pub(super) trap_ns: u64,
    pub(super) system_call_since: Option<u64>,
    pub(super) traps: u64,
    range: Range,
    version: u32,
    pub(super) unknown: bool,
    cache: [Entry; CACHE_CAPACITY],
}

impl Stepper {
    /// Makes zeroed memory a valid value.
    ///
    /// # Safety
    /// `this` points to a zeroed value.
    pub unsafe fn reset(this: *mut Self) {
        // SAFETY: the only field for which zeroes may be invalid.
        unsafe { (&raw mut (*this).system_call_since).write(None) };
    }

    /// Starts over in a new thread or process.
    pub fn begin(&mut self) {
        self.trap_ns = settings::get().step_ns;
        self.active = false;
        self.abandoned = 0;
    }

    /// Whether a burst is going on.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether a burst can begin with the next instruction.
    pub fn can_begin(&mut self, context: &Context) -> bool {
        self.renew();
        let can = self.prepare(context).is_ok();
        self.system_call_since = None;
        can
    }

    /// Clears the cache if code may have been replaced.
    pub(super) fn renew(&mut self) {
        let version = mappings::version();
        if version != self.version {
            self.version = version;
            self.range = Range::default();
            for entry in &mut self.cache {
                entry.address = 0;
            }
        }
    }

    /// Decodes the instruction about to run. The error is the reason for which it must run without the flag.
    pub(super) fn prepare(&mut self, context: &Context) -> Result<(), EndReason> {
        let pc = context.pc();
        coverage::step_on(pc);
        let entry = self.fetch(pc).ok_or(EndReason::Instruction)?;
        match entry.kind {
            Kind::Stop => return Err(EndReason::Instruction),
            Kind::Repeat if context.registers[libc::REG_RCX as usize] > MAX_REPEAT => {
                return Err(EndReason::Instruction);
            }
            Kind::SystemCall => {
                let number = context.registers[libc::REG_RAX as usize] as i64;
                if matches!(number, libc::SYS_exit | libc::SYS_exit_group) {
                    return Err(EndReason::Exit);
                }
                if !is_harmless(number) {
                    return Err(EndReason::SystemCall);
                }
                // The kernel restores the flag as it returns, so that the trap comes after the next instruction.
                let next = self.fetch(entry.next()).ok_or(EndReason::SystemCall)?;
                if matches!(next.kind, Kind::Stop | Kind::SystemCall | Kind::Repeat) {
                    return Err(EndReason::SystemCall);
                }
                self.system_call_since = Some(sys::thread_cpu_ns());
                self.stepped = next;
                return Ok(());
            }
            _ => {}
        }
        self.stepped = entry;
        Ok(())
    }

    /// The instruction at an address; `None` if its bytes cannot be read.
    fn fetch(&mut self, address: u64) -> Option<Entry> {
        let slot = (address ^ address >> 12) as usize % CACHE_CAPACITY;
        if let Some(entry) = self
            .cache
            .get(slot)
            .filter(|entry| entry.address == address && address != 0)
        {
            return Some(*entry);
        }
        if !self.range.contains(address) {
            match mappings::find(address) {
                Some(range) => self.range = range,
                None => {
                    self.unknown = true;
                    self.range = Range::default();
                }
            }
        }
        let known = self.range.contains(address);
        let mut copy = [0u8; x86::MAX_LENGTH];
        let instruction = if known && self.range.file && self.range.end - address >= x86::MAX_LENGTH as u64 {
            // SAFETY: within a file's executable mapping. Breakpoints may come and go meanwhile.
            copy = unsafe { (address as *const [u8; x86::MAX_LENGTH]).read_volatile() };
            if let Some(byte) = coverage::original(address) {
                copy[0] = byte;
            }
            x86::decode(&copy, address)
        } else {
            // Generated code, or an address about to fault: the kernel copies the bytes that are mapped.
            let mut length = sys::read_memory(address, &mut copy);
            if length == 0 {
                let page = (4096 - (address & 4095)) as usize;
                length = sys::read_memory(address, copy.get_mut(..page.min(x86::MAX_LENGTH))?);
            }
            x86::decode(copy.get(..length)?, address)
        };
        let Instruction { length, kind, target } = instruction?;
        let entry = Entry {
            address,
            target,
            length,
            kind,
        };
        if known
            && self.range.file
            && let Some(slot) = self.cache.get_mut(slot)
        {
            *slot = entry;
        }
        Some(entry)
    }
}

/// System calls that change no mask, no handler, no thread and no memory that we rely on.
fn is_harmless(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_read..=libc::SYS_brk
            | libc::SYS_ioctl..=libc::SYS_msync
            | libc::SYS_mincore..=libc::SYS_shmctl
            | libc::SYS_dup
            | libc::SYS_dup2
            | libc::SYS_nanosleep
            | libc::SYS_getitimer
            | libc::SYS_getpid..=libc::SYS_getsockopt
            | libc::SYS_wait4
            | libc::SYS_uname
            | libc::SYS_fcntl..=libc::SYS_umask
            | libc::SYS_gettimeofday..=libc::SYS_times
            | libc::SYS_getuid
            | libc::SYS_getgid
            | libc::SYS_geteuid
            | libc::SYS_getegid
            | libc::SYS_getppid
            | libc::SYS_getpgrp
            | libc::SYS_statfs
            | libc::SYS_fstatfs
            | libc::SYS_gettid
            | libc::SYS_time
            | libc::SYS_futex
            | libc::SYS_sched_getaffinity
            | libc::SYS_getdents64
            | libc::SYS_fadvise64
            | libc::SYS_clock_gettime
            | libc::SYS_clock_nanosleep
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_ctl
            | libc::SYS_openat..=libc::SYS_faccessat
            | libc::SYS_utimensat
            | libc::SYS_fallocate
            | libc::SYS_accept4
            | libc::SYS_epoll_create1
            | libc::SYS_dup3
            | libc::SYS_pipe2
            | libc::SYS_getrandom
            | libc::SYS_statx
    )
}
