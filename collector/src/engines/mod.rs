//! Engines: what runs a command and produces branch vectors of it.
//!
//! [`preload`] loads the sampler into the program, for shadow execution and for single-stepping. [`lbr`] reads the
//! processor's branch records through the kernel. The recorder drives both through [`Session`].

pub mod lbr;
pub mod preload;

use crate::record::{Convergence, RecordError};
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
    /// See [`Recording::unreclaimed`](crate::record::Recording::unreclaimed).
    pub unreclaimed: bool,
}

/// An engine that is ready to record a command.
pub(crate) trait Session {
    /// The file to run.
    fn program(&self) -> &Path;

    /// Runs the command to its end and collects what was sampled. `run` counts from 0.
    fn run(&mut self, command: Command, run: u32) -> Result<ExitStatus, RecordError>;

    /// How the runs so far compare, for [`Repeat::Until`](crate::record::Repeat::Until).
    fn convergence(&self) -> Option<&Convergence>;

    /// Everything that was collected.
    fn finish(self: Box<Self>) -> Collected;
}
