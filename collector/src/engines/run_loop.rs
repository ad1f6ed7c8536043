//! The run loop of all engines, and its result.

use super::error::{RecordError, io};
use super::options::RecordOptions;
use super::session::{Collected, Session};
use crate::convergence::{Convergence, Repeat};
use crate::launch::LaunchError;
use crate::signals::{INTERRUPTS, Watch};
use crate::stats::Stats;
use crate::vector::VectorSet;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Exit status of the first run that failed, else of the last run.
    pub status: ExitStatus,
    /// The vectors of all runs.
    pub vectors: VectorSet,
    /// Their figures.
    pub stats: Stats,
    /// Number of runs.
    pub runs: u32,
    /// Convergence of the runs, for [`Repeat::Until`].
    pub convergence: Option<Convergence>,
    /// Notes for the user, a line each.
    pub remarks: Vec<String>,
    /// The file system cannot free parts of temporary files, so these exceeded the limit on the size.
    pub unreclaimed: bool,
}

impl Recording {
    /// The recording of a session that has ended.
    pub(crate) fn new(status: ExitStatus, runs: u32, convergence: Option<Convergence>, collected: Collected) -> Self {
        let Collected {
            vectors,
            stats,
            remarks,
            unreclaimed,
        } = collected;
        Self {
            status,
            vectors,
            stats,
            runs,
            convergence,
            remarks,
            unreclaimed,
        }
    }
}

/// Runs the command as [`RecordOptions::repeat`] says. Returns the exit status of the first run that failed, else of
/// the last run, and the number of runs. A run that the user interrupts is the last. Where it ends as if it were not
/// interrupted, and more were to follow, the status is that of a command that the signal ended.
///
/// # Errors
/// The command cannot be run or sampled.
pub(crate) fn run_all(
    command: &[OsString],
    options: &RecordOptions,
    session: &mut dyn Session,
) -> Result<(ExitStatus, u32), RecordError> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(LaunchError::NotFound("(nothing)".to_owned()).into());
    };
    let watch = Watch::begin();
    let (mut status, mut runs) = (None, 0);
    loop {
        let mut child = Command::new(session.program());
        child.args(arguments).arg0(name);
        let redirected = options.redirect.apply(&mut child);
        redirected.map_err(io("cannot redirect the command"))?;
        let ended = match session.run(child, runs) {
            // Interrupted before the sampler began: the runs before are kept.
            Err(RecordError::NotSampled { status, .. }) if runs > 0 && watch.signal().is_some() => status,
            ended => ended?,
        };
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
        if let Some(signal) = watch.signal() {
            status = status.filter(|status| !status.success());
            status.get_or_insert(ExitStatus::from_raw(signal));
            break;
        }
    }
    Ok((status.unwrap_or_default(), runs))
}
