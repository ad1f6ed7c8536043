//! Random shell scripts, run with and without a recorder: both must do the same.
//!
//! A script is a random sequence of [`PIECES`], in a random order: processes, signals, pipes, descriptors, limits,
//! scheduling, other languages, and annotated programs. Each run has a folder of its own. What the script writes, how it
//! ends, and the files that it leaves are compared. Process numbers and times are in no piece's output.

use anyhow::{Context, Result, ensure};
use pleach_harness::{parallel, progress};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Parts of scripts for bash. `$P` is a folder of annotated programs.
const PIECES: [&str; 46] = [
    // Pipes whose readers end first, and others.
    "seq 1 5000 | sort -rn | head -3",
    "yes pleach | head -2000 | cksum",
    "(seq 100000; echo last) | (read -r a; echo $a); echo ${PIPESTATUS[0]}",
    "printf '%s\\n' c b a | sort | tee sorted | tr a-z A-Z; cat sorted",
    "mkfifo pipe; (echo through > pipe &); cat pipe; rm pipe",
    "coproc cat; echo co >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l; exec {COPROC[1]}>&-; wait",
    "seq 3000 | gzip -c | gzip -dc | cksum",
    "dd if=/dev/zero bs=1k count=300 status=none | cksum",
    // Statuses.
    "for i in 0 1 2 77 255; do (exit $i); echo $?; done",
    "! true; echo $?; false || echo or",
    "/no/such/program 2>/dev/null; echo $?",
    "sh -c 'exit 9' & wait $!; echo $?",
    // Signals, sent and caught.
    "trap 'echo caught' USR1; kill -USR1 $$; trap - USR1",
    "(trap 'echo ending; exit 3' TERM; kill -TERM $BASHPID); echo $?",
    "(kill -SEGV $BASHPID) 2>/dev/null; echo $?",
    "(kill -TRAP $BASHPID) 2>/dev/null; echo $?",
    "(trap '' PIPE; yes 2>/dev/null | head -1); echo $?",
    "(sleep 5 & kill -9 $!; wait $!) 2>/dev/null; echo $?",
    "sleep 0.03 & kill -STOP $!; kill -CONT $!; wait $!; echo $?",
    "timeout 0.03 sleep 5; echo $?",
    "sh -c 'trap \"echo int; exit 4\" INT; kill -INT $$; sleep 1'; echo $?",
    "perl -e '$SIG{ALRM}=sub{print \"alarm\\n\";exit 2}; alarm 1; kill ALRM,$$; sleep 3'; echo $?",
    // Processes: many, in parallel, replaced.
    "for i in $(seq 12); do /bin/echo $i; done | cksum",
    "for i in 1 2 3 4; do (echo $i > job$i) & done; wait; cat job1 job2 job3 job4",
    "find . -type f -name 'input*' | sort | xargs -P 3 -n 2 cksum | sort",
    "(exec -a other sh -c 'echo $0')",
    "bash -c 'bash -c \"bash -c \\\"echo nested; exit 5\\\"\"'; echo $?",
    "nice -n 3 sh -c 'nice'; setsid sh -c 'echo session'",
    "perl -e 'for(1..4){my $p=fork;if(!$p){exit $_}waitpid $p,0;print $?>>8,\"\\n\"}'",
    "perl -e 'my $p=fork; if(!$p){exec \"sh\",\"-c\",\"exit 6\"} wait; print $?,\"\\n\"'",
    // Files, descriptors, limits.
    "exec 3>third; echo three >&3; exec 3>&-; cat third",
    "(umask 077; echo secret > private; stat -c %a private)",
    "(ulimit -n 9; cat input1 | wc -l); echo $?",
    "(ulimit -f 1; seq 100000 > large) 2>/dev/null; echo $?; rm -f large",
    "tar cf all.tar input*; tar tf all.tar | sort; rm all.tar",
    "ln -s input1 link; cat link | cksum; readlink link",
    "cat > copy <<< 'from here'; cat copy",
    "env -i /bin/sh -c 'echo \"${HOME-unset}\"'",
    // Computation.
    "awk 'BEGIN{for(i=0;i<200000;i++)s+=i%7;print s}'",
    "sort -k2 input2 | uniq -c | sort -rn | head -2",
    // Annotated programs, alone and together.
    "$P/exceptions; echo $?",
    "$P/recursive; echo $?",
    "($P/throws | cksum) & $P/recursive > sum; wait; cat sum",
    "$P/reset_signals | cksum",
    "timeout 0.02 $P/throws > /dev/null; echo ended",
    "($P/throws | cksum) & ($P/throws | cksum) & wait",
];

/// What `$P` holds, compiled from sources in `testsuite/e2e/programs`.
const PROGRAMS: [&str; 4] = ["exceptions.cpp", "recursive.c", "throws.cpp", "reset_signals.c"];

/// Options that a recording gets one of.
const OVERHEADS: [&str; 4] = ["1%", "10%", "100%", "1000%"];
const ENGINES: [&str; 3] = ["auto", "run-ahead", "ptrace"];

/// The exit status of a recorder that has not sampled anything.
const NOTHING_SAMPLED: i32 = 4;

/// What to try.
#[derive(Clone, Debug)]
pub struct RandomScriptOptions {
    /// How many scripts, each of which is run twice.
    pub scripts: usize,
    /// Determines the scripts.
    pub seed: u64,
    /// The command line that records.
    pub pleach: PathBuf,
    /// The sources of [`PROGRAMS`].
    pub sources: PathBuf,
    /// How many at a time.
    pub jobs: usize,
}

/// What one run did.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Outcome {
    /// The exit status, as a shell has it.
    status: i32,
    stdout: Vec<u8>,
    /// The words of standard error but for numbers and the recorder's lines.
    messages: String,
    /// By name: permissions and content.
    files: BTreeMap<String, (u32, Vec<u8>)>,
}

/// A script that did something else when it was recorded.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Its number.
    pub number: usize,
    /// How it was recorded.
    pub options: [&'static str; 2],
    script: String,
    alone: Outcome,
    recorded: Outcome,
    /// What the recorder said.
    recorder: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [overhead, engine] = self.options;
        writeln!(f, "script {} (--overhead {overhead} --engine {engine}):", self.number)?;
        writeln!(f, "{}", self.script)?;
        for (name, outcome) in [("alone", &self.alone), ("recorded", &self.recorded)] {
            writeln!(f, "{name}: status {}, files {:?}", outcome.status, outcome.files.keys())?;
            writeln!(f, "{}{}", String::from_utf8_lossy(&outcome.stdout), outcome.messages)?;
        }
        writeln!(f, "{}", self.recorder)
    }
}

/// Runs random scripts with and without a recorder; returns those that differ.
///
/// # Errors
/// A script could not be run, or a program not be compiled.
pub fn try_scripts(options: &RandomScriptOptions) -> Result<Vec<Difference>> {
    let programs = tempfile::tempdir().context("cannot make a temporary folder")?;
    for source in PROGRAMS {
        compile(options, source, programs.path())?;
    }
    let bar = progress::bar(options.scripts, "scripts");
    let numbers: Vec<usize> = (0..options.scripts).collect();
    let tried = parallel::map(&numbers, options.jobs, |&number| {
        let difference = try_script(options, programs.path(), number)?;
        if let Some(difference) = &difference {
            bar.suspend(|| eprintln!("{difference}"));
        }
        bar.inc(1);
        Ok(difference)
    })?;
    bar.finish_and_clear();
    Ok(tried.into_iter().flatten().collect())
}

fn compile(options: &RandomScriptOptions, source: &str, folder: &Path) -> Result<()> {
    let flags = Command::new(&options.pleach).args(["flags", "annotate"]).output()?;
    let flags = String::from_utf8(flags.stdout).context("flags are not UTF-8")?;
    let (name, extension) = source.split_once('.').context("a source without a suffix")?;
    let compiler = if extension == "c" { "clang-22" } else { "clang++-22" };
    let status = Command::new(compiler)
        .args(["-O2", "-w"])
        .args(flags.split_whitespace())
        .arg(options.sources.join(source))
        .arg("-o")
        .arg(folder.join(name))
        .status()
        .with_context(|| format!("cannot run {compiler}"))?;
    ensure!(status.success(), "{source} cannot be compiled");
    Ok(())
}

fn try_script(options: &RandomScriptOptions, programs: &Path, number: usize) -> Result<Option<Difference>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(options.seed.wrapping_add(number as u64));
    let pieces = random.random_range(2..8);
    let script: Vec<&str> = (0..pieces)
        .filter_map(|_| PIECES.choose(&mut random).copied())
        .collect();
    let end = ["", "exit 41", "kill -TERM $$"]
        .choose(&mut random)
        .copied()
        .unwrap_or("");
    let script = format!("{}\n{end}", script.join("\n"));
    let [overhead, engine] = [&OVERHEADS[..], &ENGINES[..]].map(|all| all[random.random_range(0..all.len())]);
    let (alone, _) = run(Command::new("bash"), programs, &script)?;
    let profile = tempfile::tempdir()?;
    let mut record = Command::new(&options.pleach);
    record.args(["record", "--quiet", "--overhead", overhead, "--engine", engine, "-o"]);
    record.arg(profile.path().join("app.pleach")).args(["--", "bash"]);
    let (recorded, recorder) = run(record, programs, &script)?;
    Ok((alone != recorded).then_some(Difference {
        number,
        options: [overhead, engine],
        script,
        alone,
        recorded,
        recorder,
    }))
}

/// Runs a script by a command that ends in `bash`, in a folder with two input files. Also returns the recorder's lines.
fn run(mut command: Command, programs: &Path, script: &str) -> Result<(Outcome, String)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    for (name, factor) in [("input1", 7), ("input2", 13)] {
        let lines: Vec<String> = (0..200).map(|i| format!("{} {}", i, i * factor % 31)).collect();
        fs::write(folder.path().join(name), lines.join("\n"))?;
    }
    let output = command
        .args(["-c", script])
        .current_dir(folder.path())
        .env("P", programs)
        .stdin(Stdio::null())
        .output()
        .context("cannot run a script")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let (of_recorder, of_script): (Vec<&str>, Vec<&str>) =
        stderr.lines().partition(|line| line.starts_with("pleach: "));
    let status = match output.status.code() {
        // The recorder has this status where the script succeeded, but was too short to be sampled.
        Some(NOTHING_SAMPLED) if of_recorder.iter().any(|line| line.contains("nothing was sampled")) => 0,
        Some(status) => status,
        None => 128 + output.status.signal().unwrap_or(0),
    };
    // The shell's messages have numbers of processes.
    let words = of_script.iter().flat_map(|line| line.split_whitespace());
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    let messages: Vec<&str> = words.filter(|word| !is_number(word)).collect();
    let outcome = Outcome {
        status,
        stdout: output.stdout,
        messages: messages.join(" "),
        files: files(folder.path())?,
    };
    Ok((outcome, of_recorder.join("\n")))
}

fn files(folder: &Path) -> Result<BTreeMap<String, (u32, Vec<u8>)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let content = if entry.file_type()?.is_file() {
            fs::read(entry.path())?
        } else {
            Vec::new()
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        found.insert(name, (entry.metadata()?.permissions().mode(), content));
    }
    Ok(found)
}
