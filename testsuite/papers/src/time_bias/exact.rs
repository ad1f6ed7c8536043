//! Exact counts of machine instructions and branches, from callgrind.
//!
//! Callgrind writes an address before each cost, and whole lines for calls and jumps. Returns are not among them.

use anyhow::{Context, Result, ensure};
use pleach_harness::build::Binary;
use pleach_harness::run::{Invocation, run_with};
use pleach_harness::tools::Tool;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Executions of every instruction in a program's own file. Addresses are those that the file is linked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exact {
    /// Executions of each instruction.
    pub instructions: HashMap<u64, u64>,
    /// Executions of each jump and call within the file that was taken, by where it is and where it leads.
    pub branches: HashMap<(u64, u64), u64>,
}

/// Runs a binary under callgrind.
pub fn exact(binary: &Binary, invocation: &Invocation) -> Result<Exact> {
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("callgrind.out");
    let wrapper = [
        Tool::Valgrind.find()?.display().to_string(),
        "--tool=callgrind".to_owned(),
        "--quiet".to_owned(),
        "--dump-instr=yes".to_owned(),
        "--collect-jumps=yes".to_owned(),
        "--compress-pos=no".to_owned(),
        "--compress-strings=no".to_owned(),
        format!("--callgrind-out-file={}", file.display()),
    ];
    run_with(binary, invocation, &wrapper, &[])?.expect_checksum(binary, invocation)?;
    let text = fs::read_to_string(&file).context("callgrind left no output file")?;
    // Callgrind writes names as the kernel has them.
    let counts = parse(&text, &binary.path.canonicalize()?)?;
    ensure!(
        !counts.instructions.is_empty(),
        "callgrind counted nothing in {}",
        binary.path.display()
    );
    Ok(counts)
}

/// The owner of the next line with an address.
enum Next {
    Cost,
    Jump(u64, Option<u64>),
}

/// Reads callgrind's output: costs and jumps whose object is `program`.
fn parse(text: &str, program: &Path) -> Result<Exact> {
    let mut counts = Exact::default();
    let is_program = |object: &str| Path::new(object) == program;
    let (mut ours, mut callee_ours) = (false, None);
    let mut next = Next::Cost;
    for (number, line) in text.lines().enumerate() {
        let what = || format!("callgrind's output is not understood in line {}: {line}", number + 1);
        if line.starts_with("0x") {
            let at = address(line).with_context(what)?;
            match std::mem::replace(&mut next, Next::Cost) {
                Next::Cost if ours => {
                    let cost = line.split(' ').nth(2).and_then(|cost| cost.parse::<u64>().ok());
                    *counts.instructions.entry(at).or_default() += cost.with_context(what)?;
                }
                // Instructions that repeat themselves jump nowhere.
                Next::Jump(times, Some(to)) if ours && to != at && times > 0 => {
                    *counts.branches.entry((at, to)).or_default() += times;
                }
                _ => {}
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        match key {
            "ob" => ours = is_program(value),
            "cob" => callee_ours = Some(is_program(value)),
            "calls" | "jump" | "jcnd" => {
                // Jumps stay in their object; calls name another one.
                let stays = callee_ours.take().unwrap_or(ours);
                let mut words = value.split(' ');
                let times = words.next().and_then(|word| word.split('/').next()?.parse().ok());
                let to = words.next().and_then(address);
                next = Next::Jump(times.with_context(what)?, to.filter(|_| stays));
            }
            _ => {}
        }
    }
    Ok(counts)
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.split(' ').next()?.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_the_program_is_counted() {
        let text = "positions: instr line\nevents: Ir\n\nob=/bin/p\nfl=p.c\nfn=main\n0x10 0 5\njcnd=3/5 0x20 0\n0x12 0\n\
            0x12 0 5\ncob=/lib/c.so\ncfi=c.c\ncfn=f\ncalls=2 0x99 0\n0x14 0 77\ncfn=g\ncalls=4 0x30 0\n0x16 0 9\n\
            jump=7/7 0x18 0\n0x18 0\n\nob=/lib/c.so\nfn=f\n0x99 0 2\ncob=/bin/p\ncfn=g\ncalls=1 0x30 0\n0x9a 0 1\n";
        let counts = parse(text, Path::new("/bin/p")).unwrap();
        assert_eq!(counts.instructions, HashMap::from([(0x10, 5), (0x12, 5)]));
        assert_eq!(counts.branches, HashMap::from([((0x12, 0x20), 3), ((0x16, 0x30), 4)]));
        assert!(parse("ob=/bin/p\n0x10 0 x\n", Path::new("/bin/p")).is_err());
    }
}
