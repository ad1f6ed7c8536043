//! Records a command: chooses the engine, and has it run the command ([`crate::engines`]).

pub use crate::convergence::{Convergence, Repeat, StoppingRule};
pub use crate::engines::error::RecordError;
use crate::engines::lbr::{self, LbrSession};
pub use crate::engines::options::{CoverageMode, RecordOptions};
use crate::engines::preload::PreloadSession;
use crate::engines::ptrace::{self, PtraceSession};
pub use crate::engines::run_loop::Recording;
use crate::engines::run_loop::run_all;
use crate::engines::session::Session;
use crate::launch::LaunchError;
pub use crate::launch::is_static;
pub use crate::signals::Handlers;
use crate::vector::Engine;
pub use pleach_wire::settings::MAX_BURST;
use std::ffi::OsString;

/// Runs a command, and returns the vectors of it and its descendants. Standard streams are inherited unless
/// [`RecordOptions::redirect`] replaces them.
///
/// While the command runs, the recorder survives SIGINT and SIGQUIT, and forwards SIGTERM and SIGHUP to the command. A
/// signal ends repeated runs, and what was recorded is kept; a second one while no command runs ends the recorder. Of
/// descendants that are still running at its end, the vectors stored so far are included.
///
/// # Errors
/// The command cannot be run or sampled, or the engine cannot be used here.
pub fn record(command: &[OsString], options: &RecordOptions) -> Result<Recording, RecordError> {
    let Some(name) = command.first() else {
        return Err(LaunchError::NotFound("(nothing)".to_owned()).into());
    };
    if options.overhead.is_nan() || options.overhead <= 0.0 {
        return Err(RecordError::Overhead(options.overhead));
    }
    let mut session: Box<dyn Session> = match options.engine {
        Engine::Lbr => Box::new(LbrSession::new(name, options)?),
        Engine::RunAhead if options.from_outside => Box::new(PtraceSession::new(name, options)?),
        Engine::Step | Engine::RunAhead => Box::new(PreloadSession::new(name, options)?),
        Engine::Perf => return Err(RecordError::Engine(options.engine)),
    };
    // Between runs, too.
    let _handlers = Handlers::begin();
    let runs = run_all(command, options, session.as_mut())?;
    let convergence = session.convergence().cloned();
    Ok(Recording::new(runs, convergence, session.finish()))
}

/// Samples processes that run already until they end, [`RecordOptions::duration`] is over, or a signal ends the recording:
/// with branch records, or from outside. The processes go on undisturbed.
///
/// # Errors
/// A process does not exist or may not be sampled, or the engine cannot be used here.
pub fn attach(processes: &[u32], options: &RecordOptions) -> Result<Recording, RecordError> {
    if options.overhead.is_nan() || options.overhead <= 0.0 {
        return Err(RecordError::Overhead(options.overhead));
    }
    let _handlers = Handlers::begin();
    match options.engine {
        Engine::Lbr => lbr::attach::attach(processes, options),
        Engine::RunAhead => ptrace::attach(processes, options),
        Engine::Step | Engine::Perf => Err(RecordError::Engine(options.engine)),
    }
}
