//! Recording a random program, which must do what it does unobserved.

use super::build::{Limits, Ran, compile, run_command};
use super::language::Language;
use anyhow::{Result, ensure};
use pleach_harness::pleach_command::Pleach;
use std::path::{Path, PathBuf};

/// Overheads of recordings, in turn: the first leaves a profile of most of what runs, the last is the default.
const OVERHEADS: [&str; 4] = ["2000%", "100%", "10%", "1%"];
/// What `pleach record` ends with where the program ended well and had no burst.
const NOTHING_SAMPLED: i32 = 4;

/// Recordings of a program.
pub(super) struct Recorded {
    /// The profile of the first recording; there may be none where that went wrong.
    pub profile: PathBuf,
    /// The command that compiled the annotated program, for people.
    pub command: String,
    /// What went wrong, for people.
    pub wrong: Vec<String>,
}

/// Compiles an annotated program, records it and compares what it does.
///
/// # Errors
/// It cannot be compiled, or there is no profile of a run that did as expected.
pub(super) fn record(
    pleach: &Pleach,
    language: Language,
    source: &Path,
    anchor: &str,
    recordings: usize,
    expected: &Ran,
) -> Result<Recorded> {
    let program = source.with_file_name(format!("{anchor}.annotated"));
    let flags = [vec!["-O2".to_owned()], pleach.flags(&["annotate"])?].concat();
    let (command, compiled) = compile(language, source, &program, &flags)?;
    ensure!(compiled.success(), "{command}: {}", compiled.describe());
    let profile = source.with_file_name(format!("{anchor}.pleach"));
    let other = source.with_file_name("other.pleach");
    let mut wrong = Vec::new();
    for (number, overhead) in OVERHEADS.iter().cycle().take(recordings.max(1)).enumerate() {
        let mut command = Limits::OPTIMISED.command(&pleach.command);
        let out = if number == 0 { &profile } else { &other };
        command.args(["record", "--quiet", "--overhead", overhead, "-o"]);
        let ran = run_command(command.arg(out).arg("--").arg(&program))?;
        let is_right = ran.does_as(expected) || ran.code() == Some(NOTHING_SAMPLED) && ran.prints_as(expected);
        if !is_right {
            wrong.push(format!(
                "recorded at an overhead of {overhead} it {}, not {}",
                ran.describe(),
                expected.describe()
            ));
        }
    }
    ensure!(
        profile.is_file() || !wrong.is_empty(),
        "{}: no profile",
        profile.display()
    );
    Ok(Recorded {
        profile,
        command,
        wrong,
    })
}
