//! The instrumented program, run once.

use super::{EvaluateError, Job, io, runs};
use crate::accuracy::Truth;
use crate::coverage::measure::Executed;
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::merge::merge;
use pleach_collector::redirect::Redirect;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// The counts and the output of the run.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Executions of paths.
    pub truth: Truth,
    /// Executions of blocks.
    pub executed: Executed,
    /// Exit status.
    pub status: ExitStatus,
    /// Hash of its standard output.
    pub output: u64,
    /// Counts that could not be read or interpreted.
    pub problems: Vec<String>,
}

impl Counted {
    /// Reasons why the counts may be incomplete.
    pub fn warnings(&self) -> Vec<String> {
        let ended = (!self.status.success()).then(|| format!("the instrumented program failed ({})", self.status));
        self.problems.iter().cloned().chain(ended).collect()
    }

    /// Differences to a recorded run, by its exit status and output.
    pub fn differences(&self, status: ExitStatus, output: u64) -> Vec<String> {
        let ended = (status != self.status).then(|| {
            format!(
                "the instrumented program ended with {}, the recorded one with {status}: they may not have done \
                 the same",
                self.status
            )
        });
        let printed = (output != self.output).then(|| {
            "the programs printed different things: where a program does not do the same in every run, exact counts of \
             one run are not exact for another"
                .to_owned()
        });
        ended.into_iter().chain(printed).collect()
    }
}

/// Runs the instrumented program. Its counts are written to `folder`, its standard error is inherited.
pub fn count(job: &Job, folder: &Path) -> Result<Counted, EvaluateError> {
    let counts = folder.join("counts");
    let output = folder.join("exact.out");
    fs::create_dir(&counts).map_err(io(format!("cannot create {}", counts.display())))?;
    let program = runs::command_path(&job.exact);
    let mut command = Command::new(&program);
    command.args(&job.args).env("PLEACH_COUNTS", counts.join("%p.plcnt"));
    let redirect = Redirect {
        input: Some(runs::input(job)),
        output: Some(output.clone()),
        errors: None,
    };
    redirect
        .apply(&mut command)
        .map_err(io("cannot redirect the command"))?;
    let status = command.status();
    let status = status.map_err(io(format!("cannot run {}", program.display())))?;
    let reading = || io(format!("cannot read {}", counts.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(&counts).map_err(reading())? {
        files.push(entry.map_err(reading())?.path());
    }
    files.sort();
    let read = files.iter().map(CountFile::open).collect::<Result<Vec<_>, _>>()?;
    if read.is_empty() {
        let path = job.exact.clone();
        return Err(EvaluateError::NoCounts { path, status });
    }
    let counts = merge(read);
    let exact = ExactProfile::from_counts(&counts);
    let unread = counts.problems.iter().map(ToString::to_string);
    Ok(Counted {
        problems: unread.chain(exact.problems.iter().map(ToString::to_string)).collect(),
        executed: Executed::from_exact(&exact),
        truth: Truth::from_exact(&exact).map_err(|what| EvaluateError::Truth {
            path: job.exact.clone(),
            what,
        })?,
        output: runs::digest(&output)?,
        status,
    })
}
