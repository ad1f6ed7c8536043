//! The interface of an engine to the run loop.

use super::error::RecordError;
use crate::convergence::Convergence;
use crate::stats::Stats;
use crate::vector::VectorSet;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// What an engine has collected over all runs.
#[derive(Debug)]
pub(crate) struct Collected {
    /// The vectors of all runs.
    pub vectors: VectorSet,
    /// Their figures.
    pub stats: Stats,
    /// Further facts for the user, a line each.
    pub remarks: Vec<String>,
    /// See [`Recording::unreclaimed`](super::run_loop::Recording::unreclaimed).
    pub unreclaimed: bool,
}

/// An engine that is ready to record a command.
pub(crate) trait Session {
    /// The file to run.
    fn program(&self) -> &Path;

    /// Runs the command to its end and collects what was sampled. `run` counts from 0.
    fn run(&mut self, command: Command, run: u32) -> Result<ExitStatus, RecordError>;

    /// How the runs so far compare, for [`Repeat::Until`](crate::convergence::Repeat::Until).
    fn convergence(&self) -> Option<&Convergence>;

    /// Everything that was collected.
    fn finish(self: Box<Self>) -> Collected;
}
