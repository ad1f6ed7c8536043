//! How fast perf.data is imported, and with how much memory, beside `perf script | llvm-profgen`.
//!
//! `import_speed FILE [BINARY]`; without a file, one of 100 000 stacks is made. The peers are run where they are
//! installed; `llvm-profgen` needs the binary.

use pleach_collector::perf::export::{ExportOptions, perf_data};
use pleach_collector::perf::import;
use pleach_collector::vector::{
    Branch, BuildId, Burst, CodeAddress, EndReason, Engine, Module, ModuleId, ModuleMapping, Process, VectorSet,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (given, binary) = (arguments.next().map(PathBuf::from), arguments.next().map(PathBuf::from));
    let Some(file) = given else {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(&file, perf_data(&made_up(100_000), ExportOptions::default()).0)?;
        // In a process of its own: making the file up takes memory as well.
        Command::new(std::env::current_exe()?).arg(file.path()).status()?;
        return Ok(());
    };
    println!("{}: {} bytes", file.display(), file.metadata()?.len());
    let before = peak_bytes();
    let begin = Instant::now();
    let imported = import(&file, None)?;
    let seconds = begin.elapsed().as_secs_f64();
    let vectors = imported.report.vectors;
    println!(
        "import: {vectors} vectors in {seconds:.3} s, {:.0} vectors/s; peak memory {} MiB more than before, the mapped file included",
        vectors as f64 / seconds,
        (peak_bytes() - before) >> 20
    );
    peers(&file, binary.as_deref(), vectors)
}

fn peers(file: &Path, binary: Option<&Path>, vectors: u64) -> Result<(), Box<dyn std::error::Error>> {
    let script = ["script", "--show-mmap-events", "-F", "ip,brstack", "-i"];
    let begin = Instant::now();
    let output = Command::new("perf")
        .args(script)
        .arg(file)
        .stderr(Stdio::null())
        .output();
    let Ok(output) = output else {
        println!("perf script: not installed");
        return Ok(());
    };
    let seconds = begin.elapsed().as_secs_f64();
    let text = output.stdout.len() >> 20;
    println!(
        "perf script: {seconds:.3} s, {:.0} vectors/s; {text} MiB of text",
        vectors as f64 / seconds
    );
    let Some(binary) = binary else { return Ok(()) };
    let path = tempfile::NamedTempFile::new()?;
    std::fs::write(&path, output.stdout)?;
    let begin = Instant::now();
    let mut profgen = Command::new("llvm-profgen-22");
    profgen.arg("--binary").arg(binary).arg("--perfscript").arg(path.path());
    let status = profgen.args(["--output", "/dev/null"]).stderr(Stdio::null()).status();
    match status {
        Ok(status) => println!("llvm-profgen: {:.3} s ({status})", begin.elapsed().as_secs_f64()),
        Err(_) => println!("llvm-profgen: not installed"),
    }
    Ok(())
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Stacks of 32 in one module.
fn made_up(stacks: u64) -> VectorSet {
    let at = |number: u64| CodeAddress {
        module: ModuleId(0),
        offset: 0x1000 + number.wrapping_mul(0x9e37_79b9) % 0x10_0000,
    };
    let burst = |time_ns: u64| Burst {
        process: 0,
        thread: 1,
        time_ns,
        engine: Engine::Lbr,
        start: None,
        branches: (0..32)
            .map(|branch| Branch {
                from: at(time_ns * 64 + branch * 2),
                to: at(time_ns * 64 + branch * 2 + 1),
            })
            .collect(),
        end: None,
        end_reason: EndReason::Budget,
        instructions: 0,
        count: 1,
        proved: true,
        system_call: None,
        hardware: None,
        values: Vec::new(),
        timing: None,
    };
    VectorSet {
        modules: vec![Module {
            path: PathBuf::from("/nowhere/program"),
            build_id: Some(BuildId(vec![7; 20])),
            mappings: vec![ModuleMapping {
                process: 0,
                start: 0x5555_0000_0000,
                end: 0x5555_0020_0000,
                file_offset: 0,
            }],
        }],
        processes: vec![Process {
            pid: 1,
            parent: None,
            command: "program".to_owned(),
            program_cpu_seconds: 0.0,
            own_cpu_seconds: 0.0,
            lost: 0,
            declined: 0,
            undisturbed: false,
        }],
        events: Vec::new(),
        bursts: (1..=stacks).map(burst).collect(),
        coverage: Vec::new(),
        samples: Vec::new(),
        compressed: None,
    }
}
