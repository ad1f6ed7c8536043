//! Spawns a command stopped before `execve`, so that events can be opened on its process.

#![allow(unsafe_code, reason = "system calls")]

use std::io::{Error, ErrorKind, PipeReader, PipeWriter, Read, Result, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::JoinHandle;

/// The message that releases the child.
const GO: u8 = 1;

/// A child that is stopped before `execve`. If it is dropped, the child ends without running the command.
#[derive(Debug)]
pub struct StoppedChild {
    pid: u32,
    go: Option<PipeWriter>,
    starter: Option<JoinHandle<Result<Child>>>,
}

impl StoppedChild {
    /// Forks a command and stops it before `execve`.
    ///
    /// # Errors
    /// No process can be created.
    pub fn spawn(mut command: Command) -> Result<Self> {
        let (mut told, tell) = pipe()?;
        let (wait, go) = pipe()?;
        let (tell_fd, wait_fd, go_fd) = (tell.as_raw_fd(), wait.as_raw_fd(), go.as_raw_fd());
        // SAFETY: between fork and exec, only calls that are safe in signal handlers, on descriptors that the child
        // has.
        unsafe {
            command.pre_exec(move || hold(tell_fd, wait_fd, go_fd));
        }
        // `Command::spawn` returns only after `execve`, so another thread calls it.
        let starter = std::thread::Builder::new()
            .name("starter".to_owned())
            .spawn(move || start(command, tell, wait))?;
        let mut pid = [0; 4];
        if let Err(error) = told.read_exact(&mut pid) {
            // The fork failed: the spawning thread has the error.
            drop(go);
            return Err(match starter.join() {
                Ok(Err(why)) => why,
                _ => error,
            });
        }
        Ok(Self {
            pid: u32::from_ne_bytes(pid),
            go: Some(go),
            starter: Some(starter),
        })
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Releases the child, so that it runs the command.
    ///
    /// # Errors
    /// The command cannot be executed.
    pub fn release(mut self) -> Result<Child> {
        if let Some(mut go) = self.go.take() {
            // The child has ended: the spawning thread has the error.
            let _ = go.write_all(&[GO]);
        }
        self.join()
            .unwrap_or_else(|| Err(Error::other("the child was released before")))
    }

    fn join(&mut self) -> Option<Result<Child>> {
        let joined = self.starter.take()?.join();
        Some(joined.unwrap_or_else(|_| Err(Error::other("starting the command panicked"))))
    }
}

impl Drop for StoppedChild {
    fn drop(&mut self) {
        // The child reads the end of its pipe, and exits.
        self.go = None;
        if let Some(Ok(mut child)) = self.join() {
            let _ = child.wait();
        }
    }
}

/// Calls `Command::spawn`. The pipes are kept open until the child has inherited them.
fn start(mut command: Command, tell: PipeWriter, wait: PipeReader) -> Result<Child> {
    let started = command.spawn();
    drop((tell, wait));
    started
}

/// Runs in the child: reports its process id, and waits for the release.
fn hold(tell: i32, wait: i32, go: i32) -> Result<()> {
    // SAFETY: descriptors of the child, and buffers that live here. Its copy of the other end would keep the pipe open
    // if the recorder died.
    unsafe {
        libc::close(go);
        let pid = libc::getpid().to_ne_bytes();
        if libc::write(tell, pid.as_ptr().cast(), pid.len()) != pid.len() as isize {
            return Err(Error::last_os_error());
        }
        let mut answer = 0u8;
        loop {
            match libc::read(wait, (&raw mut answer).cast(), 1) {
                1 if answer == GO => return Ok(()),
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => return Err(ErrorKind::Interrupted.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn it_runs_when_it_is_let_go_and_not_before() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("mark");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("echo $$ > {}; exit 7", mark.display()));
        let stopped = StoppedChild::spawn(command).unwrap();
        let pid = stopped.pid();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!mark.exists());
        let mut child = stopped.release().unwrap();
        assert_eq!((child.id(), child.wait().unwrap().code()), (pid, Some(7)));
        assert_eq!(std::fs::read_to_string(mark).unwrap().trim(), pid.to_string());
    }

    #[test]
    fn it_never_runs_when_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("mark");
        let mut command = Command::new("/usr/bin/touch");
        command.arg(&mark).stdout(Stdio::null());
        let stopped = StoppedChild::spawn(command).unwrap();
        let pid = stopped.pid();
        drop(stopped);
        assert!(!mark.exists());
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn what_cannot_be_executed_is_said() {
        let stopped = StoppedChild::spawn(Command::new("/nowhere/at/all")).unwrap();
        assert_eq!(stopped.release().unwrap_err().kind(), ErrorKind::NotFound);
    }
}
