//! A real kernel, a real family of processes; only the event is not one of branch records, which this machine need not
//! have: a clock stands in. Where perf events are refused altogether, the tests say so and check the refusal.

use crate::common::fixture;
use pleach_collector::engines::lbr::attr::Scope;
use pleach_collector::engines::lbr::facts::Facts;
use pleach_collector::engines::lbr::open::Opened;
use pleach_collector::engines::lbr::plan::Plan;
use pleach_collector::engines::lbr::record_reader::RecordReader;
use pleach_collector::engines::lbr::ring::Record;
use pleach_collector::engines::lbr::spawn_stopped::StoppedChild;
use pleach_collector::engines::lbr::{attach, calibrate, probe, run};
use pleach_collector::record::{RecordError, RecordOptions, Repeat, record};
use pleach_collector::vector::{Engine, ModuleId, VectorSet};
use pleach_facilities::{default_signals, skip};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const MISC_EXEC: u16 = 1 << 13;

/// Whether the kernel permits sampling by a clock; skips the calling test if not.
fn allowed(plan: &Plan) -> bool {
    let granted = Opened::new(plan, &[0], 1_000_000, Scope::This);
    if let Err(errno) = &granted {
        // Any other error is a defect.
        assert!([libc::EACCES, libc::EPERM, libc::ENOSYS].contains(errno), "{errno}");
        skip(&format!("the kernel refuses perf events (errno {errno})"));
    }
    granted.is_ok()
}

fn word(record: &Record, at: usize) -> u64 {
    u64::from_ne_bytes(record.body[at..at + 8].try_into().unwrap())
}

fn pair(record: &Record, at: usize) -> (u32, u32) {
    let word = word(record, at);
    (word as u32, (word >> 32) as u32)
}

fn options() -> RecordOptions {
    RecordOptions::new("/nowhere/sampler")
}

fn command(program: &std::path::Path, arguments: &[&str]) -> Vec<OsString> {
    let arguments = arguments.iter().map(OsString::from);
    std::iter::once(program.as_os_str().to_owned())
        .chain(arguments)
        .collect()
}

#[test]
fn every_thread_mapping_and_exec_of_a_family_is_told() {
    family(&Plan::software_clock(&Facts::read()));
}

/// As on a processor some of whose cores have no branch records: mappings made on these cores must still be recorded.
#[test]
fn cores_without_samples_tell_all_else() {
    let mut plan = Plan::software_clock(&Facts::read());
    plan.targets.truncate(1);
    family(&plan);
}

fn family(plan: &Plan) {
    if !allowed(plan) {
        return;
    }
    let everywhere = plan.targets.len() == plan.cpus.len();
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "family", &["-ldl"]);
    let mut command = Command::new(&program);
    default_signals(&mut command).stdout(Stdio::piped());
    let stopped = StoppedChild::spawn(command).unwrap();
    let root = stopped.pid();
    let opened = Opened::new(plan, &[root], 1_000_000, Scope::FromExec).unwrap();
    let mut child = stopped.release().unwrap();
    let (mut records, mut by_cpu) = (Vec::new(), HashMap::<usize, usize>::new());
    let mut drain = || {
        for (number, ring) in opened.rings().iter().enumerate() {
            ring.drain(|record| {
                *by_cpu.entry(number).or_default() += 1;
                records.push(record);
            })
            .unwrap();
        }
    };
    let status = loop {
        drain();
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    drain();
    assert_eq!(status.code(), Some(3));
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();

    let of = |kind| records.iter().filter(move |record: &&Record| record.kind == kind);
    assert_eq!(of(2).count(), 0, "nothing was lost");
    // Sequence of (child, parent) and (thread of child, thread of parent).
    let born: HashSet<(u32, u32)> = of(FORK)
        .map(|r| (pair(r, 0).0, pair(r, 8).0))
        .chain([(root, root)])
        .collect();
    let gone: HashSet<(u32, u32)> = of(EXIT).map(|r| (pair(r, 0).0, pair(r, 8).0)).collect();
    let sampled: HashSet<(u32, u32)> = of(SAMPLE).map(|r| pair(r, 16)).collect();
    let mut threads = HashSet::new();
    for line in said.lines().filter_map(|line| line.strip_prefix("thread ")) {
        let (pid, tid) = line.split_once(' ').unwrap();
        threads.insert((pid.parse().unwrap(), tid.parse().unwrap()));
    }
    // Two in the first process, two in its first child, one in what the second child executed.
    assert_eq!(threads.len(), 5, "{said}");
    for thread in &threads {
        assert!(born.contains(thread), "{thread:?} was never born: {born:?}");
        assert!(gone.contains(thread), "{thread:?} never ended");
        // 60 ms of its own CPU time at a sample a millisecond, or at the kernel's HZ.
        assert!(!everywhere || sampled.contains(thread), "{thread:?} was never sampled");
    }
    assert!(sampled.is_subset(&born), "samples of strangers");

    let execs: Vec<u32> = of(COMM)
        .filter(|r| r.misc & MISC_EXEC != 0)
        .map(|r| pair(r, 0).0)
        .collect();
    assert_eq!(execs.len(), 2, "the command itself, and the second child");
    let mut mapped = HashSet::new();
    for record in of(MMAP2) {
        let path = record.body[64..].split(|byte| *byte == 0).next().unwrap();
        let [start, length, offset] = [8, 16, 24].map(|at| word(record, at));
        mapped.insert(format!(
            "{} {start:x} {length:x} {offset:x} {}",
            pair(record, 0).0,
            String::from_utf8_lossy(path)
        ));
    }
    let maps: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("map ")).collect();
    assert!(maps.len() >= 7, "program, loader, libc in two, libm in one: {said}");
    for map in maps {
        assert!(mapped.contains(map), "{map} was not told: {mapped:#?}");
    }
    // A buffer for every processor.
    assert!(opened.rings().len() == plan.cpus.len() && !by_cpu.is_empty());
    // 5 threads of 60 ms, and 60 more in main.
    let cpu = Duration::from_nanos(opened.cpu_ns());
    assert!(
        (Duration::from_millis(340)..Duration::from_secs(3)).contains(&cpu),
        "{cpu:?}"
    );
}

#[test]
fn samples_can_be_stopped_while_all_else_is_told() {
    let plan = Plan::software_clock(&Facts::read());
    if !allowed(&plan) {
        return;
    }
    let mut command = Command::new("/bin/sh");
    default_signals(&mut command).args([
        "-c",
        "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; /bin/true; exit 0",
    ]);
    let stopped = StoppedChild::spawn(command).unwrap();
    let opened = Opened::new(&plan, &[stopped.pid()], 1_000_000, Scope::FromExec).unwrap();
    let mut child = stopped.release().unwrap();
    opened.sample(false);
    for ring in opened.rings() {
        ring.drain(|_| {}).unwrap();
    }
    assert!(child.wait().unwrap().success());
    let mut kinds: HashMap<u32, u32> = HashMap::new();
    for ring in opened.rings() {
        ring.drain(|record| *kinds.entry(record.kind).or_default() += 1)
            .unwrap();
    }
    assert_eq!(kinds.get(&SAMPLE), None, "{kinds:?}");
    // `/bin/true` was forked, executed, and ended; so did the shell. (A shell may execute the last command itself: this
    // one is not the last.)
    assert!(kinds[&FORK] == 1 && kinds[&COMM] >= 1 && kinds[&EXIT] == 2, "{kinds:?}");
}

#[test]
fn a_whole_recording_keeps_status_and_figures() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    if !allowed(&plan) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "family", &["-ldl"]);
    let options = RecordOptions {
        repeat: Repeat::Times(2),
        overhead: 0.02,
        ..options()
    };
    let quiet = directory.path().join("quiet");
    let script = format!("#!/bin/sh\nexec {} > /dev/null\n", program.display());
    std::fs::write(&quiet, script).unwrap();
    std::fs::set_permissions(&quiet, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (recording, reports) = run::record_planned(&command(&quiet, &[]), &options, &facts, &plan).unwrap();
    assert_eq!(recording.status.code(), Some(3));
    let stats = &recording.stats;
    assert_eq!(
        (stats.engine.as_str(), stats.event.as_deref()),
        ("lbr", Some("cpu-clock:u"))
    );
    assert_eq!((stats.lost, stats.vectors, reports.len()), (0, 0, 2));
    assert_eq!(
        recording.vectors.processes.len(),
        2,
        "what both runs used is kept with their first processes"
    );
    assert!(
        (0.68..6.0).contains(&stats.program_cpu_seconds),
        "{}",
        stats.program_cpu_seconds
    );
    let share = stats.own_cpu_seconds / stats.program_cpu_seconds;
    assert!(stats.own_cpu_seconds > 0.0 && (share - stats.overhead).abs() < 1e-9);
    for report in &reports {
        assert!(report.samples > 20, "{report:?}");
        assert_eq!(
            (report.samples, report.malformed, &report.damage),
            (report.without_branches, 0, &None)
        );
    }
}

#[test]
fn a_killed_program_leaves_what_was_sampled() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    if !allowed(&plan) {
        return;
    }
    let shell = std::path::Path::new("/bin/sh");
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; kill -KILL $$";
    let (recording, reports) = run::record_planned(&command(shell, &["-c", busy]), &options(), &facts, &plan).unwrap();
    assert_eq!(recording.status.signal(), Some(libc::SIGKILL));
    assert!(reports[0].samples > 0 && recording.stats.program_cpu_seconds > 0.0);
}

#[test]
fn a_duration_ends_sampling_and_not_the_program() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    if !allowed(&plan) {
        return;
    }
    let options = RecordOptions {
        duration: Some(Duration::from_millis(150)),
        ..options()
    };
    // Half a second of CPU time, and then some sleep.
    let busy = "while [ $(cut -d' ' -f14 /proc/$$/stat) -lt 50 ]; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; done; sleep 0.1; exit 4";
    let start = Instant::now();
    let (recording, reports) =
        run::record_planned(&command("/bin/sh".as_ref(), &["-c", busy]), &options, &facts, &plan).unwrap();
    assert_eq!(recording.status.code(), Some(4));
    assert!(start.elapsed() > Duration::from_millis(500));
    assert!(reports[0].samples > 0);
    let seconds = recording.stats.program_cpu_seconds;
    assert!((0.005..0.4).contains(&seconds), "{seconds}");
}

#[test]
fn commands_that_cannot_run_are_refused() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    let error = |program: &str| {
        let command = command(program.as_ref(), &[]);
        run::record_planned(&command, &options(), &facts, &plan).unwrap_err()
    };
    assert_eq!(error("/nowhere/program").exit_code(), 127);
    assert_eq!(error("/etc/passwd").exit_code(), 126);
    let Err(refusal) = probe(&facts, None) else { return };
    let asked = record(
        &command("/bin/true".as_ref(), &[]),
        &RecordOptions {
            engine: Engine::Lbr,
            ..options()
        },
    )
    .unwrap_err();
    assert!(
        matches!(&asked, RecordError::Refused(reason) if *reason == refusal),
        "{asked}"
    );
    assert_eq!(asked.exit_code(), 1);
}

/// Threads that ran before, a thread and a child of later, and code that was mapped before.
#[test]
fn processes_that_run_already_are_sampled() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    if !allowed(&plan) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "family", &["-ldl"]);
    // The shell runs before; the family is its child.
    let script = "read go; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; \"$0\" > /dev/null; exit 5";
    let mut command = Command::new("/bin/sh");
    default_signals(&mut command).arg("-c").arg(script).arg(&program);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let recorder = std::thread::spawn(move || attach::attach_planned(&[pid, pid], &options(), &facts, &plan));
    // The events are open by then; if they were not, the shell would have no samples.
    std::thread::sleep(Duration::from_millis(200));
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let (recording, report) = recorder.join().unwrap().unwrap();
    assert!(
        recording.status.success(),
        "the recorder's processes are not its children"
    );
    assert!(report.samples > 20 && report.damage.is_none(), "{report:?}");
    // The shell's loop, and 360 ms of its child's threads.
    let seconds = recording.stats.program_cpu_seconds;
    assert!((0.34..3.0).contains(&seconds), "{seconds}");
}

#[test]
fn code_that_was_mapped_before_is_known() {
    let plan = Plan::software_clock(&Facts::read());
    if !allowed(&plan) {
        return;
    }
    let mut command = Command::new("/bin/sh");
    let busy = "while :; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; done";
    let mut child = default_signals(&mut command).args(["-c", busy]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let opened = Opened::new(&plan, &[child.id()], 1_000_000, Scope::Running).unwrap();
    opened.track(true);
    let running = attach::describe(child.id()).unwrap();
    opened.sample(true);
    let mut set = VectorSet::default();
    let mut reader = RecordReader::of_kernel_events(&mut set, opened.events());
    reader.add_running(running);
    std::thread::sleep(Duration::from_millis(300));
    reader.round(opened.rings());
    reader.finish(child.id(), 0.0, 0.0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(set.processes[0].command, "sh");
    let known = set
        .samples
        .iter()
        .filter(|sample| sample.at.module != ModuleId::EXTERNAL);
    assert!(set.samples.len() > 20, "{}", set.samples.len());
    assert!(known.count() * 10 > set.samples.len() * 9, "{:?}", set.modules);
    assert!(
        set.modules.iter().any(|module| module.build_id.is_some()),
        "{:?}",
        set.modules
    );
}

#[test]
fn processes_that_cannot_be_sampled_are_named() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    let error = |process| {
        let attached = attach::attach_planned(&[process], &options(), &facts, &plan);
        attached.unwrap_err().to_string()
    };
    let own = std::process::id();
    assert_eq!(error(own), format!("process {own} is the recorder"));
    assert_eq!(error(u32::MAX >> 1), format!("there is no process {}", u32::MAX >> 1));
}

/// What a sample costs is measured, not guessed: at most what its interrupt can take.
#[test]
fn the_cost_of_a_sample_is_plausible() {
    let plan = Plan::software_clock(&Facts::read());
    let cost = calibrate::sample_cost(&plan);
    assert!((200.0..200_000.0).contains(&cost), "{cost}");
}

/// The kernel changes the period of one thread, and of whoever is born later. Mostly that is the first thread, but when
/// threads of a family take turns on a processor, it may let them swap their events instead of stopping and starting
/// them.
#[test]
fn periods_change_while_a_program_runs() {
    let plan = Plan::software_clock(&Facts::read());
    if !allowed(&plan) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "family", &["-ldl"]);
    let mut command = Command::new(&program);
    default_signals(&mut command).stdout(Stdio::null());
    let stopped = StoppedChild::spawn(command).unwrap();
    let (before, after) = (1_000_000, 3_000_001);
    let opened = Opened::new(&plan, &[stopped.pid()], before, Scope::FromExec).unwrap();
    let mut child = stopped.release().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    opened.set_period(after);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let mut seen: HashMap<((u32, u32), u64), u32> = HashMap::new();
    for ring in opened.rings() {
        let count = |record: Record| {
            if record.kind == SAMPLE {
                *seen.entry((pair(&record, 16), word(&record, 40))).or_default() += 1;
            }
        };
        ring.drain(count).unwrap();
    }
    assert!(
        seen.keys().all(|(_, period)| [before, after].contains(period)),
        "{seen:?}"
    );
    assert!(seen.keys().any(|(_, period)| *period == after), "{seen:?}");
}

/// The real costs of a real program's samples: the controller keeps them within the budget.
#[test]
fn a_real_program_is_sampled_within_its_budget() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    if !allowed(&plan) {
        return;
    }
    let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done";
    let options = RecordOptions {
        overhead: 0.05,
        ..options()
    };
    let (recording, reports) =
        run::record_planned(&command("/bin/sh".as_ref(), &["-c", busy]), &options, &facts, &plan).unwrap();
    let stats = &recording.stats;
    // The gate lets 0.2 s worth of budget be owed, of a program that takes less than a second.
    let allowed = 0.05 * 1.05 + 0.012 / stats.program_cpu_seconds;
    assert!((0.015..allowed).contains(&stats.overhead), "{stats:?}");
    assert!(reports[0].samples > 100, "{:?}", reports[0]);
}
