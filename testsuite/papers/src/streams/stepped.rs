//! The loads of a real run, one after the other: the program is stepped (§5.1).

use super::event::Event;
use super::loads::load_of;
use anyhow::{Context, Result};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use pleach_annotate::binary::Binary;
use pleach_check::stepper::Stepper;
use pleach_collector::vector::{CodeAddress, ModuleId};
use pleach_wire::x86::MAX_LENGTH;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run loaded from `main` on.
#[derive(Clone, Debug)]
pub struct Loads {
    /// Each load and its value, in order. Addresses are those of memory, as libraries load too.
    pub events: Vec<Event>,
    /// Executed instructions, a repeated one once for each repetition.
    pub instructions: u64,
}

/// Steps through the first thread of a program until it has loaded so often, or ends. Loads are those of
/// [`observe`](super::loads::observe).
///
/// # Errors
/// The program cannot be run or stepped, or has no `main`.
pub fn loads_of_run(program: &Path, arguments: &[String], most: usize) -> Result<Loads> {
    let binary = Binary::open(program)?;
    let main = binary.symbols.iter().find(|symbol| symbol.name == "main");
    let main = main.and_then(|main| binary.offset_of_address(main.address));
    let main = main.with_context(|| format!("{} has no main", program.display()))?;
    let scratch = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(scratch.path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut stepper = Stepper::start(&mut command, main)?.context("this system does not let a process be traced")?;
    let mut loads = Loads {
        events: Vec::new(),
        instructions: 0,
    };
    let mut known: HashMap<u64, Option<Instruction>> = HashMap::new();
    while loads.events.len() < most {
        let registers = stepper.registers()?;
        let pc = registers.rip;
        let load = *known.entry(pc).or_insert_with(|| load_at(&stepper, pc));
        if let Some((address, size)) = load.and_then(|load| load_of(&load, &general(&registers), registers.fs_base)) {
            let mut value = [0; 8];
            // A load that faults has no value.
            if stepper.read(address, &mut value[..size]) == size {
                let module = ModuleId(0);
                loads.events.push(Event::LoadValue {
                    pc: CodeAddress { module, offset: pc },
                    value: u64::from_le_bytes(value),
                });
            }
        }
        loads.instructions += 1;
        if stepper.step()?.is_some() {
            break;
        }
    }
    Ok(loads)
}

/// The instruction at an address, if it may be a load.
fn load_at(stepper: &Stepper, pc: u64) -> Option<Instruction> {
    let mut bytes = [0; MAX_LENGTH];
    let length = stepper.read(pc, &mut bytes);
    let instruction = Decoder::with_ip(64, &bytes[..length], pc, DecoderOptions::NONE).decode();
    // Whether it is one does not depend on where it reads.
    load_of(&instruction, &[0; 16], 0).map(|_| instruction)
}

/// General registers by their numbers.
fn general(of: &libc::user_regs_struct) -> [u64; 16] {
    [
        of.rax, of.rcx, of.rdx, of.rbx, of.rsp, of.rbp, of.rsi, of.rdi, of.r8, of.r9, of.r10, of.r11, of.r12, of.r13,
        of.r14, of.r15,
    ]
}
