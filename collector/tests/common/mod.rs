//! Builds the sampler and C fixtures, records them in a process of their own, and checks what was recorded.

#![allow(dead_code, reason = "each test binary uses a part")]

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use pleach_collector::record::RecordOptions;
use pleach_collector::stats::Stats;
use pleach_collector::vector::{CodeAddress, EndReason, Engine, ModuleId, VectorSet};
use pleach_facilities::{DEADLINE, output_within};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Where this test's profile puts what it builds.
fn target() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path
}

/// Builds the sampler and the `record` example with the cargo that runs this test, and returns where they are.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = target();
        if pleach_facilities::workspace_is_built() {
            return target;
        }
        let both = [
            &["-p", "pleach-preload", "-p", "pleach-stub"][..],
            &["-p", "pleach-collector", "--example", "record"],
        ];
        for package in both {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .args(["build", "--quiet", "--target-dir"]);
            cargo.arg(target.parent().unwrap()).args(package);
            if target.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(cargo.status().unwrap().success());
        }
        target
    })
}

/// What this test records with: it is in the name of its executable.
pub fn engine() -> Engine {
    let own = std::env::current_exe().unwrap();
    let name = own.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if name.starts_with("step") {
        Engine::Step
    } else {
        Engine::RunAhead
    }
}

/// How to record with it.
pub fn options() -> RecordOptions {
    RecordOptions {
        engine: engine(),
        ..RecordOptions::new(sampler())
    }
}

/// The library to preload, which loads the sampler.
pub fn sampler() -> PathBuf {
    built().join(pleach_wire::start::STUB)
}

/// Compiles `tests/fixtures/<name>.c` into a directory.
pub fn fixture(directory: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
        .with_extension("c");
    let program = directory.join(Path::new(name).file_name().unwrap());
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-pthread", "-Wl,--build-id"])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(source);
    assert!(compiler.status().unwrap().success(), "cc fails for {name}");
    program
}

/// Fixtures that say what they notice of a sampler, with their arguments.
pub const FIXTURES: [(&str, &[&str]); 22] = [
    ("threads", &[]),
    ("children", &[]),
    ("masks", &[]),
    ("handlers", &[]),
    ("stacks", &[]),
    ("least_stack", &[]),
    ("strings", &[]),
    ("traps", &[]),
    ("traps", &["raise"]),
    ("traps", &["int3"]),
    ("traps", &["ignored"]),
    ("endings", &["segv"]),
    ("endings", &["kill"]),
    ("endings", &["abort"]),
    ("endings", &["_exit"]),
    ("descriptors", &["none"]),
    ("descriptors", &["loop"]),
    ("descriptors", &["range"]),
    ("descriptors", &["from"]),
    ("confined", &["prctl"]),
    ("confined", &["seccomp"]),
    ("raw", &[]),
];

/// A recorded run beside one that was not.
pub struct Run {
    /// Of the recorder, whose standard output is the program's.
    pub output: Output,
    /// What was recorded.
    pub vectors: VectorSet,
    /// The figures.
    pub stats: Stats,
    /// Instructions that [`check`] looked at.
    pub checked: u64,
}

/// Records a command at an overhead and reads the results back.
pub fn record(overhead: f64, command: &[&OsStr], settings: &[(&str, &str)]) -> Run {
    let scratch = tempfile::tempdir().unwrap();
    let (stats, vectors) = (scratch.path().join("stats"), scratch.path().join("vectors"));
    let mut recorder = Command::new(built().join("examples/record"));
    recorder.arg(sampler()).arg(overhead.to_string()).args(command);
    recorder
        .env("ENGINE", engine().name())
        .env("STATS", &stats)
        .env("OUTPUT", &vectors)
        .envs(settings.iter().copied());
    let output = output_within(&mut recorder, Stdio::null(), DEADLINE).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let text = std::fs::read(&stats).unwrap_or_else(|_| panic!("nothing recorded of {command:?}: {error}"));
    Run {
        vectors: VectorSet::read_from(&vectors).unwrap(),
        stats: serde_json::from_slice(&text).unwrap(),
        output,
        checked: 0,
    }
}

/// Records a command, and runs it without recording: both must end and print the same.
pub fn compare(overhead: f64, command: &[&OsStr], settings: &[(&str, &str)]) -> Run {
    let mut run = record(overhead, command, settings);
    let mut plain = Command::new(command[0]);
    let plain = output_within(plain.args(&command[1..]), Stdio::null(), DEADLINE).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(
        text(&run.output.stdout),
        text(&plain.stdout),
        "output of {command:?} at {overhead}"
    );
    assert_eq!(
        text(&run.output.stderr),
        text(&plain.stderr),
        "messages of {command:?} at {overhead}"
    );
    // The example ends with 128 + signal where the program ended by a signal, as shells do.
    let expected = plain
        .status
        .code()
        .unwrap_or_else(|| 128 + plain.status.signal().unwrap());
    assert_eq!(
        run.output.status.code(),
        Some(expected),
        "status of {command:?} at {overhead}"
    );
    run.checked = check(&run.vectors);
    run
}

/// [`compare`] for a fixture with arguments.
pub fn compare_fixture(overhead: f64, name: &str, arguments: &[&str]) -> Run {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), name, &[]);
    let mut command: Vec<OsString> = vec![program.into()];
    command.extend(arguments.iter().map(OsString::from));
    let command: Vec<&OsStr> = command.iter().map(OsString::as_os_str).collect();
    compare(overhead, &command, &[])
}

/// Checks every burst against the bytes of the files: each branch comes from a branch instruction and goes where that
/// goes, what lies between branches falls through, and the instructions are as many as counted.
///
/// Returns how many instructions were checked.
pub fn check(set: &VectorSet) -> u64 {
    let files: Vec<Option<Vec<u8>>> = set
        .modules
        .iter()
        .map(|module| std::fs::read(&module.path).ok())
        .collect();
    let mut cache: HashMap<CodeAddress, Instruction> = HashMap::new();
    let mut checked = 0;
    for (number, burst) in set.bursts.iter().enumerate() {
        let what = |text: &str, at: CodeAddress| {
            let module = set
                .modules
                .get(at.module.0 as usize)
                .map(|module| module.path.display().to_string());
            format!("burst {number}: {text} at {:#x} of {module:?}\n{burst:#x?}", at.offset)
        };
        let mut decode = |at: CodeAddress| -> Option<Instruction> {
            if at.module == ModuleId::EXTERNAL {
                return None;
            }
            let bytes = files[at.module.0 as usize].as_ref()?.get(at.offset as usize..)?;
            Some(*cache.entry(at).or_insert_with(|| {
                Decoder::with_ip(64, &bytes[..bytes.len().min(15)], at.offset, DecoderOptions::NONE).decode()
            }))
        };
        let next = |at: CodeAddress, by: &Instruction| CodeAddress {
            offset: at.offset + by.len() as u64,
            ..at
        };
        let mut at = burst.start.expect("a burst has a start");
        let mut instructions = 0u64;
        let mut complete = true;
        for branch in &burst.branches {
            assert!(
                at.module == branch.from.module,
                "{}",
                what("fell into another module", at)
            );
            if at.module == ModuleId::EXTERNAL {
                at = branch.to;
                complete = false;
                continue;
            }
            while at != branch.from {
                assert!(
                    at.offset < branch.from.offset,
                    "{}",
                    what("missed a branch", branch.from)
                );
                let instruction = decode(at).unwrap_or_else(|| panic!("{}", what("no bytes", at)));
                let through = instruction.flow_control();
                let falls = matches!(through, FlowControl::Next | FlowControl::ConditionalBranch)
                    || instruction.mnemonic() == iced_x86::Mnemonic::Syscall;
                assert!(falls, "{}", what("fell through a jump", at));
                at = next(at, &instruction);
                instructions += 1;
            }
            let instruction = decode(at).unwrap_or_else(|| panic!("{}", what("no bytes", at)));
            instructions += 1;
            match instruction.flow_control() {
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::Call => {
                    let target = CodeAddress {
                        offset: instruction.near_branch_target(),
                        ..at
                    };
                    assert_eq!(target, branch.to, "{}", what("a direct branch went elsewhere", at));
                }
                FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return => {}
                _ => panic!("{}", what("no branch", at)),
            }
            at = branch.to;
        }
        let end = burst.end.expect("a burst has an end");
        while complete && at != end {
            assert!(
                at.module == end.module && at.offset < end.offset,
                "{}",
                what("never reached the end", at)
            );
            let Some(instruction) = decode(at) else { break };
            at = next(at, &instruction);
            instructions += 1;
        }
        if complete && burst.end_reason != EndReason::Signal && at.module != ModuleId::EXTERNAL {
            assert_eq!(
                instructions,
                u64::from(burst.instructions),
                "{}",
                what("instructions", at)
            );
        }
        checked += instructions;
    }
    checked
}
