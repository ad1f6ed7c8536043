//! Commands that start with default signal dispositions and end before a deadline.

#![allow(unsafe_code, reason = "system calls")]

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a test's command, on a machine that is busy with other work.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// Polling interval for the end of the child.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Signals that job runners and `nohup` leave ignored, which programs inherit.
const RESET_SIGNALS: [libc::c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGALRM,
    libc::SIGCHLD,
];

/// Has a command start with default dispositions and no blocked signals, whatever started the tests.
pub fn default_signals(command: &mut Command) -> &mut Command {
    // SAFETY: between `fork` and `exec` only async-signal-safe functions are called, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            reset_signals();
            Ok(())
        })
    }
}

/// Gives this process default dispositions and unblocks all signals of the calling thread, for tests that handle
/// signals in their own process. Async-signal-safe.
pub fn reset_signals() {
    // SAFETY: default dispositions run no code of this process; the set is a local that `sigemptyset` initialises.
    unsafe {
        for signal in RESET_SIGNALS {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Kills a process group at a deadline, unless it is dropped before.
#[derive(Debug)]
pub struct Watchdog {
    /// Dropping it ends the thread that waits.
    _alive: Sender<()>,
}

/// Starts a command with default signal dispositions in a process group of its own. The group is killed at the
/// deadline, so that reading its output or waiting for it always ends. Drop the watchdog once the child was waited for:
/// its process id may then be reused.
///
/// # Errors
/// The command cannot be started.
pub fn spawn_within(command: &mut Command, deadline: Duration) -> io::Result<(Child, Watchdog)> {
    let child = default_signals(command).process_group(0).spawn()?;
    let group = child.id() as libc::pid_t;
    let (alive, end) = mpsc::channel();
    thread::spawn(move || {
        if end.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
            // SAFETY: a plain system call; the watchdog is alive, so the child has not been waited for.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
    });
    Ok((child, Watchdog { _alive: alive }))
}

/// Runs a command to its end, as [`Command::output`] does, with default signal dispositions. Past the deadline, its
/// process group is killed.
///
/// # Errors
/// The command cannot be started, or did not end in time ([`io::ErrorKind::TimedOut`]).
pub fn output_within(command: &mut Command, stdin: Stdio, deadline: Duration) -> io::Result<Output> {
    let end = Instant::now() + deadline;
    default_signals(command)
        .process_group(0)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdout, stderr) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() < end => thread::sleep(POLL_INTERVAL),
            None => return Err(kill_group(&mut child)),
        }
    };
    // Descendants may keep the pipes open after the child has ended.
    let receive = |bytes: Receiver<io::Result<Vec<u8>>>| {
        let left = end.saturating_duration_since(Instant::now());
        bytes.recv_timeout(left).map_err(|_| timed_out())?
    };
    Ok(Output {
        status,
        stdout: receive(stdout)?,
        stderr: receive(stderr)?,
    })
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes));
        // The receiver is gone after a deadline.
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

fn kill_group(child: &mut Child) -> io::Error {
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: a plain system call; the child has not been waited for, so that its id is still its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    let _ = child.wait();
    timed_out()
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it did not end before its deadline")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_complete() {
        let script = "cat; echo err >&2; exit 3";
        let out = output_within(Command::new("sh").args(["-c", script]), Stdio::null(), DEADLINE).expect("it runs");
        assert_eq!(out.status.code(), Some(3));
        assert_eq!((out.stdout, out.stderr), (Vec::new(), b"err\n".to_vec()));
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let start = Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100 & sleep 100"]);
        let error = output_within(&mut command, Stdio::null(), Duration::from_millis(100)).expect_err("it hangs");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn the_watchdog_kills_at_the_deadline() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100 & echo started; sleep 100"]);
        let (mut child, _watchdog) =
            spawn_within(command.stdout(Stdio::piped()), Duration::from_millis(100)).expect("it starts");
        let mut output = String::new();
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut output).expect("the pipe ends");
        assert!(!child.wait().expect("it ends").success());
    }

    #[test]
    fn ignored_signals_are_reset() {
        // The outer shell ignores SIGINT; the inner one is killed by it only where the disposition was reset.
        let mut command = Command::new("sh");
        command.args(["-c", "kill -INT $$; echo survived"]);
        // SAFETY: `signal` is async-signal-safe. It runs before the reset, as an ignoring parent would have done.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_IGN);
                Ok(())
            });
        }
        let out = output_within(&mut command, Stdio::null(), DEADLINE).expect("it runs");
        assert_eq!(out.stdout, b"");
    }
}
