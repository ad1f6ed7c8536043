//! Bursts: the trap flag makes the processor trap after each instruction, and the taken branches are noted.
//!
//! A trap that arrives while SIGTRAP is blocked or has another handler would end the program. So a burst does not start
//! there, and it ends before every instruction that could lead there: system calls that are not known to be harmless,
//! and instructions that touch the flag. Signals are safe: the kernel saves the flag in the signal frame and clears
//! it for the handler, and the burst goes on when the handler has returned.

use crate::burst::sampler::Sampler;
use crate::interpose::signals;
use crate::mappings::{self, Range};
use crate::signal_entry::{self, Context};
use crate::sys::{self, KernelAction};
use crate::tick;
use crate::{process, settings};
use pleach_collector::vector::{EndReason, Engine};
use pleach_collector::x86::{self, Instruction, Kind};

/// Direct-mapped, by address.
const CACHE_ENTRIES: usize = 4096;
/// Longest repeated string instruction, in iterations, that is worth a trap for each.
const MAX_REPEAT: u64 = 64;
/// Instructions of a burst for each taken branch it may have; more are a stretch without end.
const STEPS_PER_BRANCH: u64 = 64;

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    target: u64,
    length: u8,
    kind: Kind,
}

impl Entry {
    fn next(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.length))
    }
}

/// The trap-flag engine's state in one thread.
#[derive(Debug)]
pub struct Stepper {
    active: bool,
    /// Bursts given up whose trap flag may still come back from a signal frame.
    abandoned: u32,
    /// The instruction that the next trap completes.
    stepped: Entry,
    /// CPU time within the burst that was the program's, in system calls.
    program_ns: u64,
    /// Measured cost of a trap.
    trap_ns: u64,
    system_call_since: Option<u64>,
    traps: u64,
    range: Range,
    version: u32,
    unknown: bool,
    cache: [Entry; CACHE_ENTRIES],
}

impl Stepper {
    /// Makes zeroed memory a valid value.
    ///
    /// # Safety
    /// `this` points to a zeroed value.
    pub unsafe fn reset(this: *mut Self) {
        // SAFETY: the one field for which zeroes may be no value.
        unsafe { (&raw mut (*this).system_call_since).write(None) };
    }

    /// Starts over in a new thread or process.
    pub fn begin(&mut self) {
        self.trap_ns = settings::step_ns();
        self.active = false;
        self.abandoned = 0;
    }

    /// Whether a burst is going on.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether traps would reach us.
    pub fn is_possible(context: &Context) -> bool {
        context.mask & sys::bit(libc::SIGTRAP) == 0 && trap_is_ours()
    }

    /// Whether a burst can begin with the next instruction.
    pub fn can_begin(&mut self, context: &Context) -> bool {
        self.renew();
        let can = self.prepare(context).is_ok();
        self.system_call_since = None;
        can
    }

    /// Drops what was decoded if code may have been replaced.
    fn renew(&mut self) {
        let version = mappings::version();
        if version != self.version {
            self.version = version;
            self.range = Range::default();
            for entry in &mut self.cache {
                entry.address = 0;
            }
        }
    }

    /// Looks at the instruction about to run. `Err`: it must run without the flag.
    fn prepare(&mut self, context: &Context) -> Result<(), EndReason> {
        let pc = context.pc();
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
        let slot = (address ^ address >> 12) as usize % CACHE_ENTRIES;
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
            // SAFETY: within a file's executable mapping.
            let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, x86::MAX_LENGTH) };
            x86::decode(bytes, address)
        } else {
            // Code that somebody generates, or an address about to fault: let the kernel look.
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

impl Sampler {
    /// A tick within a burst.
    pub fn step_again(&mut self, context: &mut Context, cpu: u64) {
        if context.trap_flag() {
            // Still at it.
            tick::arm(self, self.watchdog_ns());
            return;
        }
        // A handler of the program is running, or left the burst behind for good.
        self.step.abandoned = self.step.abandoned.saturating_add(1);
        self.end_steps(EndReason::Signal, self.step.stepped.address, cpu);
    }

    /// Begins a burst.
    pub fn step_first(&mut self, context: &mut Context) {
        let step = &mut self.step;
        step.program_ns = 0;
        step.system_call_since = None;
        step.traps = 0;
        step.unknown = false;
        step.renew();
        step.active = true;
        match step.prepare(context) {
            Ok(()) => {
                self.record.instructions += u32::from(step.system_call_since.is_some());
                context.set_trap_flag(true);
                tick::arm(self, self.watchdog_ns());
            }
            Err(reason) => self.end_steps(reason, context.pc(), sys::thread_cpu_ns()),
        }
    }

    /// How long to wait for a burst: a tick after that shows whether it was left for good, by `longjmp` from a handler.
    fn watchdog_ns(&self) -> u64 {
        (self.step.trap_ns * self.burst * 2).clamp(1_000_000, 20_000_000)
    }

    /// A trap: one instruction more has run. True: it was ours.
    pub fn trap(&mut self, context: &mut Context) -> bool {
        if !context.trap_flag() {
            return false;
        }
        let step = &mut self.step;
        if !step.active {
            // The flag of a burst given up, back from a signal frame.
            if step.abandoned == 0 && !process::is_stopped() {
                return false;
            }
            step.abandoned = step.abandoned.saturating_sub(1);
            context.set_trap_flag(false);
            return true;
        }
        if process::is_stopped() {
            step.active = false;
            context.set_trap_flag(false);
            return true;
        }
        if let Some(since) = step.system_call_since.take() {
            let spent = sys::thread_cpu_ns().saturating_sub(since);
            step.program_ns += spent.saturating_sub(step.trap_ns);
        }
        step.traps += 1;
        let (traps, pc, from) = (step.traps, context.pc(), step.stepped.address);
        let end = match self.advance(pc) {
            Err(reason) => Some((reason, self.step.stepped.address)),
            Ok(()) if u64::from(self.record.branches) >= self.burst => Some((EndReason::Budget, pc)),
            Ok(()) if traps >= self.burst.saturating_mul(STEPS_PER_BRANCH) => Some((EndReason::Budget, pc)),
            Ok(()) if self.verify.is_over(from, context) => Some((EndReason::Budget, pc)),
            Ok(()) => {
                let prepared = self.step.prepare(context);
                // The system call runs on the way.
                self.record.instructions += u32::from(self.step.system_call_since.is_some());
                prepared.err().map(|reason| (reason, pc))
            }
        };
        if let Some((reason, end)) = end {
            context.set_trap_flag(false);
            self.end_steps(reason, end, sys::thread_cpu_ns());
        }
        true
    }

    /// Notes what the completed instruction did; `pc` is where control is now.
    fn advance(&mut self, pc: u64) -> Result<(), EndReason> {
        let stepped = self.step.stepped;
        let taken = match stepped.kind {
            Kind::IndirectJump | Kind::IndirectCall | Kind::Return => pc != stepped.address,
            Kind::Jump | Kind::Call => pc == stepped.target,
            Kind::Conditional => pc == stepped.target && pc != stepped.next(),
            _ => false,
        };
        if taken {
            self.record.instructions += 1;
            self.record.branch(stepped.address, pc);
        } else if pc == stepped.next() && !stepped.kind.is_unconditional() {
            self.record.instructions += 1;
        } else if pc != stepped.address {
            // A handler of the program moved it, or the kernel aborted a restartable sequence.
            return Err(EndReason::Signal);
        }
        Ok(())
    }

    /// Ends the burst. `cpu` is the thread's CPU time now.
    fn end_steps(&mut self, reason: EndReason, end: u64, cpu: u64) {
        let step = &mut self.step;
        step.active = false;
        // The instructions themselves are the program's, whatever becomes of the rest.
        let ours = cpu
            .saturating_sub(self.record.begin_cpu_ns)
            .saturating_sub(step.program_ns)
            .saturating_sub(u64::from(self.record.instructions));
        // With a handler of the program in between, the clock says nothing about our cost.
        let ours = if reason == EndReason::Signal {
            ours.min(step.traps * step.trap_ns)
        } else {
            ours
        };
        if reason == EndReason::Budget && step.traps >= 32 {
            step.trap_ns = (3 * step.trap_ns + ours / step.traps) / 4;
        }
        self.record.unknown = step.unknown;
        self.verify.end();
        self.finish(Engine::Step, reason, end, cpu, ours);
    }
}

/// Whether a trap would reach us: the program may have changed the action by a raw system call.
fn trap_is_ours() -> bool {
    let mut action = KernelAction::default();
    sys::signal_action(libc::SIGTRAP, None, Some(&mut action)) == 0 && action.handler == tick::trap_handler()
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

/// SIGTRAP. Runs on the handlers' stack with all signals blocked.
pub extern "C" fn on_trap(signal: i32, info: *mut libc::siginfo_t, context: *mut core::ffi::c_void) {
    const TRAP_TRACE: i32 = 2;
    // SAFETY: the kernel's frame.
    let (info, context) = unsafe { (&mut *info, &mut *context.cast::<Context>()) };
    // SAFETY: null, or this thread's, or the parent's of a `vfork` child, which sleeps and is not in a burst.
    let thread = unsafe { signal_entry::current_thread().as_mut() };
    if info.si_code == TRAP_TRACE && thread.is_some_and(|thread| thread.sampler.get_mut().trap(context)) {
        return;
    }
    signals::deliver(signal, info, context);
}
