//! Taken branches from callgrind and the instructions, against a single-stepped run.

use crate::support::*;
use pleach_annotate::binary::Binary as Code;
use pleach_annotate::code::{Transfer, instruction_at};
use pleach_annotate::probe::Address;
use pleach_check::trace::{Trace, single_step};
use pleach_facilities::skip;
use pleach_harness::build::{Binary, BuildReport};
use pleach_harness::run::{Invocation, run};
use pleach_harness::taken_branches::sites;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const ARGUMENT: &str = "3";
const LIMIT: usize = 1_000_000;

/// Executions of each branch in which it is taken.
type Taken = BTreeMap<Address, u64>;

#[test]
fn taken_branches_are_what_was_executed() {
    // With and without the procedure linkage table, and with code in sections of its own.
    let ways: [&[&str]; 4] = [
        &["-O0"],
        &["-O1"],
        &["-O2", "-fno-plt", "-Wl,-z,now"],
        &[
            "-O2",
            "-no-pie",
            "-ffunction-sections",
            "-Wl,-z,keep-text-section-prefix",
        ],
    ];
    for words in ways {
        let dir = scratch();
        let path = dir.path().join("taken");
        let mut build = clang();
        // Tail calls of static functions stay what they are: nothing is inlined or specialised.
        build.args(["-fno-inline", "-fuse-ld=lld"]).args(words);
        stdout(build.arg(program("taken.c")).arg("-o").arg(&path));
        check(&path, words);
    }
}

fn check(path: &Path, words: &[&str]) {
    let code = Code::open(path).expect("an executable");
    let Some(trace) = trace(path, &code) else {
        skip("this system does not let a process be traced (ptrace)");
        return;
    };
    let stepped = stepped(&code, &trace);

    let binary = Binary {
        path: path.to_owned(),
        workload: "taken".to_owned(),
        label: "test".to_owned(),
        report: BuildReport::default(),
    };
    let mut invocation = Invocation {
        args: vec![ARGUMENT.to_owned()],
        checksum: String::new(),
    };
    invocation.checksum = run(&binary, &invocation).expect("it runs").checksum;
    let sites = sites(&binary, &invocation).expect("callgrind runs");
    let own: Taken = sites
        .iter()
        .filter(|site| site.file == path && site.transfer != Transfer::Next)
        .map(|site| (site.address, site.taken))
        .collect();

    // The trace begins with main, without the C runtime before it, whose functions have no size, but one.
    for (address, taken) in &own {
        let name = code
            .symbol_at(*address)
            .map(|symbol| code.symbols[symbol].name.as_str());
        if name.is_some_and(|name| name != "_start") {
            assert_eq!(stepped.get(address), Some(taken), "{words:?} {address:?} in {name:?}");
        }
    }
    for (address, taken) in &stepped {
        assert_eq!(own.get(address), Some(taken), "{words:?} {address:?}");
    }
    // The program does what it is there for.
    let transfers: BTreeSet<_> = sites
        .iter()
        .filter(|site| site.file == path && site.taken > 0)
        .map(|site| format!("{:?}", site.transfer))
        .collect();
    for transfer in ["Call", "Conditional", "IndirectCall", "IndirectJump", "Jump", "Return"] {
        assert!(
            transfers.contains(transfer),
            "{words:?}: no {transfer} in {transfers:?}"
        );
    }
    let others: BTreeSet<_> = sites.iter().map(|site| &site.file).collect();
    assert!(
        others.iter().any(|file| file.to_string_lossy().contains("libc")),
        "{others:?}"
    );
}

fn trace(path: &Path, code: &Code) -> Option<Trace> {
    let main = code.symbols.iter().find(|symbol| symbol.name == "main").expect("main");
    let main = code.offset_of_address(main.address).expect("an offset");
    let trace = single_step(Command::new(path).arg(ARGUMENT), main, LIMIT).expect("a trace")?;
    assert!(trace.status.success(), "{trace:?}");
    Some(trace)
}

/// Counts taken branches of everything but instructions that are none.
fn stepped(code: &Code, trace: &Trace) -> Taken {
    let mut taken = Taken::new();
    for pair in trace.instructions.windows(2) {
        let Some(offset) = pair[0] else { continue };
        let address = code.address_of_offset(offset).expect("code");
        let instruction = instruction_at(code, address).expect("an instruction");
        let is_taken = match instruction.transfer {
            Transfer::Next => continue,
            Transfer::Other => false,
            Transfer::Conditional => pair[1] != Some(offset + u64::from(instruction.len)),
            _ => true,
        };
        *taken.entry(address).or_default() += u64::from(is_taken);
    }
    taken
}
