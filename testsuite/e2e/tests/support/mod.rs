//! Shared by the end-to-end tests: the built tools, scratch folders, and commands whose output is in the failure
//! message.

pub mod chromium;
pub mod classes;
pub mod counted;
pub mod executed;

use pleach_facilities::{DEADLINE, has_program, output_within, workspace_is_built};
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use pleach_store::write_profile;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Folder of the built `pleach`, plugin, sampler and commands of the experiments. They are built once, by the cargo that runs the tests.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .expect("target folder")
            .to_owned();
        if workspace_is_built() {
            return target.join("release");
        }
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--release",
                "--quiet",
                "-p",
                "pleach",
                "-p",
                "pleach-pass",
                "-p",
                "pleach-preload",
                "-p",
                "pleach-stub",
                "-p",
                "pleach-papers",
                "-p",
                "pleach-bench",
            ])
            .arg("--target-dir")
            .arg(&target)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .status()
            .expect("cargo runs");
        assert!(status.success(), "building pleach failed");
        target.join("release")
    })
}

/// The `pleach` command.
pub fn pleach() -> PathBuf {
    built().join("pleach")
}

/// A test program's source.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

/// A scratch folder, removed when dropped.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("scratch folder")
}

/// The profile of a test program, sampled as often as it runs.
pub fn recorded(source: &str, dir: &Path) -> PathBuf {
    let (binary, profile) = (dir.join("annotated"), dir.join("app.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program(source)]);
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "100%", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary));
    profile
}

/// The exact profile of a program of these sources.
pub fn counted_profile(dir: &Path, sources: &[&str], arguments: &[&str]) -> PathBuf {
    let [binary, counts, profile] = ["exact", "app.plcnt", "app.pleach"].map(|name| dir.join(name));
    let sources: Vec<_> = sources.iter().map(|source| program(source)).collect();
    compile(&binary, &flags(&["instrument"]), &sources);
    stdout(Command::new(&binary).args(arguments).env("PLEACH_COUNTS", &counts));
    stdout(
        Command::new(pleach())
            .arg("import")
            .arg(&counts)
            .arg("-o")
            .arg(&profile),
    );
    profile
}

/// Changes a profile in place.
pub fn edit_profile(path: &Path, edit: impl FnOnce(&mut Profile)) {
    let mut profile = ProfileFile::open(path)
        .and_then(|file| file.read_all())
        .expect("a profile");
    edit(&mut profile);
    write_profile(path, &profile).expect("written");
}

/// The words of `use`, with options of the plugin.
pub fn with(profile: &Path, options: &[&str]) -> Vec<String> {
    let mut all = flags(&["use", profile.to_str().expect("UTF-8")]);
    for option in options {
        all.extend(["-Xclang", "-mllvm", "-Xclang", option].map(str::to_owned));
    }
    all
}

/// Compares a program's output with its profile, at every level and with each list of plugin options, with that of the
/// unoptimised program, for each argument.
pub fn computes_the_same(source: &str, options: &[&[&str]], arguments: &[&str]) {
    let dir = scratch();
    let profile = recorded(source, dir.path());
    let (plain, used) = (dir.path().join("plain"), dir.path().join("used"));
    compile(&plain, &["-O0"], &[program(source)]);
    for level in ["-O1", "-O2", "-O3", "-Os"] {
        for more in options {
            let words = [vec![level.to_owned(), "-g".to_owned()], with(&profile, more)].concat();
            compile(&used, &words, &[program(source)]);
            for argument in arguments {
                let of = |binary| stdout(Command::new(binary).arg(argument));
                assert_eq!(of(&used), of(&plain), "{level} {more:?} {argument}");
            }
        }
    }
}

/// A function in LLVM IR.
pub fn text<'i>(ir: &'i str, function: &str) -> &'i str {
    let head = format!("@{function}(");
    let mut functions = ir.split("\ndefine ");
    let found = functions.find(|f| f.lines().next().is_some_and(|line| line.contains(&head)));
    found.and_then(|f| f.split("\n}").next()).expect("it is defined")
}

/// Runs a command without input to its end, with default signal dispositions and a deadline.
pub fn output(command: &mut Command) -> Output {
    output_reading(command, Stdio::null())
}

/// [`output`] with an input.
pub fn output_reading(command: &mut Command, stdin: impl Into<Stdio>) -> Output {
    output_within(command, stdin.into(), DEADLINE).unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// Runs a command that must succeed; returns what it prints.
pub fn stdout(command: &mut Command) -> String {
    let out = output(command);
    assert!(
        out.status.success(),
        "{command:?} failed: {}\n{}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Runs a command that must fail without a crash; returns its exit status and what it says on its error stream.
pub fn failure(command: &mut Command) -> (i32, String) {
    let out = output(command);
    let code = out
        .status
        .code()
        .unwrap_or_else(|| panic!("{command:?} was killed: {}", out.status));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_ne!(code, 0, "{command:?} was expected to fail\n{text}");
    assert!(
        !text.contains("panicked") && !text.contains("PLEASE submit a bug report"),
        "{command:?} crashed:\n{text}"
    );
    (code, text)
}

/// The words that `pleach flags …` prints.
pub fn flags(args: &[&str]) -> Vec<String> {
    let text = stdout(Command::new(pleach()).arg("flags").args(args));
    text.split_whitespace().map(str::to_owned).collect()
}

/// Whether `-fuse-ld=…` finds its linker; reports a skip where not.
pub fn has_linker(linker: &str) -> bool {
    match linker {
        "lld" => has_program("ld.lld-22"),
        _ => has_program(&format!("ld.{linker}")),
    }
}

/// clang for C.
pub fn clang() -> Command {
    Command::new("clang-22")
}

/// clang for C++.
pub fn clangxx() -> Command {
    Command::new("clang++-22")
}

/// Runs a built program; returns what it prints.
pub fn run(program: &Path) -> String {
    stdout(&mut Command::new(program))
}

/// Compiles and links C sources in one go.
pub fn compile(out: &Path, flags: &[impl AsRef<OsStr>], sources: &[PathBuf]) {
    stdout(clang().arg("-O2").args(flags).args(sources).arg("-o").arg(out));
}

/// The names of an ELF file's sections.
pub fn sections(path: &Path) -> Vec<String> {
    use object::{Object, ObjectSection};
    let data = std::fs::read(path).expect("the file exists");
    let file = object::File::parse(&*data).expect("an object file");
    file.sections()
        .filter_map(|s| s.name().ok().map(str::to_owned))
        .collect()
}
