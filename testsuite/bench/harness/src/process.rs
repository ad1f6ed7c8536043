//! Running a program to its end and reading what it used.

#![allow(unsafe_code, reason = "system calls")]

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek};
use std::mem::MaybeUninit;
use std::ops::AddAssign;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// The resources that a process used, with the children that it waited for.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Elapsed seconds.
    pub wall: f64,
    /// User and system CPU-seconds.
    pub cpu: f64,
    /// Largest resident set, in bytes; never below that of the process that started this one, which Linux passes on.
    pub peak_memory: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
        self.peak_memory = self.peak_memory.max(other.peak_memory);
    }
}

/// A finished process.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Used resources.
    pub usage: Usage,
}

impl Finished {
    /// Fails, with the end of standard error, unless the process succeeded.
    pub fn expect_success(self, what: &str) -> Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        // Compilers print their command line behind the first errors; the beginning tells more than the end.
        let shown: Vec<&str> = self.stderr.lines().take(30).collect();
        bail!("{what} failed ({}):\n{}", self.status, shown.join("\n"))
    }
}

/// Runs a command without input, waits, and returns its outputs and usage.
///
/// The outputs go through files: a pipe that has to be drained would cost the measured program wake-ups.
pub fn run_measured(command: &mut Command) -> Result<Finished> {
    let mut stdout = tempfile::tempfile().context("cannot create a temporary file")?;
    let mut stderr = tempfile::tempfile().context("cannot create a temporary file")?;
    command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?);

    let start = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let (status, rusage) = wait_for(child.id())?;
    let wall = start.elapsed().as_secs_f64();

    Ok(Finished {
        status,
        stdout: read_back(&mut stdout)?,
        stderr: read_back(&mut stderr)?,
        usage: Usage {
            wall,
            cpu: seconds(rusage.ru_utime) + seconds(rusage.ru_stime),
            peak_memory: u64::try_from(rusage.ru_maxrss).unwrap_or(0) * 1024,
        },
    })
}

/// Waits with `wait4`, which, unlike the standard library, tells the resources of this one child.
fn wait_for(pid: u32) -> Result<(ExitStatus, libc::rusage)> {
    let pid = libc::pid_t::try_from(pid).context("process id out of range")?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are valid for writes; the child was spawned here and nobody else waits for it.
        let waited = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
        if waited == pid {
            // SAFETY: all-zero bytes are a valid `rusage`, and `wait4` succeeded.
            return Ok((ExitStatus::from_raw(status), unsafe { usage.assume_init() }));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("cannot wait for a child process");
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

fn read_back(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_usage_are_those_of_the_child() {
        let finished = run_measured(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"])).unwrap();
        assert_eq!(finished.stdout, "out\n");
        assert_eq!(finished.stderr, "err\n");
        assert_eq!(finished.status.code(), Some(3));
        assert!(finished.usage.wall > 0.0);
        let error = finished.expect_success("the shell").unwrap_err();
        assert!(error.to_string().contains("err"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run_measured(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"), "{error}");
    }
}
