//! Programs compute the same with any profile.

use crate::support::counted::{Cases, marks_object, run_with};
use crate::support::*;
use pleach_check::random_programs::{
    ANCHORS, LEVELS, Language, OPTIONS, Profiles, RandomProgramOptions, Summary, try_programs,
};
use pleach_facilities::has_program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs, and what each is called with.
const PROGRAMS: [(&str, &[&str]); 6] = [
    ("shapes.c", &[""]),
    ("count_flow.c", &[""]),
    (
        "count_ends.c",
        &["jump", "jump_exit", "signal", "builtin", "vfork", "coroutines"],
    ),
    ("count_throw.cpp", &["", "handler", "exit_in_catch"]),
    ("count_generator.cpp", &[""]),
    ("exceptions.cpp", &[""]),
];
const SEEDS: [u64; 2] = [1, 2];

fn build(source: &str, out: PathBuf, flags: &[String]) -> PathBuf {
    let mut command = if source.ends_with(".cpp") { clangxx() } else { clang() };
    if source.ends_with(".cpp") {
        command.arg("-std=c++20");
    }
    command.args(["-w", "-pthread"]).args(flags);
    stdout(command.arg(program(source)).arg(marks_object()).arg("-o").arg(&out));
    out
}

/// Exit status, output and marks.
fn does(program: &Path, arg: &str) -> (i32, String, Vec<Vec<u64>>) {
    let run = run_with(program, &[arg], |_| {});
    (run.code(), run.stdout, run.marks)
}

/// Flags that compile with a random profile.
pub fn with_profile(level: &str, anchor: &str, seed: u64) -> Vec<String> {
    let options = OPTIONS.map(|o| o.replace("SEED", &seed.to_string()));
    let options = options.into_iter().chain([format!("-pleach-anchor={anchor}")]);
    let plugin = format!("-fpass-plugin={}", built().join("libpleach_pass.so").display());
    let told = options.flat_map(|option| ["-mllvm".to_owned(), option]);
    [level.to_owned(), plugin].into_iter().chain(told).collect()
}

#[test]
fn programs_of_every_shape() {
    let dir = scratch();
    Cases::run(|cases| {
        for (source, args) in PROGRAMS {
            let plain = build(source, dir.path().join("plain"), &["-O0".into()]);
            let expected: Vec<_> = args.iter().map(|arg| does(&plain, arg)).collect();
            for (level, anchor) in LEVELS.iter().flat_map(|level| ANCHORS.map(|anchor| (level, anchor))) {
                for seed in SEEDS {
                    cases.case(&format!("{source} {level} {anchor} {seed}"), || {
                        let flags = with_profile(level, anchor, seed);
                        let guided = build(source, dir.path().join("guided"), &flags);
                        for (arg, expected) in args.iter().zip(&expected) {
                            assert_eq!(&does(&guided, arg), expected, "{arg}");
                        }
                    });
                }
            }
        }
    });
}

fn try_some(programs: usize, language: Language, profiles: Profiles) -> Summary {
    let options = RandomProgramOptions {
        programs,
        language,
        seed: 1,
        plugin: built().join("libpleach_pass.so"),
        profiles,
        builds: LEVELS.len() * ANCHORS.len(),
        also: Vec::new(),
        flags: Vec::new(),
        keep: Path::new(env!("CARGO_TARGET_TMPDIR")).join("random"),
        jobs: 2,
    };
    let summary = try_programs(&options).expect("csmith and clang are there");
    let failures: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(
        (summary.programs, summary.builds),
        (programs, programs * LEVELS.len() * ANCHORS.len())
    );
    summary
}

#[test]
fn random_programs() {
    if !has_program("csmith") {
        return;
    }
    let summary = try_some(20, Language::C, Profiles::Random);
    // Profiles were used.
    assert!(summary.functions > 160, "{summary:?}");
    assert!(summary.superblocks > 160, "{summary:?}");
}

#[test]
fn random_cxx_programs() {
    let summary = try_some(3, Language::Cxx, Profiles::Random);
    assert!(summary.functions > 400, "{summary:?}");
    assert!(summary.superblocks > 24, "{summary:?}");
}

#[test]
fn random_programs_that_were_edited_since_they_were_counted() {
    let mut languages = vec![(2, Language::Cxx)];
    if has_program("csmith") {
        languages.push((6, Language::C));
    }
    for (programs, language) in languages {
        let summary = try_some(programs, language, Profiles::BeforeEdits(pleach()));
        assert!(summary.edits.statements as usize > programs, "{summary:?}");
        assert!(summary.salvaged as usize > 2 * programs, "{summary:?}");
    }
}

#[test]
fn random_programs_that_were_recorded() {
    let recordings = 4;
    let pleach = pleach();
    let summary = try_some(2, Language::Cxx, Profiles::Recorded { pleach, recordings });
    assert_eq!(summary.recordings, 2 * ANCHORS.len() * recordings);
    assert!(summary.functions > 80, "{summary:?}");
}

/// Something that is wrong is found, and kept.
#[test]
fn a_compiler_that_fails_is_reported() {
    let kept = scratch();
    let options = RandomProgramOptions {
        programs: 1,
        language: Language::C,
        seed: 1,
        plugin: built().join("libpleach_pass.so"),
        profiles: Profiles::Random,
        builds: LEVELS.len() * ANCHORS.len(),
        also: vec!["-pleach-unknown".into()],
        flags: Vec::new(),
        keep: kept.path().into(),
        jobs: 1,
    };
    let summary = try_programs(&options).expect("csmith and clang are there");
    assert_eq!(summary.failures.len(), summary.builds);
    for failed in &summary.failures {
        let (_, again) = failure(Command::new("sh").arg(failed.folder.join("compile.sh")));
        assert!(again.contains("-pleach-unknown"), "{again}");
    }
}
