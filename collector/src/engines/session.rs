//! The interface of an engine to the run loop.

use super::error::RecordError;
use crate::convergence::Convergence;
use crate::stats::Stats;
use crate::vector::VectorSet;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// The vectors and figures of all runs of an engine.
#[derive(Debug)]
pub(crate) struct Collected {
    /// The vectors of all runs.
    pub vectors: VectorSet,
    /// Their figures.
    pub stats: Stats,
    /// Notes for the user, a line each.
    pub remarks: Vec<String>,
    /// See [`Recording::unreclaimed`](super::run_loop::Recording::unreclaimed).
    pub unreclaimed: bool,
}

/// An engine that is ready to record a command.
pub(crate) trait Session {
    /// The file to run.
    fn program(&self) -> &Path;

    /// Runs the command to its end and collects its vectors. `run` counts from 0.
    ///
    /// # Errors
    /// The command cannot be run or sampled.
    fn run(&mut self, command: Command, run: u32) -> Result<ExitStatus, RecordError>;

    /// Convergence of the runs so far, for [`Repeat::Until`](crate::convergence::Repeat::Until).
    fn convergence(&self) -> Option<&Convergence>;

    /// Ends the session and returns its vectors and figures.
    fn finish(self: Box<Self>) -> Collected;
}
