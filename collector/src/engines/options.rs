//! How to record.

use crate::convergence::Repeat;
use crate::redirect::Redirect;
use crate::vector::Engine;
use std::path::PathBuf;
use std::time::Duration;

/// How to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// What produces the vectors: [`Engine::RunAhead`], [`Engine::Step`] or [`Engine::Lbr`].
    pub engine: Engine,
    /// The event at which [`Engine::Lbr`] samples; the best one if `None`.
    pub event: Option<String>,
    /// CPU time that the sampler may take, as a fraction of the program's: 0.01 is 1 %, 30 is 3000 %.
    pub overhead: f64,
    /// Compare shadow execution with what the program does then, instruction by instruction; that is slow.
    pub verify: bool,
    /// How long to sample each run, from its start; to its end if `None`. The command runs on afterwards.
    pub duration: Option<Duration>,
    /// A fixed mean CPU time between bursts, instead of the budget.
    pub period: Option<Duration>,
    /// Taken branches of a burst where the budget allows no more; the sampler's default if `None`.
    pub burst: Option<u32>,
    /// The sampler's library.
    pub preload: PathBuf,
    /// Makes the sequence of periods repeatable.
    pub seed: Option<u64>,
    /// How often to run the command, all into one set.
    pub repeat: Repeat,
    /// Tick by CPU timers even where perf events work.
    pub timer_only: bool,
    /// Measure for a share of bursts how long the program takes for a branch there ([`pleach_wire::anchor`]), where the
    /// kernel grants breakpoints and ticks come from events.
    pub clocks: bool,
    /// Bytes that the vectors may take in a file. Where they would take more, what there is is compressed to a sample
    /// of it, `VectorSet::compressed`; memory and temporary files are bounded, too.
    pub max_size: Option<u64>,
    /// The command's standard streams.
    pub redirect: Redirect,
}

impl RecordOptions {
    /// One run at 1 %.
    pub fn new(preload: impl Into<PathBuf>) -> Self {
        Self {
            engine: Engine::RunAhead,
            event: None,
            overhead: 0.01,
            verify: false,
            duration: None,
            period: None,
            burst: None,
            preload: preload.into(),
            seed: None,
            repeat: Repeat::Times(1),
            timer_only: false,
            clocks: false,
            max_size: None,
            redirect: Redirect::default(),
        }
    }
}
