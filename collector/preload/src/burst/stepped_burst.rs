//! Bursts by single steps: the trap flag makes the processor trap after each instruction, and taken branches are
//! recorded.
//!
//! A trap that arrives while SIGTRAP is blocked or has another handler would end the program. So a burst does not start
//! in such a state, and ends before every instruction that could lead to it: system calls that are not known to be
//! harmless, and instructions that access the flag. Signals are safe: the kernel saves the flag in the signal frame and
//! clears it for the handler, and the burst goes on when the handler has returned.

use crate::burst::memory_operations;
use crate::burst::sampler::Sampler;
use crate::signal_entry::Context;
use crate::{process, sys};
use pleach_wire::kinds::{EndReason, Engine};
use pleach_wire::x86::Kind;

/// Maximum of a burst's instructions for each taken branch that it may have.
const STEPS_PER_BRANCH: u64 = 64;

impl Sampler {
    /// A tick within a burst.
    pub fn step_again(&mut self, context: &mut Context, cpu: u64) {
        if context.trap_flag() {
            // The burst continues.
            self.ticker.arm(self.watchdog_ns());
            return;
        }
        // A handler of the program is running, or left the burst for good.
        self.stepper.abandoned = self.stepper.abandoned.saturating_add(1);
        self.end_steps(EndReason::Signal, self.stepper.stepped.address, cpu);
    }

    /// Begins a burst.
    pub fn step_first(&mut self, context: &mut Context) {
        let step = &mut self.stepper;
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
                self.ticker.arm(self.watchdog_ns());
            }
            Err(reason) => self.end_steps(reason, context.pc(), sys::thread_cpu_ns()),
        }
    }

    /// Time after which a tick checks whether the burst was abandoned, by `longjmp` from a handler.
    fn watchdog_ns(&self) -> u64 {
        (self.stepper.trap_ns * self.ticker.burst() * 2).clamp(1_000_000, 20_000_000)
    }

    /// Handles a trap after an instruction. True if the sampler caused it.
    pub fn trap(&mut self, context: &mut Context) -> bool {
        if !context.trap_flag() {
            return false;
        }
        let step = &mut self.stepper;
        if !step.active {
            // The flag of an abandoned burst came back from a signal frame.
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
        let end = match self.advance(context) {
            Err(reason) => Some((reason, self.stepper.stepped.address)),
            Ok(()) if u64::from(self.record.branches) >= self.ticker.burst() => Some((EndReason::Budget, pc)),
            Ok(()) if traps >= self.ticker.burst().saturating_mul(STEPS_PER_BRANCH) => Some((EndReason::Budget, pc)),
            Ok(()) if self.verification.is_over(from, context) => Some((EndReason::Budget, pc)),
            Ok(()) => {
                let prepared = self.stepper.prepare(context);
                // The system call runs on the way.
                self.record.instructions += u32::from(self.stepper.system_call_since.is_some());
                prepared.err().map(|reason| (reason, pc))
            }
        };
        if let Some((reason, end)) = end {
            context.set_trap_flag(false);
            self.end_steps(reason, end, sys::thread_cpu_ns());
        }
        true
    }

    /// Records the completed instruction; `context` is the state after it.
    fn advance(&mut self, context: &Context) -> Result<(), EndReason> {
        let pc = context.pc();
        let stepped = self.stepper.stepped;
        let taken = match stepped.kind {
            Kind::IndirectJump | Kind::IndirectCall | Kind::Return => pc != stepped.address,
            Kind::Jump | Kind::Call => pc == stepped.target,
            Kind::Conditional => pc == stepped.target && pc != stepped.next(),
            _ => false,
        };
        if taken {
            self.record.instructions += 1;
            self.record.branch(stepped.address, pc);
            if memory_operations::begins_at(pc) {
                self.record.length(context.third_argument());
            }
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
        let step = &mut self.stepper;
        step.active = false;
        // The time of the instructions themselves belongs to the program, even if the burst fails.
        let ours = cpu
            .saturating_sub(self.record.begin_cpu_ns)
            .saturating_sub(step.program_ns)
            .saturating_sub(u64::from(self.record.instructions));
        // If a handler of the program ran in between, the CPU time says nothing about our cost.
        let ours = if reason == EndReason::Signal {
            ours.min(step.traps * step.trap_ns)
        } else {
            ours
        };
        if reason == EndReason::Budget && step.traps >= 32 {
            step.trap_ns = (3 * step.trap_ns + ours / step.traps) / 4;
        }
        self.record.unknown = step.unknown;
        self.verification.end();
        self.finish(Engine::Step, reason, end, cpu, ours);
    }
}
