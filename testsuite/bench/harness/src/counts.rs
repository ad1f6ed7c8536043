//! Counts that do not depend on the machine's load: instructions, misses in cachegrind's model, and taken branches.

use crate::build::Binary;
use crate::process::run_measured;
use crate::run::{Invocation, run_with};
use crate::tools::Tool;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// The parts of the processor that cachegrind simulates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Simulation {
    /// Nothing: two to three times faster than the rest.
    #[default]
    InstructionsOnly,
    /// Caches and branch prediction, of a simple model machine.
    CachesAndBranches,
}

/// Totals over a whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Instructions executed.
    pub instructions: u64,
    /// Instruction fetches that miss the model's first-level cache.
    pub i1_misses: Option<u64>,
    /// Loads and stores that miss the model's first-level cache.
    pub d1_misses: Option<u64>,
    /// Conditional branches executed.
    pub conditional_branches: Option<u64>,
    /// Conditional branches that the model mispredicts.
    pub conditional_mispredicts: Option<u64>,
    /// Indirect jumps and calls that the model mispredicts.
    pub indirect_mispredicts: Option<u64>,
    /// Taken branches, counted by callgrind in a separate run: see [`crate::taken_branches`].
    pub taken_branches: Option<u64>,
}

impl Counts {
    /// All mispredicted branches, in the model.
    pub fn mispredicts(&self) -> Option<u64> {
        Some(self.conditional_mispredicts? + self.indirect_mispredicts?)
    }
}

/// A binary without debug information, which older valgrinds refuse to read when it is DWARF 5.
pub struct Stripped {
    /// The binary, in a folder that vanishes with this.
    pub binary: Binary,
    _folder: TempDir,
}

impl Stripped {
    /// Copies an executable.
    pub fn from_binary(binary: &Binary) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(&binary.workload);
        let mut command = Command::new(Tool::Objcopy.find()?);
        command.arg("--strip-debug").arg(&binary.path).arg(&path);
        run_measured(&mut command)?.expect_success("llvm-objcopy")?;
        Ok(Self {
            binary: Binary { path, ..binary.clone() },
            _folder: folder,
        })
    }
}

/// Runs a binary under cachegrind; its checksum must be right.
pub fn counts(binary: &Stripped, invocation: &Invocation, simulation: Simulation) -> Result<Counts> {
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("cachegrind.out");
    let simulate = if simulation == Simulation::CachesAndBranches {
        "yes"
    } else {
        "no"
    };
    let wrapper = [
        Tool::Valgrind.find()?.display().to_string(),
        "--tool=cachegrind".to_owned(),
        // Otherwise it counts instructions that were not executed: 3.5 % too many in one of three builds of lemon.
        // callgrind sets it by itself.
        "--vex-guest-chase=no".to_owned(),
        "--quiet".to_owned(),
        format!("--cache-sim={simulate}"),
        format!("--branch-sim={simulate}"),
        // Fixed sizes: the default is the host's caches, and figures of two machines could not be compared.
        "--I1=32768,8,64".to_owned(),
        "--D1=32768,8,64".to_owned(),
        "--LL=8388608,16,64".to_owned(),
        format!("--cachegrind-out-file={}", file.display()),
    ];
    run_with(&binary.binary, invocation, &wrapper, &[])?.expect_checksum(&binary.binary, invocation)?;
    let text = fs::read_to_string(&file).context("cachegrind left no output file")?;
    parse_summary(&text)
}

/// Reads the `events:` and `summary:` lines of cachegrind's output.
fn parse_summary(text: &str) -> Result<Counts> {
    let line = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key))
            .with_context(|| format!("no '{key}' line"))
    };
    let events = line("events:")?.split_whitespace();
    let totals = line("summary:")?.split_whitespace();

    let mut counts = Counts::default();
    let mut saw_instructions = false;
    for (event, total) in events.zip(totals) {
        let total: u64 = total
            .parse()
            .with_context(|| format!("the total of {event} is '{total}'"))?;
        match event {
            "Ir" => {
                counts.instructions = total;
                saw_instructions = true;
            }
            "I1mr" => counts.i1_misses = Some(total),
            "D1mr" | "D1mw" => *counts.d1_misses.get_or_insert(0) += total,
            "Bc" => counts.conditional_branches = Some(total),
            "Bcm" => counts.conditional_mispredicts = Some(total),
            "Bim" => counts.indirect_mispredicts = Some(total),
            _ => {}
        }
    }
    if !saw_instructions {
        bail!("cachegrind counted no instructions");
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_with_and_without_simulation() {
        let plain = parse_summary("desc: x\ncmd: y\nevents: Ir\nfn=main\n1 5\nsummary: 1234\n").unwrap();
        assert_eq!(
            plain,
            Counts {
                instructions: 1234,
                ..Counts::default()
            }
        );

        let events = "events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim";
        let full = parse_summary(&format!("{events}\nsummary: 100 7 1 30 2 1 20 1 1 15 3 5 2\n")).unwrap();
        assert_eq!((full.i1_misses, full.d1_misses), (Some(7), Some(3)));
        assert_eq!(full.conditional_branches, Some(15));
        assert_eq!(full.mispredicts(), Some(5));
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        assert!(parse_summary("events: Ir\n").is_err());
        assert!(parse_summary("events: Ir\nsummary: many\n").is_err());
        assert!(parse_summary("events: Dr\nsummary: 5\n").is_err());
    }
}
