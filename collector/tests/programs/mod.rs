//! Records programs that do everything a sampler could trip over.

#![allow(unsafe_code, reason = "system calls")]

use crate::common::{self, check, compare, compare_fixture, engine, fixture, options, record};
use pleach_collector::launch::LaunchError;
use pleach_collector::record::{RecordError, RecordOptions, Repeat};
use pleach_collector::vector::{EndReason, Engine, VectorSet};
use pleach_facilities::{DEADLINE, Watchdog, spawn_within};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[test]
fn one_thread_at_any_overhead() {
    // Above these budgets ticks would have to come faster than a busy machine delivers them.
    let (least, most) = if engine() == Engine::Step {
        (0.25, 2.0)
    } else {
        (0.05, 0.5)
    };
    for overhead in [least, 0.3, most] {
        // The budget is kept on average, over seconds.
        let (bursts, seconds) = if overhead == most { (1000, 2.0) } else { (1, 0.0) };
        let run = compute_until(bursts, seconds, overhead);
        assert!(run.stats.bursts >= bursts, "{overhead}: {:?}", run.stats);
        if overhead == most {
            assert!(
                (run.stats.overhead / overhead - 1.0).abs() < 0.3,
                "{overhead}: {:?}",
                run.stats
            );
            assert!(run.checked > 1000);
        }
        let module = run
            .vectors
            .modules
            .iter()
            .find(|module| module.path.ends_with("compute"))
            .unwrap();
        assert_eq!(module.build_id.as_ref().map(|id| id.0.len()), Some(20));
    }
}

/// Records `compute` with more and more work until there are enough bursts, and the program ran long enough. The number
/// of bursts for a budget depends on the machine.
fn compute_until(bursts: u64, seconds: f64, overhead: f64) -> common::Run {
    let mut repeats = 20;
    loop {
        let run = compare_fixture(overhead, "compute", &["3", &repeats.to_string()]);
        let is_met = run.stats.bursts >= bursts && run.stats.program_cpu_seconds >= seconds;
        if is_met || repeats > 10_000 {
            return run;
        }
        repeats *= 4;
    }
}

#[test]
fn the_timer_does_where_events_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "compute", &[]);
    let mut options = options();
    (options.overhead, options.timer_only) = (1.0, true);
    let recording = pleach_collector::record::record(&[program.into()], &options).unwrap();
    assert!(recording.stats.bursts > 2, "{:?}", recording.stats);
    check(&recording.vectors);
}

#[test]
fn every_thread_is_sampled_by_its_own_time() {
    // Its threads run for a few milliseconds: so much overhead that each is sampled many times.
    let run = compare_fixture(10.0, "threads", &[]);
    let threads: HashSet<u32> = run.vectors.bursts.iter().map(|burst| burst.thread).collect();
    assert!(threads.len() >= 5, "{threads:?}");
    assert!(run.stats.threads > 200, "{:?}", run.stats);
    assert_eq!(run.stats.unsampled_threads, 0);
}

#[test]
fn children_are_followed() {
    // Every child runs for 40 ms: so much overhead that each is sampled many times, on a slow machine too.
    let run = compare_fixture(20.0, "children", &[]);
    let sampled: HashSet<u32> = run.vectors.bursts.iter().map(|burst| burst.process).collect();
    let forked = run
        .vectors
        .processes
        .iter()
        .filter(|process| process.parent.is_some())
        .count();
    let leaves = run
        .vectors
        .processes
        .iter()
        .enumerate()
        .filter(|(i, process)| process.command.contains(" leaf") && sampled.contains(&(*i as u32)));
    assert!(forked >= 4, "{:#?}", run.vectors.processes);
    // All but the one that `system` starts when the environment is empty.
    assert_eq!(leaves.count(), 7, "{:#?}", run.vectors.processes);
}

#[test]
fn forked_children_that_live_long_are_all_sampled() {
    // A hundred ticks or so are expected of each: whether it was chosen at its start or had to wait.
    for (how, least) in [("servers", 4), ("daemon", 1), ("threads", 1)] {
        let run = compare_fixture(0.3, "forks", &[how]);
        let forked: HashSet<u32> = run
            .vectors
            .bursts
            .iter()
            .map(|burst| burst.process)
            .filter(|process| run.vectors.processes[*process as usize].parent.is_some())
            .collect();
        assert_eq!(forked.len(), least, "{how}: {:?}", run.stats);
        assert_eq!(run.stats.unsampled_threads, 0, "{how}: {:?}", run.stats);
    }
}

#[test]
fn forked_children_do_all_that_they_do_otherwise() {
    for overhead in [0.01, 0.3, 20.0] {
        compare_fixture(overhead, "forks", &[]);
    }
}

#[test]
fn the_time_of_short_forked_children_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "forks", &[]);
    let arguments = ["short", "400", "tell"].map(OsStr::new);
    let command: Vec<&OsStr> = [program.as_os_str()].into_iter().chain(arguments).collect();
    let run = record(0.01, &command, &[]);
    let told: f64 = String::from_utf8_lossy(&run.output.stdout).trim().parse().unwrap();
    let stats = &run.stats;
    let known = stats.program_cpu_seconds + stats.own_cpu_seconds;
    // The program's own end comes after it told.
    assert!((0.95..1.1).contains(&(known / told)), "{known} of {told} s: {stats:?}");
    assert_eq!(stats.processes + stats.unsampled_processes, 401, "{stats:?}");
    assert_eq!(stats.threads, 401, "{stats:?}");
}

#[test]
fn sigtrap_remains_the_programs() {
    for overhead in [0.1, 5.0] {
        let run = compare_fixture(overhead, "traps", &[]);
        assert!(overhead < 1.0 || run.stats.bursts > 10, "{:?}", run.stats);
        for argument in ["raise", "int3", "ignored"] {
            compare_fixture(overhead, "traps", &[argument]);
        }
    }
}

#[test]
fn blocked_signals_stay_blocked_for_the_program() {
    let run = compare_fixture(3.0, "masks", &[]);
    assert!(run.stats.bursts > 10, "{:?}", run.stats);
}

#[test]
fn handlers_jumps_and_stacks_of_the_program() {
    for _ in 0..3 {
        let run = compare_fixture(3.0, "handlers", &[]);
        assert!(run.stats.bursts > 10, "{:?}", run.stats);
    }
}

#[test]
fn tiny_stacks_are_never_written_to() {
    let run = compare_fixture(3.0, "stacks", &[]);
    assert!(run.stats.bursts > 10, "{:?}", run.stats);
}

/// Processors with AMX have signal frames that are smaller than the kernel says: tiles are in those of few processes.
#[test]
fn alternate_stacks_of_the_least_size_suffice() {
    let run = compare_fixture(3.0, "least_stack", &[]);
    assert!(run.stats.bursts > 10, "{:?}", run.stats);
}

#[test]
fn repeats_vectors_and_system_calls() {
    let run = compare_fixture(5.0, "strings", &[]);
    assert!(run.stats.bursts > 10, "{:?}", run.stats);
}

#[test]
fn what_was_collected_survives_the_end() {
    for end in ["segv", "kill", "abort", "_exit", "ud2", "call"] {
        let run = compare_fixture(2.0, "endings", &[end]);
        assert!(run.stats.bursts > 3, "{end}: {:?}", run.stats);
        assert!(
            run.stats.own_cpu_seconds > 0.0 && run.stats.program_cpu_seconds > 0.0,
            "{end}: {:?}",
            run.stats
        );
    }
}

#[test]
fn descriptors_are_out_of_the_way() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    for how in ["none", "loop", "range", "from"] {
        let run = compare_fixture(2.0, "descriptors", &[how]);
        assert!(run.stats.bursts > 3 && run.stats.lost == 0, "{how}: {:?}", run.stats);
    }
    // Closed behind our back: what came before is kept, the program's file is not touched.
    let run = compare_fixture(2.0, "descriptors", &["raw", file.to_str().unwrap()]);
    assert!(run.stats.processes == 1, "{:?}", run.stats);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
}

#[test]
fn a_confined_program_is_left_alone() {
    for how in ["prctl", "seccomp"] {
        let run = compare_fixture(2.0, "confined", &[how]);
        assert!(run.stats.bursts > 3, "{how}: {:?}", run.stats);
    }
}

#[test]
fn a_full_disk_costs_bursts_only() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "compute", &[]);
    let script = format!("ulimit -f 8; trap '' USR1; exec {} 5", program.display());
    let command = ["sh", "-c", &script].map(OsStr::new);
    let run = compare(20.0, &command, &[("BURST", "500")]);
    assert!(
        run.stats.damaged_bytes > 0 && run.stats.lost > 0 && run.stats.bursts > 0,
        "{:?}",
        run.stats
    );
    let options = RecordOptions {
        overhead: 20.0,
        ..options()
    };
    let recording = pleach_collector::record::record(&command.map(OsString::from), &options).unwrap();
    let lost = |remark: &String| remark.contains(" lost: ") && remark.contains(" could not be written to ");
    assert!(recording.remarks.iter().any(lost), "{:?}", recording.remarks);
}

#[test]
fn the_same_seed_and_period_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "compute", &[]);
    let mut options = options();
    options.period = Some(std::time::Duration::from_millis(2));
    (options.seed, options.repeat, options.burst) = (Some(7), Repeat::Times(2), Some(16));
    let recording = pleach_collector::record::record(&[program.into()], &options).unwrap();
    assert_eq!(recording.stats.processes, 2);
    assert!(recording.vectors.bursts.iter().all(|burst| burst.branches.len() <= 16));
    assert!(
        recording
            .vectors
            .bursts
            .iter()
            .any(|burst| burst.end_reason == EndReason::Budget)
    );
}

fn refusal(command: &Path) -> LaunchError {
    let options = options();
    match pleach_collector::record::record(&[OsString::from(command)], &options) {
        Err(RecordError::Launch(error)) => error,
        other => panic!("{}: {other:?}", command.display()),
    }
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let dynamic = fixture(directory.path(), "compute", &[]);

    assert_eq!(refusal(Path::new("no-such-command-anywhere")).exit_code(), 127);
    assert_eq!(refusal(&at("nothing")).exit_code(), 127);
    assert_eq!(refusal(directory.path()).exit_code(), 126);

    std::fs::write(at("plain"), "text").unwrap();
    assert_eq!(refusal(&at("plain")).exit_code(), 126);
    std::fs::set_permissions(at("plain"), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(refusal(&at("plain")).to_string().contains("exec format error"));

    std::fs::rename(&dynamic, at("dynamic")).unwrap();
    let fixed = fixture(directory.path(), "compute", &["-static"]);
    assert!(refusal(&fixed).to_string().contains("statically linked"));
    std::fs::write(at("script"), format!("#! {} -x\n", fixed.display())).unwrap();
    std::fs::set_permissions(at("script"), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(refusal(&at("script")).to_string().contains("statically linked"));

    let mut bytes = std::fs::read(at("dynamic")).unwrap();
    bytes[18] = 183;
    std::fs::write(at("foreign"), &bytes).unwrap();
    std::fs::set_permissions(at("foreign"), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(refusal(&at("foreign")).to_string().contains("architecture"));

    // Only root can make one that would change the user.
    if chown(at("dynamic"), Some(65534), None).is_ok() {
        std::fs::set_permissions(at("dynamic"), PermissionsExt::from_mode(0o4755)).unwrap();
        assert!(refusal(&at("dynamic")).to_string().contains("set-user-ID"));
    }
}

#[test]
fn scripts_and_pipes() {
    let script = "for i in 1 2 3; do seq 2000 | sort -n | tail -1 | sed s/2/x/; done; (exit 4)";
    for overhead in [0.01, 1.0, 30.0] {
        let run = compare(overhead, &["bash", "-c", script].map(OsStr::new), &[]);
        let images = run.stats.processes + run.stats.unsampled_processes;
        assert!(images > 12, "{:?}", run.stats);
        assert!(overhead < 30.0 || run.stats.bursts > 2, "{:?}", run.stats);
    }
}

#[test]
fn a_path_with_spaces() {
    let directory = tempfile::Builder::new().prefix("a b:c").tempdir().unwrap();
    let copy = directory.path().join("sampler library.so");
    std::fs::copy(common::sampler(), &copy).unwrap();
    let sampler = "libpleach_preload.so";
    std::fs::copy(
        common::sampler().with_file_name(sampler),
        directory.path().join(sampler),
    )
    .unwrap();
    let options = RecordOptions {
        preload: copy,
        ..options()
    };
    let recording = pleach_collector::record::record(&[OsString::from("true")], &options).unwrap();
    assert!(recording.status.success());
    assert_eq!(recording.stats.processes, 1);
}

#[test]
fn statistics_have_their_names() {
    let run = record(1.0, &["true"].map(OsStr::new), &[]);
    let json = serde_json::to_value(&run.stats).unwrap();
    for key in [
        "engine",
        "program_cpu_seconds",
        "own_cpu_seconds",
        "overhead",
        "bursts",
        "vectors",
        "taken_branches",
        "instructions",
        "end_reasons",
        "lost",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(json["engine"], engine().name());
}

#[test]
fn more_threads_than_descriptors_and_forks_among_them() {
    let run = compare_fixture(3.0, "many", &[]);
    assert_eq!(run.stats.threads + run.stats.unsampled_threads, 1112, "{:?}", run.stats);
    assert!(run.stats.threads > 1100, "{:?}", run.stats);
}

#[test]
fn changes_behind_our_back_are_declined() {
    let run = compare_fixture(3.0, "raw", &[]);
    // Shadow execution has no use for the trap flag.
    let declines = engine() == Engine::Step;
    assert!(!declines || run.stats.declined > 10, "{:?}", run.stats);
    assert!(run.stats.bursts > 3, "{:?}", run.stats);
}

/// A recorder in a process group of its own, running a shell that tells what reaches it.
fn spawn_shell(script: &str, output: &Path) -> (Child, Watchdog) {
    let mut recorder = Command::new(common::built().join("examples/record"));
    recorder
        .arg(common::sampler())
        .args(["1", "bash", "-c", script])
        .env("ENGINE", engine().name());
    recorder
        .env("OUTPUT", output)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    spawn_within(&mut recorder, DEADLINE).unwrap()
}

fn read_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut byte = [0];
    while child.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0].into());
    }
    line
}

#[test]
fn signals_reach_the_program_and_the_recording_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("vectors");
    let script = "trap 'echo term; exit 5' TERM; trap 'echo int; exit 6' INT; echo ready; while :; do :; done";
    // SIGTERM reaches the recorder alone; SIGINT reaches the whole group, as from a terminal.
    for (signal, whole_group, heard, status) in [(libc::SIGTERM, false, "term", 5), (libc::SIGINT, true, "int", 6)] {
        let (mut recorder, _watchdog) = spawn_shell(script, &output);
        assert_eq!(read_line(&mut recorder), "ready");
        let pid = recorder.id() as i32;
        // SAFETY: plain integers, and a process of our own.
        unsafe { libc::kill(if whole_group { -pid } else { pid }, signal) };
        assert_eq!(read_line(&mut recorder), heard);
        assert_eq!(recorder.wait().unwrap().code(), Some(status));
        assert!(!VectorSet::read_from(&output).unwrap().processes.is_empty());
        std::fs::remove_file(&output).unwrap();
    }
}

#[test]
fn descendants_that_go_on_contribute_what_they_have() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("vectors");
    let script = "(trap '' HUP; exec >&-; i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done) & sleep 0.5; echo $!";
    let (mut recorder, _watchdog) = spawn_shell(script, &output);
    let survivor: i32 = read_line(&mut recorder).parse().unwrap();
    assert!(recorder.wait().unwrap().success());
    let set = VectorSet::read_from(&output).unwrap();
    let position = set
        .processes
        .iter()
        .position(|process| process.pid == survivor as u32)
        .unwrap();
    assert!(set.bursts.iter().any(|burst| burst.process as usize == position));
    // SAFETY: plain integers, and a process of our own.
    unsafe { libc::kill(survivor, libc::SIGKILL) };
}
