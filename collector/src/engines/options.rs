//! Options of a recording.

use crate::convergence::Repeat;
use crate::events::KernelEvent;
use crate::redirect::Redirect;
use crate::vector::Engine;
use crate::watch::{AfterRun, Watcher};
use pleach_wire::threads::ThreadFilter;
use std::path::PathBuf;
use std::time::Duration;

/// Whether breakpoints show what is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CoverageMode {
    /// There are none.
    #[default]
    Off,
    /// Beside sampling, in the same budget.
    On,
    /// In place of sampling.
    Only,
}

/// The default of [`RecordOptions::coverage_advance`] is the budget of this CPU time: recordings with the smallest
/// budgets shall have bursts, too.
const ADVANCE_OF: Duration = Duration::from_secs(6);
/// Maximum of that default: some 15 000 hits.
const MAX_DEFAULT_ADVANCE: Duration = Duration::from_millis(60);

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The engine: [`Engine::RunAhead`], [`Engine::Step`] or [`Engine::Lbr`].
    pub engine: Engine,
    /// Sample from outside, by `ptrace`, in place of a preloaded library. With [`Engine::RunAhead`] only, without
    /// breakpoints, kernel events and measurements of time.
    pub from_outside: bool,
    /// The event at which [`Engine::Lbr`] samples; the best one if `None`.
    pub event: Option<String>,
    /// Kernel events to sample beside the bursts; not with [`Engine::Lbr`].
    pub kernel_events: Vec<KernelEvent>,
    /// CPU time that the sampler may take, as a fraction of the program's: 0.01 is 1 %, 30 is 3000 %.
    pub overhead: f64,
    /// Compare shadow execution with real execution after each instruction, which is slow.
    pub verify: bool,
    /// Wall time for which each run is sampled, from its start; until its end if `None`. The command then continues.
    pub duration: Option<Duration>,
    /// A fixed mean CPU time between bursts, instead of the budget.
    pub period: Option<Duration>,
    /// All periods are equal, as the papers' are by default. [`Engine::Lbr`] draws them nevertheless.
    pub has_equal_periods: bool,
    /// Taken branches of a burst, unless the budget allows more; the sampler's default if `None`.
    pub burst: Option<u32>,
    /// The library to preload, `libpleach_stub.so`. The sampler is beside it.
    pub preload: PathBuf,
    /// Makes the sequence of periods repeatable.
    pub seed: Option<u64>,
    /// Number of runs. All runs go into one set.
    pub repeat: Repeat,
    /// Tick by CPU timers even where perf events work.
    pub timer_only: bool,
    /// Time a share of the bursts: measure how long the program takes per branch ([`pleach_wire::timing_target`]).
    /// Requires breakpoints, and ticks from perf events.
    pub times_bursts: bool,
    /// Maximum size of the vector file, in bytes. Vectors that would exceed it are compressed to a sample,
    /// `VectorSet::compressed`. Memory and temporary files are bounded, too.
    pub max_size: Option<u64>,
    /// Whether breakpoints show what is executed. [`Engine::Lbr`] has none.
    pub coverage: CoverageMode,
    /// CPU time that breakpoints may use ahead of the budget; `None`: the budget of six seconds, at most 60 ms.
    pub coverage_advance: Option<Duration>,
    /// Which threads are sampled. [`Engine::Lbr`] samples all.
    pub threads: ThreadFilter,
    /// The command's standard streams.
    pub redirect: Redirect,
    /// What sees the bursts while the command runs.
    pub watcher: Option<Watcher>,
    /// What is told that the command is run again.
    pub after_run: Option<AfterRun>,
}

impl RecordOptions {
    /// Options for one run with an overhead of 1 %; `preload` is the path of the library to preload.
    pub fn new(preload: impl Into<PathBuf>) -> Self {
        Self {
            engine: Engine::RunAhead,
            from_outside: false,
            event: None,
            kernel_events: Vec::new(),
            overhead: 0.01,
            verify: false,
            duration: None,
            period: None,
            has_equal_periods: false,
            burst: None,
            preload: preload.into(),
            seed: None,
            repeat: Repeat::Times(1),
            timer_only: false,
            times_bursts: false,
            max_size: None,
            coverage: CoverageMode::Off,
            coverage_advance: None,
            threads: ThreadFilter::ALL,
            redirect: Redirect::default(),
            watcher: None,
            after_run: None,
        }
    }

    /// CPU time that breakpoints may take before the program has earned it by its budget.
    pub fn coverage_advance(&self) -> Duration {
        self.coverage_advance
            .unwrap_or_else(|| ADVANCE_OF.mul_f64(self.overhead).min(MAX_DEFAULT_ADVANCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakpoints_leave_some_of_the_smallest_budgets() {
        let advance = |overhead| {
            let options = RecordOptions {
                overhead,
                ..RecordOptions::new("")
            };
            options.coverage_advance()
        };
        assert_eq!(advance(0.0001), Duration::from_micros(600));
        assert_eq!(advance(0.01), Duration::from_millis(60));
        assert_eq!(advance(30.0), Duration::from_millis(60));
    }
}
