//! One-shot breakpoints: the program behaves as without them, and what they prove agrees with exact counts.

#![allow(unsafe_code, reason = "system calls")]

use crate::support::*;
use pleach_facilities::{has_program, skip};
use pleach_profile::file::ProfileFile;
use pleach_profile::{Covered, FunctionProfile, Profile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An annotated program and its library.
struct Built {
    _folder: tempfile::TempDir,
    program: PathBuf,
    library: PathBuf,
}

fn build() -> Built {
    let folder = scratch();
    let at = |name: &str| folder.path().join(name);
    let built = Built {
        program: at("program"),
        library: at("liblibrary.so"),
        _folder: folder,
    };
    let sources = [program("breakpoints.c"), program("breakpoints_library.c")];
    let words = flags(&["annotate"]);
    let shared = [words.clone(), vec!["-shared".into(), "-fPIC".into()]].concat();
    compile(&built.library, &shared, &sources[1..]);
    compile(
        &built.program,
        &[words, vec!["-pthread".into()]].concat(),
        &sources[..1],
    );
    built
}

fn record(options: &[&str], out: &Path, command: &[&Path]) -> (String, String) {
    let mut record = Command::new(pleach());
    record
        .arg("record")
        .args(options)
        .arg("-o")
        .arg(out)
        .arg("--")
        .args(command);
    let done = output(&mut record);
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    // 4: nothing was sampled, in so short a run.
    let ended = matches!(done.status.code(), Some(0 | 4));
    assert!(ended, "{}: {text}", done.status);
    (String::from_utf8_lossy(&done.stdout).into_owned(), text)
}

fn read(path: &Path) -> Profile {
    let profile = ProfileFile::open(path).and_then(|file| file.read_all());
    profile.expect("a profile")
}

fn is_executed(state: Covered) -> bool {
    state >= Covered::ByDominance
}

/// The states of a function's blocks.
fn states<'p>(profile: &'p Profile, function: &str) -> &'p [Covered] {
    let found = profile.functions.iter().find(|f| f.name == function);
    &found.unwrap_or_else(|| panic!("{function} is not there")).coverage
}

/// Children that share the program's memory reset the action of SIGTRAP and block it, and then execute code that has
/// breakpoints.
#[test]
fn children_made_by_vfork_may_reset_their_signals() {
    let folder = scratch();
    let built = folder.path().join("reset_signals");
    compile(&built, &flags(&["annotate"]), &[program("reset_signals.c")]);
    let plain = stdout(&mut Command::new(&built));
    assert_eq!(plain.lines().count(), 6);
    let out = folder.path().join("out.pleach");
    let (recorded, messages) = record(&[], &out, &[&built]);
    assert_eq!(recorded, plain, "{messages}");
    let profile = read(&out);
    let executed = |function| {
        states(&profile, function)
            .iter()
            .copied()
            .filter(|&s| is_executed(s))
            .count()
    };
    assert!(executed("rarely") > 3, "{:?}", states(&profile, "rarely"));
}

/// Every case of the program, with threads, signals, forks and a library that is loaded three times, ten times each way.
/// A tick may come while the loader unmaps a library whose breakpoints it would set again.
#[test]
fn libraries_are_unloaded_while_breakpoints_are_set_again() {
    let built = build();
    let program = built.program.with_extension("unloading");
    compile(&program, &flags(&["annotate"]), &[self::program("unloading.c")]);
    let plain = stdout(Command::new(&program).arg(&built.library));
    let out = program.with_extension("pleach");
    for _ in 0..20 {
        let (printed, _) = record(&["--overhead", "100%"], &out, &[&program, &built.library]);
        assert_eq!(printed, plain);
    }
}

/// Valgrind would take the sampler for a part of the program, and report what it does not know there.
#[test]
fn what_runs_in_valgrind_is_left_alone() {
    if !has_program("valgrind") {
        skip("valgrind");
        return;
    }
    let built = build();
    let out = built.program.with_extension("pleach");
    let script = built.program.with_extension("sh");
    let (program, library) = (built.program.display(), built.library.display());
    std::fs::write(
        &script,
        format!("{program} {library} > /dev/null\nexec valgrind -q --error-exitcode=9 sh -c 'exit 5'\n"),
    )
    .expect("written");
    let done = output(
        Command::new(pleach())
            .args(["record", "--overhead", "100%", "-o"])
            .arg(&out)
            .args(["--", "sh"])
            .arg(&script),
    );
    let text = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(5), "{text}");
    assert!(text.contains("a process ran in valgrind"), "{text}");
    let profile = read(&out);
    assert!(
        profile
            .functions
            .iter()
            .flat_map(|f| &f.coverage)
            .all(|&state| state != Covered::NotExecuted)
    );
}

/// More often than modules can be watched: one that is loaded again is not another.
#[test]
fn a_library_is_loaded_again_and_again() {
    let built = build();
    let program = built.program.with_extension("unloading");
    compile(&program, &flags(&["annotate"]), &[self::program("unloading.c")]);
    let out = program.with_extension("pleach");
    let times = Path::new("300");
    let plain = stdout(Command::new(&program).arg(times).arg(&built.library));
    assert!(plain.contains("few"), "{plain}");
    let (printed, text) = record(&["--coverage", "only"], &out, &[&program, times, &built.library]);
    assert_eq!(printed, plain);
    assert!(!text.contains("blocks without hits are unknown"), "{text}");
    let profile = read(&out);
    // One of its blocks runs in the last load only.
    let (executed, absent) = (states(&profile, "library_function"), states(&profile, "library_absent"));
    assert!(executed.iter().all(|&state| is_executed(state)), "{executed:?}");
    assert!(absent.iter().all(|&state| state == Covered::NotExecuted), "{absent:?}");
    // Its loads cost more than the budget: they end, and what comes after is not known.
    let times = Path::new("20000");
    let (printed, text) = record(&["--overhead", "1%"], &out, &[&program, times, &built.library]);
    assert!(printed.contains("few"), "{printed}");
    assert!(text.contains("the budget did not suffice"), "{text}");
    assert!(!text.contains("too many modules"), "{text}");
}

#[test]
fn programs_behave_as_without_breakpoints_and_everything_executed_is_found() {
    let built = build();
    let out = built.program.with_extension("pleach");
    // Without the case that jumps out of a fault.
    let plain = stdout(Command::new(&built.program).arg(&built.library));
    for options in [
        &["--coverage", "only"][..],
        &["--overhead", "100%"],
        &["--engine", "step", "--overhead", "100%"],
        &["--overhead", "100%", "--coverage-advance", "1ms"],
    ] {
        for _ in 0..3 {
            let (printed, text) = record(options, &out, &[&built.program, &built.library]);
            assert_eq!(printed, plain, "{options:?}");
            assert!(text.contains("breakpoints hit"), "{text}");
        }
    }
    let (_, text) = record(&["--coverage", "only"], &out, &[&built.program, &built.library]);
    assert!(!text.contains("blocks without hits are unknown"), "{text}");
    let profile = read(&out);
    for function in [
        "fresh",
        "in_handler",
        "while_blocked",
        "in_thread",
        "in_child",
        "in_grandchild",
        "in_spawned",
        "in_context",
        "in_suspended",
        "in_initialiser",
        "library_function",
    ] {
        assert!(is_executed(states(&profile, function)[0]), "{function}");
    }
    for function in ["absent", "library_absent", "before_fault", "after_fault"] {
        assert!(
            states(&profile, function)
                .iter()
                .all(|&state| state == Covered::NotExecuted),
            "{function}: {:?}",
            states(&profile, function)
        );
    }
}

/// A shell in small: what it does, it does in children that live for microseconds, and in the images that they start.
const SHELL: &str = r#"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define HERE __attribute__((noinline))
static volatile unsigned sum;
HERE static void in_first(void) { sum += 1; }
HERE static void in_many(void) { for (int i = 0; i < 1000; i++) sum += i; }
HERE static void in_last(void) { sum += 2; }
HERE static void in_grandchild(void) { sum += 3; }
HERE static void in_image(void) { sum += 4; }
HERE static void absent(void) { sum += 5; }
int main(int count, char **arguments) {
  if (count > 1 && !strcmp(arguments[1], "image")) { in_image(); return 0; }
  for (int i = 0; i < 300; i++) {
    if (!fork()) {
      if (i == 0) in_first();
      in_many();
      if (i == 100) execl("/proc/self/exe", "shell", "image", (char *)0);
      if (i == 200 && !fork()) { in_grandchild(); _exit(0); }
      if (i == 299) in_last();
      while (wait(0) > 0) ;
      if (count > 1 && !strcmp(arguments[1], "absent")) absent();
      _exit(0);
    }
    while (wait(0) > 0) ;
  }
  return 0;
}
"#;

#[test]
fn children_without_ticks_are_observed() {
    let folder = scratch();
    let [source, shell, out] = ["shell.c", "shell", "shell.pleach"].map(|name| folder.path().join(name));
    std::fs::write(&source, SHELL).expect("written");
    compile(&shell, &flags(&["annotate"]), &[source]);
    for options in [&[][..], &["--coverage", "only"], &["--overhead", "100%"]] {
        let (_, text) = record(options, &out, &[&shell]);
        assert!(!text.contains("blocks without hits are unknown"), "{options:?}: {text}");
        let profile = read(&out);
        for function in ["in_first", "in_many", "in_last", "in_grandchild", "in_image"] {
            assert!(is_executed(states(&profile, function)[0]), "{options:?}: {function}");
        }
        let absent = states(&profile, "absent");
        assert!(
            absent.iter().all(|&state| state == Covered::NotExecuted),
            "{options:?}: {absent:?}"
        );
    }
}

/// Two states are proofs: neither may contradict exact counts.
#[test]
fn proofs_agree_with_exact_counts() {
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    for source in [
        "alike.c",
        "called.c",
        "dispatch.c",
        "loops.c",
        "predictions.c",
        "shapes.c",
        "taken.c",
        "vanishing.c",
        "windows.c",
    ] {
        let folder = scratch();
        let at = |name: &str| folder.path().join(name);
        let (annotated, counted, counts) = (at("annotated"), at("counted"), at("a.plcnt"));
        compile(&annotated, &flags(&["annotate"]), &[program(source)]);
        compile(&counted, &flags(&["instrument"]), &[program(source)]);
        if !output(Command::new(&counted).env("PLEACH_COUNTS", &counts))
            .status
            .success()
        {
            // It needs arguments.
            continue;
        }
        record(&["--coverage", "only"], &at("sampled"), &[&annotated]);
        stdout(
            Command::new(pleach())
                .args(["import", "--quiet", "-o"])
                .arg(at("exact"))
                .arg(&counts),
        );
        let (profile, exact) = (read(&at("sampled")), read(&at("exact")));
        for function in &profile.functions {
            let same = |f: &&FunctionProfile| (f.id, f.cfg_hash) == (function.id, function.cfg_hash);
            let Some(exact) = exact.functions.iter().find(same) else {
                continue;
            };
            for (block, (&state, &truth)) in function.coverage.iter().zip(&exact.coverage).enumerate() {
                let is_executed = is_executed(truth);
                let (name, is_right) = match state {
                    Covered::NotExecuted => ("not executed", !is_executed),
                    state if state >= Covered::ByDominance => ("executed", is_executed),
                    _ => ("unknown", true),
                };
                *found.entry(name).or_default() += 1;
                assert!(is_right, "{source}: {} block {block} is called {name}", function.name);
            }
        }
    }
    let of = |name: &str| found.get(name).copied().unwrap_or(0);
    assert!(of("executed") > 50 && of("not executed") > 10, "{found:?}");
}

/// Processes of one recording know what the others hit.
#[test]
fn later_runs_hit_only_what_is_new() {
    let built = build();
    let out = built.program.with_extension("pleach");
    let traps = |repeat: &str| {
        let options = ["--coverage", "only", "--repeat", repeat];
        let (_, text) = record(&options, &out, &[&built.program, &built.library]);
        let number = text
            .split(" breakpoints hit")
            .next()
            .and_then(|text| text.rsplit('(').next());
        number
            .and_then(|n| n.parse::<u32>().ok())
            .unwrap_or_else(|| panic!("{text}"))
    };
    let (once, often) = (traps("1"), traps("20"));
    assert!(often < once * 2, "{once} in one run, {often} in twenty");
}

/// What is hit rarely is counted from below and from above; what is hit at once again is not rare.
#[test]
fn executions_of_rare_code_are_bounded() {
    let folder = scratch();
    let (binary, out) = (folder.path().join("rare"), folder.path().join("rare.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program("rare.c")]);
    record(&["--overhead", "10%"], &out, &[&binary]);
    let profile = read(&out);
    let entry = |name: &str| {
        let found = profile.functions.iter().find(|f| f.name == name);
        found.unwrap_or_else(|| panic!("{name} is not there")).executions(0)
    };
    for (name, truth) in [("once", 1), ("rare", 15)] {
        let executions = entry(name);
        let most = executions.at_most.unwrap_or_else(|| panic!("{name} is not bounded"));
        assert!(executions.at_least <= truth && truth <= most, "{name}: {executions:?}");
        assert!(most < 200, "{name}: {executions:?}");
    }
    assert!(
        entry("once").at_least == 1 && entry("rare").at_least > 1,
        "{:?}",
        entry("rare")
    );
    let frequent = entry("frequent");
    assert!(frequent.at_most.is_none_or(|most| most > 200), "{frequent:?}");
}

/// Processes that are long beside their start are observed although the time of breakpoints is spent.
#[test]
fn long_processes_are_observed_when_the_time_of_breakpoints_is_spent() {
    let folder = scratch();
    let (binary, out) = (folder.path().join("rare"), folder.path().join("rare.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program("rare.c")]);
    let options = ["--overhead", "1%", "--coverage-advance", "1us", "--repeat", "3"];
    let (_, text) = record(&options, &out, &[&binary]);
    assert!(text.contains("breakpoints hit"), "{text}");
    assert!(!text.contains("the budget did not suffice"), "{text}");
}

/// A breakpoint that was removed to keep the budget comes back, in another process if need be. Without a hit the place
/// is unknown then, but bounded.
#[test]
fn breakpoints_that_lapsed_come_back() {
    let folder = scratch();
    let (binary, out) = (folder.path().join("rare"), folder.path().join("rare.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program("rare.c")]);
    let options = ["--overhead", "1%", "--coverage-advance", "1us", "--repeat", "4"];
    record(&options, &out, &[&binary]);
    let profile = read(&out);
    let main = profile.functions.iter().find(|f| f.name == "main").expect("main");
    let is_bounded = |block: &usize| main.executions(*block).at_most.is_some();
    let mut unknown = (0..main.coverage.len()).filter(|&block| main.coverage[block] == Covered::Unknown);
    let never = unknown.find(is_bounded).expect("what never ran is bounded");
    assert_eq!(main.executions(never).at_least, 0);
}

/// Where breakpoints are impossible, the recording says so, and what was not hit is unknown.
#[test]
fn what_is_in_doubt_is_unknown() {
    let folder = scratch();
    let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
    std::fs::write(
        &source,
        "#include <sys/prctl.h>\n#include <linux/seccomp.h>\n#include <signal.h>\n#include <unistd.h>\n
         #include <sys/syscall.h>\n#include <string.h>\n
         __attribute__((noinline)) int late(int n) { return n + 1; }
         __attribute__((noinline)) int never(int n) { return n + 2; }
         int main(int count, char **arguments) {
             if (count > 5) never(count);
             if (count > 1 && !strcmp(arguments[1], \"strict\")) {
                 prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
                 int sum = late(count);
                 syscall(SYS_exit, sum - 3);
             }
             if (count > 1 && !strcmp(arguments[1], \"wait\")) {
                 sigset_t set; siginfo_t info; struct timespec none = {0, 1};
                 sigemptyset(&set); sigaddset(&set, SIGTRAP); sigprocmask(SIG_BLOCK, &set, 0);
                 sigtimedwait(&set, &info, &none);
                 return late(count) - 3;
             }
             return 0;
         }",
    )
    .expect("writable");
    compile(&program, &flags(&["annotate"]), std::slice::from_ref(&source));
    for (argument, reason) in [("strict", "seccomp"), ("wait", "SIGTRAP")] {
        let out = folder.path().join("a.pleach");
        let (_, text) = record(&["--coverage", "only"], &out, &[&program, Path::new(argument)]);
        assert!(text.contains(reason), "{text}");
        let profile = read(&out);
        assert_eq!(states(&profile, "never")[0], Covered::Unknown, "{argument}");
        assert!(is_executed(states(&profile, "main")[0]), "{argument}");
    }
}

/// Records in a mount namespace that `prepare` changed; its `$0` is an empty folder for temporary files. `within`: words
/// before the recorder's. `None`: such namespaces are not allowed here.
fn record_in(prepare: &str, within: &[&Path], out: &Path, command: &[&Path]) -> Option<(String, String)> {
    let temporary = scratch();
    let script = format!("{{ {prepare}; }} || exit 99; TMPDIR=$0 exec \"$@\"");
    let done = output(
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .arg(temporary.path())
            .args(within)
            .arg(pleach())
            .args(["record", "--coverage", "only", "-o"])
            .arg(out)
            .arg("--")
            .args(command),
    );
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    match done.status.code() {
        Some(0) => Some((String::from_utf8_lossy(&done.stdout).into_owned(), text)),
        Some(1 | 99) if !text.contains("pleach") => {
            skip(&format!("no mount namespace: {text}"));
            None
        }
        _ => panic!("{}: {text}", done.status),
    }
}

/// Files of the recording cannot be executed.
const NOT_EXECUTABLE: &str = "mount -t tmpfs -o noexec none \"$0\"";

/// Where files of the recording may not be executed, breakpoints are written into each process, and show the same.
#[test]
fn code_that_cannot_be_mapped_is_written() {
    let built = build();
    let out = built.program.with_extension("pleach");
    let command = [&*built.program, &*built.library];
    let (plain, _) = record(&["--coverage", "only"], &out, &command);
    let mapped = read(&out);
    let Some((printed, text)) = record_in(NOT_EXECUTABLE, &[], &out, &command) else {
        return;
    };
    assert_eq!(printed, plain);
    assert!(!text.contains("blocks without hits are unknown"), "{text}");
    let written = read(&out);
    for function in [
        "fresh",
        "in_thread",
        "in_child",
        "in_spawned",
        "absent",
        "library_absent",
    ] {
        assert_eq!(states(&written, function), states(&mapped, function), "{function}");
    }
}

/// Where the kernel refuses writes to code through `/proc/self/mem`, only libraries that are loaded later have no
/// breakpoints. Where files of the recording may not be executed either, nothing has, and nothing is proved of what was
/// not hit. The recording says both.
#[test]
fn a_hardened_kernel_is_done_without_or_named() {
    let built = build();
    let (out, hardened) = (
        built.program.with_extension("pleach"),
        built.program.with_extension("hardened"),
    );
    compile(&hardened, &["-Wall"], &[program("hardened.c")]);
    let command = [&*built.program, &*built.library];
    let (plain, _) = record(&["--coverage", "only"], &out, &command);
    let expected = read(&out);
    let Some((printed, text)) = record_in("true", &[&hardened], &out, &command) else {
        return;
    };
    assert_eq!(printed, plain, "{text}");
    let mapped = read(&out);
    for function in ["fresh", "in_thread", "in_child", "absent"] {
        assert_eq!(
            states(&mapped, function),
            states(&expected, function),
            "{function}: {text}"
        );
    }
    assert!(
        text.contains("libraries loaded by dlopen have no breakpoints"),
        "{text}"
    );
    let Some((printed, text)) = record_in(NOT_EXECUTABLE, &[&hardened], &out, &command) else {
        return;
    };
    assert_eq!(printed, plain, "{text}");
    assert!(
        text.contains("the kernel refuses to write breakpoints into code"),
        "{text}"
    );
    assert_eq!(states(&read(&out), "absent")[0], Covered::Unknown, "{text}");
}

/// A process that cannot tell which modules it has is not observed: nothing is proved, and the program runs as ever.
#[test]
fn a_process_that_cannot_see_its_modules_proves_nothing() {
    let built = build();
    let out = built.program.with_extension("pleach");
    let (plain, _) = record(&["--coverage", "only"], &out, &[&built.program, &built.library]);
    assert_eq!(states(&read(&out), "absent")[0], Covered::NotExecuted);
    // One process is observed, the other is not.
    let hidden = "\"$0\" \"$@\" && mount -t tmpfs none /proc && exec \"$0\" \"$@\"";
    let command = [
        Path::new("sh"),
        Path::new("-c"),
        Path::new(hidden),
        &built.program,
        &built.library,
    ];
    let Some((printed, text)) = record_in("true", &[], &out, &command) else {
        return;
    };
    assert_eq!(printed, plain.repeat(2), "{text}");
    assert_eq!(states(&read(&out), "absent")[0], Covered::Unknown, "{text}");
}

/// A module that makes system calls of its own could block signals: it is not observed.
#[test]
fn system_calls_without_the_library_are_refused() {
    let folder = scratch();
    let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
    std::fs::write(
        &source,
        "int main(void) { long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(14L), \"D\"(0L), \"S\"(0L), \
         \"d\"(0L) : \"rcx\", \"r11\", \"memory\"); return 0; }",
    )
    .expect("writable");
    compile(&program, &flags(&["annotate"]), std::slice::from_ref(&source));
    let out = folder.path().join("a.pleach");
    let done = output(
        Command::new(pleach())
            .args(["record", "--coverage", "only", "-o"])
            .arg(&out)
            .arg("--")
            .arg(&program),
    );
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(text.contains("no breakpoints: main makes system calls"), "{text}");
}

/// What a process may yet execute is not proved not to be executed.
#[test]
fn code_of_a_daemon_that_still_runs_is_unknown() {
    let folder = scratch();
    let (daemon, out) = (folder.path().join("daemon"), folder.path().join("daemon.pleach"));
    compile(&daemon, &flags(&["annotate"]), &[program("daemon.c")]);
    let (told, text) = record(&["--overhead", "50%"], &out, &[&daemon]);
    let process: i32 = told.trim().parse().expect("the process");
    // SAFETY: plain integers; the process is the daemon, which waits.
    unsafe { libc::kill(process, libc::SIGKILL) };
    assert!(
        text.contains(&format!("daemon (process {process}) still runs: ")),
        "{text}"
    );
    assert!(
        text.contains("blocks without hits are unknown: it still ran when the recording ended"),
        "{text}"
    );
    let profile = read(&out);
    assert!(states(&profile, "prepare").iter().all(|state| is_executed(*state)));
    let serve = states(&profile, "serve");
    assert!(serve.iter().all(|state| *state == Covered::Unknown), "{serve:?}");
}

/// Programs size their alternate stacks for the frame of one signal, and what its handler takes.
#[test]
fn small_alternate_stacks_suffice() {
    let folder = scratch();
    let stacks = folder.path().join("stacks");
    compile(&stacks, &flags(&["annotate"]), &[program("small_stacks.c")]);
    for what in ["faults", "signals", "ends", "execs", "unused"] {
        let alone = output(Command::new(&stacks).arg(what));
        assert_eq!(alone.status.code(), Some(5), "{what}");
        for options in [["--engine", "run-ahead"], ["--engine", "step"], ["--coverage", "off"]] {
            let out = folder.path().join(format!("{what}{}.pleach", options[1]));
            let recorded = output(
                Command::new(pleach())
                    .args(["record", "--overhead", "20%", "-o"])
                    .arg(&out)
                    .args(options)
                    .arg("--")
                    .args([&stacks, Path::new(what)]),
            );
            let text = String::from_utf8_lossy(&recorded.stderr);
            assert_eq!(recorded.status.code(), Some(5), "{what}, {options:?}: {text}");
            assert_eq!(recorded.stdout, alone.stdout, "{what}, {options:?}");
            if options[0] == "--coverage" {
                continue;
            }
            assert!(
                text.contains("alternate signal stack has no room for a breakpoint's signal"),
                "{what}, {options:?}: {text}"
            );
            let profile = read(&out);
            // What ran before is known; afterwards nothing is proved.
            assert!(is_executed(states(&profile, "main")[0]), "{what}, {options:?}");
            let after = states(&profile, "after");
            assert!(after.iter().all(|state| *state != Covered::NotExecuted), "{after:?}");
        }
    }
}
