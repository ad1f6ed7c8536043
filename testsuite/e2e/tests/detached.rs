//! `record --env`, `collect` and `recover`: recordings without a recorder.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An annotated program that runs for as many seconds as its argument says, roughly.
pub fn program_of_seconds(dir: &Path, options: &[&str]) -> PathBuf {
    let source = dir.join("spin.c");
    let text = "#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n\
                int main(int argc, char **argv) {\n\
                  unsigned sum = argc; double end = atof(argv[1]) * CLOCKS_PER_SEC;\n\
                  while (clock() < end) for (unsigned i = 0; i < 100000; i++) sum = sum & 1 ? sum * 3 + 1 : sum / 2 + i;\n\
                  return sum == 7; }\n";
    std::fs::write(&source, text).expect("written");
    let binary = dir.join("spin");
    let flags = stdout(Command::new(pleach()).args(["flags", "annotate"]));
    let mut compile = Command::new("clang-22");
    compile
        .arg("-O2")
        .args(options)
        .args(flags.split_whitespace())
        .arg(&source)
        .arg("-o");
    stdout(compile.arg(&binary));
    binary
}

/// Begins a recording; the environment of its programs.
fn begin(folder: &Path, options: &[&str]) -> Vec<(String, String)> {
    let mut record = Command::new(pleach());
    let text = stdout(
        record
            .args(["record", "--overhead", "20%"])
            .args(options)
            .arg("--env")
            .arg(folder),
    );
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn start(program: &Path, seconds: &str, environment: &[(String, String)]) -> Child {
    let mut command = Command::new(program);
    command.arg(seconds).envs(environment.iter().cloned());
    command.spawn().expect("the program runs")
}

/// Bursts and processes of what is collected now.
fn collected(folder: &Path, dir: &Path) -> (u64, usize) {
    let (profile, stats) = (dir.join("c.pleach"), dir.join("stats.json"));
    let mut collect = Command::new(pleach());
    collect
        .args(["collect", "--keep-vectors", "-o"])
        .arg(&profile)
        .arg("--stats")
        .arg(&stats);
    stdout(collect.arg(folder));
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(stats).expect("stats")).expect("JSON");
    let number = |name: &str| stats[name].as_u64().unwrap_or_else(|| panic!("no {name} in {stats}"));
    (number("bursts"), number("processes") as usize)
}

#[test]
fn processes_are_collected_while_they_run_and_afterwards() {
    let dir = scratch();
    let (program, folder) = (program_of_seconds(dir.path(), &[]), dir.path().join("folder"));
    let environment = begin(&folder, &[]);
    assert!(start(&program, "0.5", &environment).wait().expect("ended").success());
    let first = collected(&folder, dir.path());
    assert!(first.0 > 0 && first.1 == 1, "{first:?}");

    let mut second = start(&program, "60", &environment);
    let patience = Instant::now() + Duration::from_secs(30);
    let mut now = first;
    while now.1 < 2 || now.0 <= first.0 {
        assert!(
            Instant::now() < patience,
            "the running process is not collected: {now:?}"
        );
        std::thread::sleep(Duration::from_millis(200));
        now = collected(&folder, dir.path());
    }
    second.kill().expect("killed");
    second.wait().expect("ended");
    assert!(collected(&folder, dir.path()).0 >= now.0);
    // A profile that the compiler takes.
    let mut show = Command::new(pleach());
    assert!(stdout(show.arg("show").arg(dir.path().join("c.pleach"))).contains("main"));
}

/// Bursts and CPU seconds of what `collect --rotate` takes; `None` if nothing was sampled.
fn taken(folder: &Path, profile: &Path) -> Option<(u64, f64)> {
    let stats = profile.with_extension("json");
    let mut collect = Command::new(pleach());
    collect
        .args(["collect", "--rotate", "-o"])
        .arg(profile)
        .arg("--stats")
        .arg(&stats);
    let status = collect.arg(folder).output().expect("pleach runs").status;
    if status.code() == Some(4) {
        return None;
    }
    assert!(status.success(), "{status}");
    let stats: serde_json::Value = serde_json::from_slice(&std::fs::read(stats).expect("stats")).expect("JSON");
    let cpu =
        stats["program_cpu_seconds"].as_f64().expect("CPU time") + stats["own_cpu_seconds"].as_f64().expect("CPU");
    Some((stats["bursts"].as_u64().expect("bursts"), cpu))
}

/// Bytes on the disk of the shards in a folder.
fn disk(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry"));
    let shards = entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "shard"));
    shards
        .map(|shard| shard.metadata().expect("metadata").blocks() * 512)
        .sum()
}

#[test]
fn what_was_taken_is_not_collected_again() {
    let dir = scratch();
    let (program, folder) = (program_of_seconds(dir.path(), &[]), dir.path().join("folder"));
    let environment = begin(&folder, &[]);
    let mut child = start(&program, "3", &environment);
    let (mut taken_ones, mut profiles) = (Vec::new(), Vec::new());
    loop {
        let has_ended = child.try_wait().expect("a child").is_some();
        std::thread::sleep(Duration::from_millis(700));
        let profile = dir.path().join(format!("{}.pleach", profiles.len()));
        if let Some(found) = taken(&folder, &profile) {
            taken_ones.push(found);
            profiles.push(profile);
        }
        if has_ended {
            break;
        }
    }
    assert!(disk(&folder) <= 32 << 10, "{} bytes", disk(&folder));
    assert!(taken_ones.len() >= 2, "{taken_ones:?}");
    assert!(taken_ones.iter().all(|(bursts, _)| *bursts > 0), "{taken_ones:?}");
    // The program's time, once.
    let cpu: f64 = taken_ones.iter().map(|(_, cpu)| cpu).sum();
    assert!((2.5..4.5).contains(&cpu), "{taken_ones:?}");
    assert_eq!(taken(&folder, &dir.path().join("none.pleach")), None);
    // Later profiles know the program, too, and together they are one.
    let merged = dir.path().join("merged.pleach");
    stdout(
        Command::new(pleach())
            .arg("merge")
            .args(&profiles)
            .arg("-o")
            .arg(&merged),
    );
    for profile in profiles.iter().chain([&merged]) {
        let shown = stdout(Command::new(pleach()).arg("show").arg(profile));
        assert!(shown.contains("main") && !shown.contains("0 sampled of"), "{shown}");
    }
}

#[test]
fn sampling_goes_on_when_a_full_folder_was_taken() {
    let dir = scratch();
    let (program, folder) = (program_of_seconds(dir.path(), &[]), dir.path().join("folder"));
    let environment = begin(&folder, &["--max-dir-size", "16k"]);
    let run = || assert!(start(&program, "1", &environment).wait().expect("ended").success());
    let take = || taken(&folder, &dir.path().join("c.pleach"));
    run();
    assert!(take().is_some());
    run();
    assert!(take().is_some(), "the folder was full, and is empty again");
}

#[test]
fn sampling_ends_when_the_folder_is_full() {
    let dir = scratch();
    let (program, folder) = (program_of_seconds(dir.path(), &[]), dir.path().join("folder"));
    let environment = begin(&folder, &["--max-dir-size", "16k"]);
    for _ in 0..2 {
        assert!(start(&program, "1", &environment).wait().expect("ended").success());
    }
    let entries = std::fs::read_dir(&folder).expect("the folder");
    let size: u64 = entries
        .map(|entry| entry.expect("an entry").metadata().expect("metadata").len())
        .sum();
    // Beside the shards: the shared page, heads and ends of shards, and the burst that exceeds the limit.
    assert!((8 << 10..48 << 10).contains(&size), "{size}");
    assert!(collected(&folder, dir.path()).0 > 0);
}

#[test]
fn folders_that_do_not_fit_are_refused() {
    let dir = scratch();
    let folder = dir.path().join("folder");
    let fails = |command: &mut Command| {
        let output = command.output().expect("pleach runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let mut collect = Command::new(pleach());
    assert!(fails(collect.arg("collect").arg(dir.path())).contains("not the directory of a recording"));
    begin(&folder, &[]);
    let mut again = Command::new(pleach());
    assert!(fails(again.args(["record", "--env"]).arg(&folder)).contains("has a recording already"));
    let mut empty = Command::new(pleach());
    let text = fails(empty.current_dir(dir.path()).arg("collect").arg(&folder));
    assert!(text.contains("nothing was sampled"), "{text}");
}

#[test]
fn a_killed_recorder_loses_no_samples() {
    kill_and_recover("ptrace", &[], false);
}

#[test]
fn a_killed_recorder_loses_no_hits_of_breakpoints() {
    let (blocks, _) = kill_and_recover("run-ahead", &[], false);
    assert!(blocks["seen"].as_u64() > Some(0), "{blocks}");
    assert!(blocks["unknown"].as_u64() > Some(0), "{blocks}");
    assert_eq!(blocks["not-executed"], 0, "nobody knows what was hit later: {blocks}");
}

#[test]
fn breakpoints_of_a_changed_file_are_not_recovered() {
    let (_, messages) = kill_and_recover("run-ahead", &[], true);
    assert!(
        messages.contains("spin: no breakpoints: the file has changed since"),
        "{messages}"
    );
}

/// The recorder has read samples and freed their space before it is killed.
#[test]
fn what_a_recorder_with_a_limit_had_not_read_is_recovered() {
    kill_and_recover("run-ahead", &["--max-size", "16k"], false);
}

/// Recovers the recording of a killed recorder, of a program whose file is `changed` meanwhile. The coverage of all its
/// blocks, and what `recover` says.
fn kill_and_recover(engine: &str, options: &[&str], changed: bool) -> (serde_json::Value, String) {
    let dir = scratch();
    let program = program_of_seconds(dir.path(), &[]);
    let temporary = dir.path().join("tmp");
    std::fs::create_dir(&temporary).expect("made");
    let mut record = Command::new(pleach());
    record
        .env("TMPDIR", &temporary)
        .args(["record", "--engine", engine, "--overhead", "20%"])
        .args(options);
    record
        .arg("-o")
        .arg(dir.path().join("never.pleach"))
        .arg("--")
        .arg(&program)
        .arg("3");
    let mut recorder = record.stderr(Stdio::null()).spawn().expect("pleach runs");
    // As soon as a burst was written.
    let patience = Instant::now() + Duration::from_secs(30);
    let written = || {
        let shards = glob(&temporary)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "shard"));
        shards
            .map(|path| path.metadata().map_or(0, |metadata| metadata.len()))
            .sum::<u64>()
    };
    let enough = if options.is_empty() { 32 << 10 } else { 256 << 10 };
    while written() < enough {
        assert!(Instant::now() < patience, "nothing is written");
        std::thread::sleep(Duration::from_millis(20));
    }
    recorder.kill().expect("killed");
    // Its parent has not waited for it yet.
    let recover = || {
        let mut recover = Command::new(pleach());
        recover.env("TMPDIR", &temporary).arg("recover");
        recover
    };
    if changed {
        let permissions = std::fs::metadata(&program).expect("there").permissions();
        std::fs::set_permissions(&program, permissions).expect("changed");
    }
    let patience = Instant::now() + Duration::from_secs(30);
    while stdout(recover().arg("--list")).is_empty() {
        assert!(Instant::now() < patience, "nothing is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    let recovered = recover().arg("-o").arg(dir.path()).output().expect("it runs");
    let messages = String::from_utf8_lossy(&recovered.stderr).into_owned();
    assert!(recovered.status.success(), "{messages}");
    recorder.wait().expect("ended");
    let profile = dir.path().join("recovered-1.pleach");
    let mut show = Command::new(pleach());
    assert!(stdout(show.arg("show").arg(&profile)).contains("main"));
    let mut coverage = Command::new(pleach());
    let coverage = stdout(coverage.args(["coverage", "--json"]).arg(&profile));
    let coverage: serde_json::Value = serde_json::from_str(&coverage).expect("JSON");
    let left: Vec<PathBuf> = std::fs::read_dir(&temporary)
        .expect("there")
        .map(|e| e.expect("an entry").path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    (coverage["blocks"].clone(), messages)
}

/// The files in the folders of a folder.
fn glob(folder: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folders
        .flat_map(|inner| std::fs::read_dir(inner.path()).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .collect()
}
