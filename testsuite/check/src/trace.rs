//! Runs a program one instruction at a time, for tests: an independent record of what it executed.

use crate::stepper::Stepper;
use anyhow::{Result, bail};
use std::io::Read;
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

/// Runs a program with one thread step by step. `main` is the offset in its file of the function's first instruction,
/// and `limit` how many steps it may take. `None` where the system does not let a process be traced.
///
/// # Errors
/// The program cannot be run, a signal ends it, or it does not end.
pub fn single_step(command: &mut Command, main: u64, limit: usize) -> Result<Option<Trace>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let Some(mut stepper) = Stepper::start(command, main)? else {
        return Ok(None);
    };
    let mappings = stepper.mappings()?;
    let mut instructions = Vec::new();
    for _ in 0..limit {
        let pc = stepper.registers()?.rip;
        let inside = mappings.iter().find(|of| (of.start..of.end).contains(&pc));
        let here = inside.map(|of| pc - of.start + of.offset);
        if here.is_some() || instructions.last() != Some(&None) {
            instructions.push(here);
        }
        let Some(status) = stepper.step()? else { continue };
        let mut stdout = String::new();
        if let Some(mut pipe) = stepper.take_output() {
            pipe.read_to_string(&mut stdout)?;
        }
        return Ok(Some(Trace {
            instructions,
            status,
            stdout,
        }));
    }
    bail!("{command:?}: not at its end after {limit} steps")
}
