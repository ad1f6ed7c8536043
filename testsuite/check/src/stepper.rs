//! A process whose only thread is run one instruction at a time.

#![allow(unsafe_code, reason = "system calls")]

use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// Where a part of the program's file is in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// One past its last address.
    pub end: u64,
    /// Offset in the file of its first byte.
    pub offset: u64,
}

/// A stopped process, at an address that it has not executed yet. It is killed when this is dropped.
#[derive(Debug)]
pub struct Stepper {
    child: Child,
    memory: File,
    program: PathBuf,
    /// Its end was waited for, so that its process id may be another's now.
    ended: bool,
}

/// How a process stopped.
enum Stop {
    Signal(i32),
    End(ExitStatus),
}

impl Stepper {
    /// Starts a program with fixed addresses, up to `main`: the offset in its file of the function's first instruction.
    /// `None` where the system does not let a process be traced.
    ///
    /// # Errors
    /// The program cannot be run, or does not get there.
    pub fn start(command: &mut Command, main: u64) -> Result<Option<Self>> {
        // SAFETY: only system calls are made between `fork` and `exec`, and nothing is allocated.
        unsafe {
            command.pre_exec(|| {
                libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
                match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
        }
        let child = match command.spawn() {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EIO)) => {
                return Ok(None);
            }
            spawned => spawned.with_context(|| format!("cannot run {command:?}"))?,
        };
        let program = PathBuf::from(command.get_program());
        let memory = File::open(format!("/proc/{}/mem", child.id()))?;
        let mut stepper = Self {
            child,
            memory,
            program,
            ended: false,
        };
        stepper.run_to_main(main)?;
        Ok(Some(stepper))
    }

    fn run_to_main(&mut self, main: u64) -> Result<()> {
        match self.wait()? {
            Stop::Signal(libc::SIGTRAP) => {}
            Stop::Signal(signal) => bail!("{}: signal {signal} before it began", self.program.display()),
            Stop::End(status) => bail!("{}: {status} before it began", self.program.display()),
        }
        let mappings = self.mappings()?;
        let at = mappings
            .iter()
            .find(|of| main >= of.offset && main - of.offset < of.end - of.start);
        let at = at.context("main is not in the program's code")?;
        self.run_to(at.start + (main - at.offset))
    }

    /// Lets it run at full speed until it gets to an address.
    fn run_to(&mut self, address: u64) -> Result<()> {
        const BREAKPOINT: u64 = 0xcc;
        // SAFETY: reads the tracee's memory, not ours.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.process(), address, 0) } as u64;
        self.request(libc::PTRACE_POKETEXT, address, word & !0xff | BREAKPOINT)?;
        self.request(libc::PTRACE_CONT, 0, 0)?;
        ensure!(
            matches!(self.wait()?, Stop::Signal(libc::SIGTRAP)),
            "it did not get to main"
        );
        self.request(libc::PTRACE_POKETEXT, address, word)?;
        let mut registers = self.registers()?;
        ensure!(registers.rip == address + 1, "it stopped at {:#x}", registers.rip);
        registers.rip = address;
        self.request(libc::PTRACE_SETREGS, 0, (&raw const registers) as u64)
    }

    /// Executes one instruction, or one repetition of a string instruction. How the process ended, if it did.
    ///
    /// # Errors
    /// A signal stopped it.
    pub fn step(&mut self) -> Result<Option<ExitStatus>> {
        self.request(libc::PTRACE_SINGLESTEP, 0, 0)?;
        match self.wait()? {
            Stop::Signal(libc::SIGTRAP) => Ok(None),
            Stop::Signal(signal) => bail!(
                "{}: signal {signal} at {:#x}",
                self.program.display(),
                self.registers()?.rip
            ),
            Stop::End(status) => Ok(Some(status)),
        }
    }

    /// Its registers before the next instruction.
    ///
    /// # Errors
    /// It has ended.
    pub fn registers(&self) -> Result<libc::user_regs_struct> {
        // SAFETY: all of its fields are numbers.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, (&raw mut registers) as u64)?;
        Ok(registers)
    }

    /// Reads its memory from an address on; how many bytes are mapped, at most those asked for.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> usize {
        self.memory.read_at(bytes, address).unwrap_or(0)
    }

    /// The executable mappings of the program's file.
    ///
    /// # Errors
    /// The file is gone, or the process.
    pub fn mappings(&self) -> Result<Vec<Mapping>> {
        let program = self.program.canonicalize()?;
        let text = std::fs::read_to_string(format!("/proc/{}/maps", self.child.id()))?;
        let mapping = |line: &str| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let (access, offset, path) = (words.next()?, words.next()?, words.nth(2)?);
            let number = |text| u64::from_str_radix(text, 16).ok();
            let wanted = access.contains('x') && Path::new(path) == program;
            wanted.then_some(Mapping {
                start: number(start)?,
                end: number(end)?,
                offset: number(offset)?,
            })
        };
        Ok(text.lines().filter_map(mapping).collect())
    }

    /// Its standard output, once.
    pub fn take_output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    fn process(&self) -> libc::pid_t {
        self.child.id() as libc::pid_t
    }

    fn request(&self, request: libc::c_uint, address: u64, data: u64) -> Result<()> {
        // SAFETY: `data` is a number, or points to registers that outlive the call.
        let done = unsafe { libc::ptrace(request, self.process(), address, data) };
        ensure!(done == 0, "ptrace request {request}: {}", io::Error::last_os_error());
        Ok(())
    }

    fn wait(&mut self) -> Result<Stop> {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let waited = unsafe { libc::waitpid(self.process(), &raw mut status, 0) };
        ensure!(waited == self.process(), "waitpid: {}", io::Error::last_os_error());
        Ok(if libc::WIFSTOPPED(status) {
            Stop::Signal(libc::WSTOPSIG(status))
        } else {
            self.ended = true;
            Stop::End(ExitStatus::from_raw(status))
        })
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        if !self.ended {
            // It is stopped, or was killed by another.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
