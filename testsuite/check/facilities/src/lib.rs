//! Facilities for the tests of all packages: skipping where the machine lacks a feature, and commands with a time
//! limit.

mod command;

pub use command::{DEADLINE, Watchdog, default_signals, output_within, reset_signals, spawn_within};

use std::io::Write;
use std::path::PathBuf;
use std::{env, io, thread};

/// Reports `skipped: TEST: REASON` on standard error, past the test harness's capture. The caller returns then.
///
/// # Panics
/// `PLEACH_REQUIRE_FACILITIES=1` says that nothing may be missing.
pub fn skip(reason: &str) {
    let line = skip_line(thread::current().name().unwrap_or("unnamed"), reason);
    assert!(!facilities_are_required(), "a required facility is missing: {line}");
    // Nobody reads it where standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Whether a missing facility is a failure.
pub fn facilities_are_required() -> bool {
    env::var_os("PLEACH_REQUIRE_FACILITIES").is_some_and(|value| value == "1")
}

/// Whether `testsuite/test` has built the whole workspace, so that no test need build what it runs.
pub fn workspace_is_built() -> bool {
    env::var_os("PLEACH_WORKSPACE_IS_BUILT").is_some_and(|value| value == "1")
}

/// Whether a program is in `PATH`; skips the calling test where it is not.
pub fn has_program(program: &str) -> bool {
    let found = find_program(program).is_some();
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

fn find_program(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn skip_line(test: &str, reason: &str) -> String {
    let reason: Vec<&str> = reason.split_whitespace().collect();
    format!("skipped: {test}: {}", reason.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_takes_one_line() {
        assert_eq!(skip_line("a::b", "no\n perf"), "skipped: a::b: no perf");
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program-here").is_none());
    }
}
