//! Runs a command under an engine and collects what was sampled: one run loop for all engines ([`crate::engines`]).

mod error;
mod options;

use crate::engines::{self, Collected, Session};
use crate::launch::LaunchError;
use crate::stats::Stats;
use crate::vector::{Engine, VectorSet};
pub use error::RecordError;
pub(crate) use error::io;
pub use options::RecordOptions;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

/// What a recording yields.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Of the first run that failed, else of the last.
    pub status: ExitStatus,
    /// The vectors of all runs.
    pub vectors: VectorSet,
    /// Their figures.
    pub stats: Stats,
    /// Notes for the user, a line each.
    pub remarks: Vec<String>,
    /// The file system of temporary files cannot free parts of them: with a limit on the size they took more than it
    /// allows.
    pub unreclaimed: bool,
}

/// Runs a command, its standard streams inherited where [`RecordOptions::redirect`] has no others, and returns what was
/// sampled of it and its descendants.
///
/// While it runs, SIGINT and SIGQUIT are left to the command, and SIGTERM and SIGHUP are passed on to it. Descendants
/// that are still running when it ends contribute what they have stored by then.
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
        Engine::Lbr => Box::new(engines::lbr::LbrSession::new(name, options)?),
        Engine::Step | Engine::RunAhead => Box::new(engines::preload::PreloadSession::new(name, options)?),
        Engine::Perf => return Err(RecordError::Engine(options.engine)),
    };
    let status = run_all(command, options, session.as_mut())?;
    let Collected {
        vectors,
        stats,
        remarks,
        unreclaimed,
    } = session.finish();
    Ok(Recording {
        status,
        vectors,
        stats,
        remarks,
        unreclaimed,
    })
}

/// Runs the command as often as asked. Returns the status of the first run that failed, else of the last.
pub(crate) fn run_all(
    command: &[OsString],
    options: &RecordOptions,
    session: &mut dyn Session,
) -> Result<ExitStatus, RecordError> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(LaunchError::NotFound("(nothing)".to_owned()).into());
    };
    let mut status = None;
    for run in 0..options.repeat.max(1) {
        let mut child = Command::new(session.program());
        child.args(arguments).arg0(name);
        let redirected = options.redirect.apply(&mut child);
        redirected.map_err(io("cannot redirect the command"))?;
        let ended = session.run(child, run)?;
        if status.is_none_or(|before: ExitStatus| before.success()) {
            status = Some(ended);
        }
    }
    Ok(status.unwrap_or_default())
}
