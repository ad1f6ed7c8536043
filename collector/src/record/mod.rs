//! Runs a command under an engine and collects what was sampled: one run loop for all engines ([`crate::engines`]).

mod convergence;
mod error;
mod options;

use crate::engines::{self, Collected, Session};
use crate::launch::LaunchError;
use crate::stats::Stats;
use crate::vector::{Engine, VectorSet};
pub use convergence::{Convergence, Enough, Repeat};
pub use error::RecordError;
pub(crate) use error::io;
pub use options::RecordOptions;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
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
    /// Number of runs.
    pub runs: u32,
    /// How they compare, for [`Repeat::Until`].
    pub convergence: Option<Convergence>,
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
    let (status, runs) = run_all(command, options, session.as_mut())?;
    let convergence = session.convergence().cloned();
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
        runs,
        convergence,
        remarks,
        unreclaimed,
    })
}

/// Signals by which users end a command.
const INTERRUPTS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Runs the command as often as asked. Returns the status of the first run that failed, else of the last, and the number
/// of runs. A run that the user interrupts is the last.
pub(crate) fn run_all(
    command: &[OsString],
    options: &RecordOptions,
    session: &mut dyn Session,
) -> Result<(ExitStatus, u32), RecordError> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(LaunchError::NotFound("(nothing)".to_owned()).into());
    };
    let (mut status, mut runs) = (None, 0);
    loop {
        let mut child = Command::new(session.program());
        child.args(arguments).arg0(name);
        let redirected = options.redirect.apply(&mut child);
        redirected.map_err(io("cannot redirect the command"))?;
        let ended = session.run(child, runs)?;
        runs += 1;
        if status.is_none_or(|before: ExitStatus| before.success()) {
            status = Some(ended);
        }
        let is_last = match &options.repeat {
            Repeat::Times(times) => runs >= *times,
            Repeat::Until(enough) => session.convergence().is_none_or(|c| c.is_enough(runs, enough)),
        };
        if is_last || ended.signal().is_some_and(|signal| INTERRUPTS.contains(&signal)) {
            break;
        }
    }
    Ok((status.unwrap_or_default(), runs))
}
