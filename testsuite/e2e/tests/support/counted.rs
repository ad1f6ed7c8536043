//! Shared by the tests of instrumented builds: a program marks the blocks it executes, and its counts are compared
//! with the marks.

use super::*;
use pleach_annotate::binary::Binary;
use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::FunctionGuid;
use pleach_annotate::manifest;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

/// The option that compiles for AArch64; such programs are run by QEMU.
pub const AARCH64: &str = "--target=aarch64-linux-gnu";
pub const MARKS: usize = 64;
const REGIONS: usize = 8;

/// A build of a program.
#[derive(Clone, Debug)]
pub struct Build {
    /// `early` or `late`.
    pub anchor: &'static str,
    /// `-O2` and so on.
    pub level: &'static str,
    /// More options of `pleach flags instrument`.
    pub what: Vec<String>,
    /// More options of the compiler.
    pub extra: Vec<String>,
}

impl Build {
    pub fn new(anchor: &'static str, level: &'static str) -> Self {
        Self {
            anchor,
            level,
            what: Vec::new(),
            extra: Vec::new(),
        }
    }

    pub fn what(&self, words: &[&str]) -> Self {
        let mut new = self.clone();
        new.what.extend(words.iter().map(|w| (*w).to_owned()));
        new
    }

    pub fn extra(&self, words: &[&str]) -> Self {
        let mut new = self.clone();
        new.extra.extend(words.iter().map(|w| (*w).to_owned()));
        new
    }

    pub fn flags(&self) -> Vec<String> {
        let mut args = vec!["instrument", "--anchor", self.anchor];
        args.extend(self.what.iter().map(String::as_str));
        flags(&args)
    }

    /// The command that compiles sources, to be given more.
    pub fn command(&self, sources: &[&str]) -> Command {
        let mut command = compiler(sources);
        command.arg(self.level).args(self.flags()).args(&self.extra);
        command.args(sources.iter().map(|s| program(s)));
        command
    }

    /// Builds a program.
    pub fn program(&self, dir: &Path, sources: &[&str]) -> PathBuf {
        let words: String = self.what.concat() + &self.extra.concat();
        let words: String = words.chars().filter(|c| c.is_alphanumeric()).collect();
        let name = format!("{}-{}{}{words}", sources[0], self.anchor, self.level);
        let out = dir.join(name);
        let marks = marks_for(&self.extra);
        stdout(self.command(sources).arg(marks).arg("-o").arg(&out));
        out
    }
}

/// The anchors at these levels.
pub fn builds(levels: &[&'static str]) -> Vec<Build> {
    let both = |level: &&'static str| ["early", "late"].map(|anchor| Build::new(anchor, level));
    levels.iter().flat_map(both).collect()
}

fn compiler(sources: &[&str]) -> Command {
    let mut command = if sources.iter().any(|s| s.ends_with(".cpp")) {
        clangxx()
    } else {
        clang()
    };
    command.args(["-w", "-pthread"]);
    command
}

/// The same program without counting.
pub fn plain(dir: &Path, sources: &[&str], extra: &[&str]) -> PathBuf {
    let mut words = vec!["-O1"];
    words.extend(extra);
    compiled(dir.join(format!("{}-plain", sources[0])), sources, &words)
}

/// A program that marks what it executes.
pub fn compiled(out: PathBuf, sources: &[&str], words: &[&str]) -> PathBuf {
    let mut command = compiler(sources);
    command.args(words).args(sources.iter().map(|s| program(s)));
    stdout(command.arg(marks_for(words)).arg("-o").arg(&out));
    out
}

/// The object with the marks, compiled once and without instrumentation.
pub fn marks_object() -> &'static Path {
    static OBJECT: OnceLock<PathBuf> = OnceLock::new();
    OBJECT.get_or_init(|| compiled_marks("marks.o", &[]))
}

/// The same for the target that options of the compiler name.
fn marks_for(extra: &[impl AsRef<str>]) -> &'static Path {
    static OBJECT: OnceLock<PathBuf> = OnceLock::new();
    if extra.iter().any(|word| word.as_ref() == AARCH64) {
        OBJECT.get_or_init(|| compiled_marks("marks-aarch64.o", &[AARCH64]))
    } else {
        marks_object()
    }
}

fn compiled_marks(name: &str, extra: &[&str]) -> PathBuf {
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Renamed when complete: another run of the tests may be using it.
    let unfinished = object.with_extension(std::process::id().to_string());
    let mut command = clang();
    command
        .args(["-O1", "-fPIC", "-c"])
        .args(extra)
        .arg(program("count_marks.c"));
    stdout(command.arg("-o").arg(&unfinished));
    std::fs::rename(&unfinished, &object).expect("renamed");
    object
}

/// QEMU's command for programs of AArch64, none for others.
pub fn emulator(program: &Path) -> &'static [&'static str] {
    // `e_machine` of the ELF header.
    match std::fs::read(program).expect("a program").get(18..20) {
        Some([183, 0]) => &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
        _ => &[],
    }
}

/// The result of a run.
pub struct Run {
    pub status: std::process::ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// By region and number.
    pub marks: Vec<Vec<u64>>,
    /// The files of counts, sorted.
    pub files: Vec<PathBuf>,
    /// Keeps the files until the run is looked at.
    _dir: tempfile::TempDir,
}

/// Runs a program in a folder of its own, in which it must leave count files and nothing else.
pub fn run_counted(program: &Path, args: &[&str]) -> Run {
    run_with(program, args, |_| {})
}

pub fn run_with(program: &Path, args: &[&str], change: impl FnOnce(&mut Command)) -> Run {
    let (dir, marks) = (scratch(), scratch());
    let file = marks.path().join("marks");
    std::fs::write(&file, vec![0; MARKS * REGIONS * 8]).expect("written");
    // A program that hangs is ended.
    let mut command = Command::new("timeout");
    command
        .args(["-s", "KILL", "60"])
        .args(emulator(program))
        .arg(program)
        .args(args);
    command.current_dir(dir.path()).env("COUNT_MARKS", &file);
    command.env_remove("PLEACH_COUNTS");
    change(&mut command);
    let out = output(&mut command);
    let bytes = std::fs::read(&file).expect("marks");
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|c| u64::from_ne_bytes(c.try_into().expect("eight bytes")))
        .collect();
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir.path())
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    Run {
        status: out.status,
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        marks: words.chunks_exact(MARKS).map(<[u64]>::to_vec).collect(),
        files,
        _dir: dir,
    }
}

impl Run {
    /// Exit status as a shell has it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// The only count file, of the default name.
    pub fn file(&self) -> &Path {
        assert_eq!(self.files.len(), 1, "{:?}\n{}", self.files, self.stderr);
        &self.files[0]
    }

    /// Marks of all regions.
    pub fn all_marks(&self) -> Vec<u64> {
        (0..MARKS)
            .map(|i| self.marks.iter().map(|region| region[i]).sum())
            .collect()
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct PathRow {
    pub function: String,
    pub function_id: String,
    pub cfg_hash: String,
    pub blocks: Vec<u32>,
    pub count: u64,
    pub low: u64,
    pub high: u64,
    pub start: String,
    pub end: String,
    pub to: Option<u32>,
    pub iterations: Option<usize>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
pub struct EdgeRow {
    pub from: u32,
    pub to: u32,
    pub count: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct FunctionRow {
    pub function: String,
    pub function_id: String,
    pub cfg_hash: String,
    pub entries: u64,
    pub blocks: Vec<u64>,
    pub edges: Vec<EdgeRow>,
    pub exits: Vec<u64>,
}

/// A function's identifier and graph.
pub type Key = (String, String);

/// `pleach paths … --json`, which must print no messages.
pub fn path_rows(files: &[PathBuf]) -> Vec<PathRow> {
    serde_json::from_str(&stdout_without_messages(files, &[])).expect("JSON")
}

/// `pleach paths … --edges --json`.
pub fn flows(files: &[PathBuf]) -> BTreeMap<Key, FunctionRow> {
    let rows: Vec<FunctionRow> = serde_json::from_str(&stdout_without_messages(files, &["--edges"])).expect("JSON");
    let key = |row: FunctionRow| ((row.function_id.clone(), row.cfg_hash.clone()), row);
    rows.into_iter().map(key).collect()
}

fn stdout_without_messages(files: &[PathBuf], args: &[&str]) -> String {
    if files.is_empty() {
        return "[]".into();
    }
    let mut command = Command::new(pleach());
    command.arg("paths").args(files).args(args).arg("--json");
    let out = output(&mut command);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && stderr.is_empty(), "{command:?}\n{stderr}");
    String::from_utf8(out.stdout).expect("UTF-8")
}

/// The graphs of a program or library.
pub fn graphs(binary: &Path) -> BTreeMap<Key, Cfg> {
    let binary = Binary::open(binary).expect("a binary");
    let (entries, errors) = manifest::decode(&binary.manifest);
    assert!(errors.is_empty(), "{errors:?}");
    let key = |entry: manifest::Entry| ((entry.cfg.id.to_string(), entry.hash.to_string()), entry.cfg);
    entries.into_iter().map(key).collect()
}

/// Exact executions of the blocks with each mark.
pub fn counted_marks(flows: &BTreeMap<Key, FunctionRow>, graphs: &BTreeMap<Key, Cfg>) -> Vec<u64> {
    let names: BTreeMap<FunctionGuid, usize> = (0..MARKS)
        .map(|i| (FunctionGuid::of_name(&format!("mark{i}")), i))
        .collect();
    let mut counted = vec![0; MARKS];
    for (key, flow) in flows {
        let graph = graphs
            .get(key)
            .unwrap_or_else(|| panic!("{} has no graph", flow.function));
        for call in &graph.calls {
            if let Callee::Direct(guid) = call.callee
                && let Some(&mark) = names.get(&guid)
            {
                counted[mark] += flow.blocks[call.block.index()];
            }
        }
    }
    counted
}

/// Checks that flow is conserved: the inflow of a block equals its outflow, and entries are those of the entry block.
pub fn assert_conserved(flows: &BTreeMap<Key, FunctionRow>, graphs: &BTreeMap<Key, Cfg>, what: &str) {
    for (key, flow) in flows {
        let name = &flow.function;
        let graph = &graphs[key];
        assert_eq!(flow.blocks.len(), graph.blocks.len(), "{what}: {name}");
        let (mut within, mut out) = (vec![0; flow.blocks.len()], flow.exits.clone());
        within[0] = flow.entries;
        for edge in &flow.edges {
            within[edge.to as usize] += edge.count;
            out[edge.from as usize] += edge.count;
            let successors = &graph.blocks[edge.from as usize].successors;
            assert!(successors.iter().any(|s| s.0 == edge.to), "{what}: {name}: {edge:?}");
        }
        assert_eq!(out, flow.blocks, "{what}: {name}: out of blocks");
        // A second return of setjmp begins in the middle.
        // So it does in a child, whose file does not have what its parent did before.
        let forks = ["fork", "vfork"].map(|name| Callee::Direct(FunctionGuid::of_name(name)));
        let resumes = graph
            .calls
            .iter()
            .any(|call| pleach_ball_larus::returns_twice(call) || forks.contains(&call.callee));
        if !resumes {
            assert_eq!(within, flow.blocks, "{what}: {name}: into blocks");
        }
        // Only a block that calls something may be left without a successor.
        for (i, block) in graph.blocks.iter().enumerate() {
            let calls = graph
                .calls
                .iter()
                .any(|c| c.block.index() == i && pleach_ball_larus::may_not_return(c));
            if !block.successors.is_empty() && !calls {
                assert_eq!(flow.exits[i], 0, "{what}: {name}: block {i}");
            }
        }
    }
}

/// Flow as it follows from the listed paths (not windows), without self loops, which are counted apart.
fn assert_rows_agree(rows: &[PathRow], flows: &BTreeMap<Key, FunctionRow>, what: &str) {
    let mut blocks: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
    let mut entries: BTreeMap<Key, u64> = BTreeMap::new();
    let mut edges: BTreeMap<Key, BTreeMap<(u32, u32), u64>> = BTreeMap::new();
    for row in rows {
        assert!(
            row.count > 0 && row.low == row.count && row.high == row.count,
            "{what}: {row:?}"
        );
        assert_eq!(
            row.to.is_some(),
            ["back", "cut"].contains(&row.end.as_str()),
            "{what}: {row:?}"
        );
        let key = (row.function_id.clone(), row.cfg_hash.clone());
        let flow = &flows[&key];
        let of = blocks.entry(key.clone()).or_insert_with(|| vec![0; flow.blocks.len()]);
        for block in &row.blocks {
            of[*block as usize] += row.count;
        }
        let passed = edges.entry(key.clone()).or_default();
        for pair in row.blocks.windows(2) {
            *passed.entry((pair[0], pair[1])).or_default() += row.count;
        }
        if let Some(to) = row.to {
            *passed.entry((*row.blocks.last().expect("blocks"), to)).or_default() += row.count;
        }
        if row.start == "entry" {
            assert_eq!(row.blocks[0], 0, "{what}: {row:?}");
            *entries.entry(key).or_default() += row.count;
        }
    }
    for (key, flow) in flows {
        let name = &flow.function;
        assert_eq!(entries.get(key).copied().unwrap_or(0), flow.entries, "{what}: {name}");
        let mut of = blocks.remove(key).unwrap_or_else(|| vec![0; flow.blocks.len()]);
        let passed = edges.remove(key).unwrap_or_default();
        for edge in &flow.edges {
            let count = passed.get(&(edge.from, edge.to)).copied().unwrap_or(0);
            if edge.from == edge.to {
                of[edge.from as usize] += edge.count - count;
            } else {
                assert_eq!(count, edge.count, "{what}: {name}: {edge:?}");
            }
        }
        assert_eq!(of, flow.blocks, "{what}: {name}");
    }
}

/// Reads a run's counts, and checks everything that holds of any run: flow, marks, and paths against edges.
pub fn check(binary: &Path, run: &Run, what: &str) -> BTreeMap<Key, FunctionRow> {
    check_files(&[binary], &run.files, &run.all_marks(), what)
}

pub fn check_files(binaries: &[&Path], files: &[PathBuf], marks: &[u64], what: &str) -> BTreeMap<Key, FunctionRow> {
    let mut known = BTreeMap::new();
    for binary in binaries {
        known.extend(graphs(binary));
    }
    let flows = flows(files);
    assert_conserved(&flows, &known, what);
    assert_marks(&counted_marks(&flows, &known), marks, what);
    flows
}

fn assert_marks(counted: &[u64], marks: &[u64], what: &str) {
    let different = (0..MARKS).filter(|&i| counted[i] != marks[i]);
    let text: Vec<String> = different
        .map(|i| format!("mark {i} was counted {} times, not {}", counted[i], marks[i]))
        .collect();
    assert!(text.is_empty(), "{what}: {}", text.join("; "));
}

/// [`check`], and that the paths listed are what the flow says.
pub fn check_paths(binary: &Path, run: &Run, what: &str) -> (BTreeMap<Key, FunctionRow>, Vec<PathRow>) {
    let flows = check(binary, run, what);
    let rows = path_rows(&run.files);
    assert_rows_agree(&rows, &flows, what);
    (flows, rows)
}

/// Number of times that paths of a function ended in a call.
pub fn ends_in_calls(rows: &[PathRow], function: &str) -> u64 {
    let ended = rows.iter().filter(|r| r.function == function && r.end == "call");
    ended.map(|r| r.count).sum()
}

/// Runs every case, then fails with what all of them say.
pub struct Cases(Vec<String>);

impl Cases {
    pub fn run(what: impl FnOnce(&mut Self)) {
        let mut cases = Self(Vec::new());
        what(&mut cases);
        assert!(
            cases.0.is_empty(),
            "{} failed:\n{}",
            cases.0.len(),
            cases.0.join("\n\n")
        );
    }

    pub fn case<R>(&mut self, name: &str, case: impl FnOnce() -> R) -> Option<R> {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(case)) {
            Ok(result) => Some(result),
            Err(payload) => {
                let payload = &*payload;
                let text = payload.downcast_ref::<String>().map_or("", String::as_str);
                let text = payload.downcast_ref::<&str>().copied().unwrap_or(text);
                self.0.push(format!("{name}: {text}"));
                None
            }
        }
    }
}
