//! Runs a program one instruction at a time, for tests: an independent record of what it executed.

use anyhow::{Context, Result, bail, ensure};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// A run of one thread from `main` to the end of the process.
#[derive(Debug)]
pub struct Trace {
    /// Offsets in the program's file of all executed instructions, in order; `None` stands for any number of
    /// instructions in libraries. A repeated string instruction appears once for each repetition.
    pub instructions: Vec<Option<u64>>,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
}

/// Where a part of the program's file is in memory: first address, one past the last, offset in the file.
type Mapping = (u64, u64, u64);

/// Runs a program with one thread step by step. `main` is the offset in its file of the function's first instruction,
/// and `limit` how many steps it may take. `None` where the system does not let a process be traced.
///
/// # Errors
/// The program cannot be run, a signal ends it, or it does not end.
pub fn single_step(command: &mut Command, main: u64, limit: usize) -> Result<Option<Trace>> {
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
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = match spawned {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EIO)) => return Ok(None),
        spawned => spawned.with_context(|| format!("cannot run {command:?}"))?,
    };
    let tracee = Tracee(child.id() as libc::pid_t);
    let stepped = tracee.run(Path::new(command.get_program()), main, limit);
    if stepped.is_err() {
        // It is stopped, or gone.
        let _ = child.kill();
        let _ = child.wait();
    }
    let (instructions, status) = stepped?;
    let mut stdout = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut stdout)?;
    }
    Ok(Some(Trace {
        instructions,
        status,
        stdout,
    }))
}

/// The result of a traced process.
enum Stop {
    Signal(i32),
    End(ExitStatus),
}

struct Tracee(libc::pid_t);

impl Tracee {
    fn run(&self, program: &Path, main: u64, limit: usize) -> Result<(Vec<Option<u64>>, ExitStatus)> {
        match self.wait()? {
            Stop::Signal(libc::SIGTRAP) => {}
            Stop::Signal(signal) => bail!("{}: signal {signal} before it began", program.display()),
            Stop::End(status) => bail!("{}: {status} before it began", program.display()),
        }
        let mappings = self.mappings(program)?;
        let at = mappings
            .iter()
            .find(|(start, end, offset)| main >= *offset && main - offset < end - start);
        let (start, _, offset) = at.context("main is not in the program's code")?;
        self.run_to(start + (main - offset))?;
        let mut instructions = Vec::new();
        for _ in 0..limit {
            let pc = self.registers()?.rip;
            let inside = mappings.iter().find(|(start, end, _)| (*start..*end).contains(&pc));
            let here = inside.map(|(start, _, offset)| pc - start + offset);
            if here.is_some() || instructions.last() != Some(&None) {
                instructions.push(here);
            }
            self.request(libc::PTRACE_SINGLESTEP, 0, 0)?;
            match self.wait()? {
                Stop::Signal(libc::SIGTRAP) => {}
                Stop::Signal(signal) => bail!("{}: signal {signal} at {pc:#x}", program.display()),
                Stop::End(status) => return Ok((instructions, status)),
            }
        }
        bail!("{}: not at its end after {limit} steps", program.display())
    }

    /// Lets it run at full speed until it gets to an address.
    fn run_to(&self, address: u64) -> Result<()> {
        const BREAKPOINT: u64 = 0xcc;
        // SAFETY: reads the tracee's memory, not ours.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.0, address, 0) } as u64;
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

    fn registers(&self) -> Result<libc::user_regs_struct> {
        // SAFETY: all of its fields are numbers.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, (&raw mut registers) as u64)?;
        Ok(registers)
    }

    fn request(&self, request: libc::c_uint, address: u64, data: u64) -> Result<()> {
        // SAFETY: `data` is a number, or points to registers that outlive the call.
        let done = unsafe { libc::ptrace(request, self.0, address, data) };
        ensure!(done == 0, "ptrace request {request}: {}", io::Error::last_os_error());
        Ok(())
    }

    fn wait(&self) -> Result<Stop> {
        use std::os::unix::process::ExitStatusExt;
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let waited = unsafe { libc::waitpid(self.0, &raw mut status, 0) };
        ensure!(waited == self.0, "waitpid: {}", io::Error::last_os_error());
        Ok(if libc::WIFSTOPPED(status) {
            Stop::Signal(libc::WSTOPSIG(status))
        } else {
            Stop::End(ExitStatus::from_raw(status))
        })
    }

    /// The executable mappings of the program's file.
    fn mappings(&self, program: &Path) -> Result<Vec<Mapping>> {
        let program = program.canonicalize()?;
        let text = std::fs::read_to_string(format!("/proc/{}/maps", self.0))?;
        let mapping = |line: &str| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let (access, offset, path) = (words.next()?, words.next()?, words.nth(2)?);
            let number = |text| u64::from_str_radix(text, 16).ok();
            let wanted = access.contains('x') && Path::new(path) == program;
            wanted.then_some((number(start)?, number(end)?, number(offset)?))
        };
        Ok(text.lines().filter_map(mapping).collect())
    }
}
