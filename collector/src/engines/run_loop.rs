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
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::AsFd;
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
    pub(crate) fn new(runs: Runs, convergence: Option<Convergence>, collected: Collected) -> Self {
        let Collected {
            vectors,
            stats,
            mut remarks,
            unreclaimed,
        } = collected;
        remarks.extend(runs.remark());
        Self {
            status: runs.status,
            vectors,
            stats,
            runs: runs.number,
            convergence,
            remarks,
            unreclaimed,
        }
    }
}

/// The outcome of all runs of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Runs {
    /// Exit status of the first run that failed, else of the last run.
    pub status: ExitStatus,
    /// Number of runs.
    pub number: u32,
    /// Number of runs that failed.
    pub failed: u32,
    /// Exit status of the last run, if it crashed and more were to follow.
    pub crash: Option<ExitStatus>,
}

impl Runs {
    /// One run that did not fail.
    pub(crate) fn one() -> Self {
        Self {
            status: ExitStatus::default(),
            number: 1,
            failed: 0,
            crash: None,
        }
    }

    /// A note for the user on runs that failed, where there were several, or were to be several.
    fn remark(&self) -> Option<String> {
        let Self { number, failed, .. } = self;
        let in_words = |status: ExitStatus| match status.signal() {
            Some(signal) => format!("signal {signal}"),
            None => format!("exit status {}", status.code().unwrap_or(0)),
        };
        if let Some(crash) = self.crash {
            let what = in_words(crash);
            return Some(if matches!(crash.code(), Some(126 | 127)) {
                format!(
                    "run {number}: a program of the command was not found or could not be run ({what}): it is not repeated"
                )
            } else {
                format!("run {number} of the command crashed ({what}): it is not repeated")
            });
        }
        if let Some(signal) = self.status.signal()
            && !INTERRUPTS.contains(&signal)
            && *number == 1
        {
            return Some(format!("the command was killed by signal {signal}"));
        }
        let what = in_words(self.status);
        (*failed > 0 && *number > 1)
            .then(|| format!("{failed} of {number} runs of the command failed, the first with {what}"))
    }
}

/// Whether a run crashed: a signal ended it, or a shell says of the command that it ran that it could not be run (126,
/// 127) or that one of the 64 signals ended it (128 + signal). Higher statuses are failures: many programs return −1.
fn has_crashed(status: ExitStatus) -> bool {
    status.signal().is_some() || matches!(status.code(), Some(126 | 127 | 129..=192))
}

/// The standard input that runs inherit, where it is a file: each of them reads it from where the first one began.
struct Input {
    file: File,
    begin: u64,
}

impl Input {
    fn inherited() -> Option<Self> {
        let mut file = File::from(std::io::stdin().as_fd().try_clone_to_owned().ok()?);
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let begin = is_file.then(|| file.stream_position().ok())??;
        Some(Self { file, begin })
    }

    /// Goes back to the beginning. The runs share the position with this descriptor.
    fn rewind(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(self.begin)).map(drop)
    }
}

/// Runs the command as [`RecordOptions::repeat`] says. A run that crashes or that the user interrupts is the last. Where
/// an interrupted run ends as if it were not, and more were to follow, the status is that of a command that the signal
/// ended.
///
/// # Errors
/// The command cannot be run or sampled, or the user interrupts before the first run.
pub(crate) fn run_all(
    command: &[OsString],
    options: &RecordOptions,
    session: &mut dyn Session,
) -> Result<Runs, RecordError> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(LaunchError::NotFound("(nothing)".to_owned()).into());
    };
    let watch = Watch::since_handlers();
    if let Some(signal) = watch.signal() {
        return Err(RecordError::Interrupted(signal));
    }
    let (mut status, mut runs, mut failed) = (None, 0, 0);
    let mut crash = None;
    let mut input = Input::inherited();
    loop {
        if let Some(input) = input.as_mut().filter(|_| runs > 0) {
            input.rewind().map_err(io("cannot read the standard input again"))?;
        }
        let mut child = Command::new(session.program());
        child.args(arguments).arg0(name);
        let redirected = options.redirect.apply(&mut child);
        redirected.map_err(io("cannot redirect the command"))?;
        let ended = match session.run(child, runs) {
            // Interrupted before the sampler began: the runs before are kept.
            Err(RecordError::NotSampled { status, .. }) if runs > 0 && watch.signal().is_some() => status,
            Err(error) => {
                return Err(match watch.signal() {
                    Some(signal) if matches!(error, RecordError::NotSampled { .. }) => RecordError::Interrupted(signal),
                    _ => error,
                });
            }
            Ok(ended) => ended,
        };
        runs += 1;
        failed += u32::from(!ended.success());
        if status.is_none_or(|before: ExitStatus| before.success()) {
            status = Some(ended);
        }
        let is_last = match &options.repeat {
            Repeat::Times(times) => runs >= *times,
            Repeat::Until(enough) => session.convergence().is_none_or(|c| c.is_met(runs, enough)),
        };
        if is_last || ended.signal().is_some_and(|signal| INTERRUPTS.contains(&signal)) {
            break;
        }
        if let Some(signal) = watch.signal() {
            status = status.filter(|status| !status.success());
            status.get_or_insert(ExitStatus::from_raw(signal));
            break;
        }
        if has_crashed(ended) {
            crash = Some(ended);
            break;
        }
        if let Some(after_run) = &options.after_run {
            after_run.notify(runs);
        }
    }
    Ok(Runs {
        status: status.unwrap_or_default(),
        number: runs,
        failed,
        crash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_where_they_would_go_unnoticed() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        let runs = |status, number, failed, crash| Runs {
            status,
            number,
            failed,
            crash,
        };
        let fault = ExitStatus::from_raw(11);
        assert_eq!(runs(exited(0), 20, 0, None).remark(), None);
        assert_eq!(runs(exited(1), 1, 1, None).remark(), None, "its exit status says so");
        let killed = |signal| runs(ExitStatus::from_raw(signal), 1, 1, None).remark();
        assert_eq!(
            killed(libc::SIGSEGV).as_deref(),
            Some("the command was killed by signal 11")
        );
        assert_eq!(killed(libc::SIGINT), None, "the user knows");
        assert_eq!(
            runs(exited(1), 20, 12, None).remark().as_deref(),
            Some("12 of 20 runs of the command failed, the first with exit status 1")
        );
        assert_eq!(
            runs(exited(1), 3, 2, Some(fault)).remark().as_deref(),
            Some("run 3 of the command crashed (signal 11): it is not repeated")
        );
        assert_eq!(
            runs(exited(127), 1, 1, Some(exited(127))).remark().as_deref(),
            Some(
                "run 1: a program of the command was not found or could not be run (exit status 127): it is not repeated"
            )
        );
        assert!(has_crashed(exited(139)) && has_crashed(exited(127)) && has_crashed(ExitStatus::from_raw(6)));
        assert!(!has_crashed(exited(1)) && !has_crashed(exited(255)));
    }
}
