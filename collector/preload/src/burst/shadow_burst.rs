//! Bursts by shadow execution: runs ahead on a copy of the thread's state, while the program waits.

use crate::burst::engines::{self, RunningEngine};
use crate::burst::memory_operations;
use crate::burst::sampler::Sampler;
use crate::isolation;
use crate::mappings::{self, Range};
use crate::signal_entry::Context;
use crate::sys;
use pleach_shadow::{End, Limits, Observed, Taken};
use pleach_wire::kinds::{EndReason, Engine};

impl Sampler {
    /// A burst of shadow execution from the program's state.
    pub fn run_ahead(&mut self, context: &mut Context, running: &RunningEngine) {
        let Some(engine) = engines::lease(self.ordinal) else {
            self.decline(self.record.begin_cpu_ns);
            return;
        };
        let limits = Limits::of_sample(self.ticker.burst() as u32);
        self.timing.begin(&mut self.ticker);
        let (record, timing) = (&mut self.record, &mut self.timing);
        let mut range = Range::default();
        let (mut unknown, mut reads_clocks) = (false, false);
        let vdso = isolation::vdso_start();
        // SAFETY: Lease, Handler and Frame.
        let outcome = unsafe {
            engines::guarded(engine, running, |engine| {
                engine.load_frame((context as *mut Context).cast());
                engine.run_loaded(&limits, &mut |observed| {
                    let Taken {
                        from,
                        to,
                        third_argument,
                    } = match observed {
                        Observed::Taken(taken) => taken,
                        Observed::Division { at, divisor } => return record.divisor(at, divisor),
                    };
                    if !range.contains(to) {
                        range = mappings::find(to).unwrap_or_default();
                        unknown |= !range.contains(to);
                        reads_clocks |= range.contains(vdso);
                    }
                    record.branch(from, to);
                    if let Some(length) = third_argument
                        && memory_operations::begins_at(to)
                    {
                        record.length(length);
                    }
                    timing.add_target(to);
                })
            })
        };
        record.system_call = if outcome.end == End::SystemCall {
            // SAFETY: Lease: the engine is this thread's until it is released.
            unsafe { (*engine).system_call() }.map_or(0, |number| number.saturating_add(1))
        } else {
            0
        };
        engines::release(engine);
        record.unknown = unknown;
        record.is_isolated = !reads_clocks
            && !mappings::find(record.start).is_some_and(|r| r.contains(vdso))
            && isolation::is_isolated_now();
        record.instructions = outcome.instructions;
        let cpu = sys::thread_cpu_ns();
        let ours = cpu.saturating_sub(record.begin_cpu_ns);
        let (reason, time_ns) = (EndReason::from(outcome.end), record.begin_ns);
        self.finish(Engine::RunAhead, reason, outcome.end_pc, cpu, ours);
        self.timing.arm(&mut self.ticker, reason, time_ns);
    }
}
