//! The annotated program, recorded several times.

use super::{EvaluateError, EvaluateOptions, Job, io};
use pleach_collector::record::{RecordOptions, Recording, Repeat, record};
use pleach_collector::redirect::Redirect;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use xxhash_rust::xxh3::Xxh3;

/// Maximum number of repetitions of a command.
const MAX_REPEATS: f64 = 10_000.0;

/// A temporary folder for all files of an evaluation.
pub fn folder() -> Result<TempDir, EvaluateError> {
    let made = tempfile::Builder::new().prefix("pleach-evaluate-").tempdir();
    made.map_err(io("cannot make a temporary directory"))
}

/// The path of a file as a command, so that it is not searched for in PATH.
pub fn command_path(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new(".").join(file),
        _ => file.to_owned(),
    }
}

/// The standard input of both programs.
pub fn input(job: &Job) -> PathBuf {
    job.input.clone().unwrap_or_else(|| PathBuf::from("/dev/null"))
}

/// Hash of a file's contents.
pub fn digest(path: &Path) -> Result<u64, EvaluateError> {
    let reading = || io(format!("cannot read {}", path.display()));
    let mut file = File::open(path).map_err(reading())?;
    let (mut hasher, mut buffer) = (Xxh3::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(reading())? {
            0 => return Ok(hasher.digest()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// Number of runs of a command that takes `once` CPU-seconds, for `wanted` CPU-seconds in all.
pub fn repeats(wanted: f64, once: f64) -> u32 {
    (wanted / once.max(f64::MIN_POSITIVE)).ceil().clamp(1.0, MAX_REPEATS) as u32
}

/// Length of the trial that measures a command's time, as a share of a recording's length.
const TRIAL: f64 = 0.2;

/// Makes recordings of the same length.
#[derive(Clone, Debug)]
pub struct Recorder {
    command: Vec<OsString>,
    options: RecordOptions,
    output: PathBuf,
    /// Number of runs of the command in each recording.
    pub repeat: u32,
}

/// A recording and the program's output.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// The recording.
    pub recording: Recording,
    /// Hash of the standard output of its last run.
    pub output: u64,
}

impl Recorder {
    /// Records the command for a while, to find the number of its repetitions. The recording is discarded: it also
    /// warms up the machine. The program's output goes to a file in `folder`, its standard error is discarded.
    pub fn new(job: &Job, options: &EvaluateOptions, folder: &Path) -> Result<Self, EvaluateError> {
        let output = folder.join("annotated.out");
        let program = command_path(&job.annotated).into_os_string();
        let mut recorder = Self {
            command: [program].into_iter().chain(job.args.iter().cloned()).collect(),
            options: RecordOptions {
                redirect: Redirect {
                    input: Some(input(job)),
                    output: Some(output.clone()),
                    errors: Some(PathBuf::from("/dev/null")),
                },
                ..options.record.clone()
            },
            output,
            repeat: 1,
        };
        loop {
            let taken = recorder.record()?.recording.stats.program_cpu_seconds;
            let once = taken / f64::from(recorder.repeat);
            // A trial that is too short is repeated with more runs.
            let enough = repeats(options.cpu_seconds * TRIAL, once);
            if taken >= options.cpu_seconds * TRIAL / 2.0 || f64::from(recorder.repeat) >= MAX_REPEATS {
                recorder.repeat = repeats(options.cpu_seconds, once);
                return Ok(recorder);
            }
            recorder.repeat = enough.max(recorder.repeat + 1);
        }
    }

    /// Makes one recording.
    pub fn record(&self) -> Result<RecordedRun, EvaluateError> {
        let options = RecordOptions {
            repeat: Repeat::Times(self.repeat),
            ..self.options.clone()
        };
        Ok(RecordedRun {
            recording: record(&self.command, &options)?,
            output: digest(&self.output)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_commands_are_repeated() {
        assert_eq!(repeats(10.0, 12.0), 1);
        assert_eq!(repeats(10.0, 10.0), 1);
        assert_eq!(repeats(10.0, 3.0), 4);
        assert_eq!(repeats(0.0, 3.0), 1);
        assert_eq!(repeats(10.0, 0.0), 10_000);
    }

    #[test]
    fn a_file_is_no_command() {
        assert_eq!(command_path(Path::new("app")), Path::new("./app"));
        assert_eq!(command_path(Path::new("a/app")), Path::new("a/app"));
        assert_eq!(command_path(Path::new("/app")), Path::new("/app"));
    }
}
