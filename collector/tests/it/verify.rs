//! `--verify`: shadow execution beside the real one, with threads, signals and system calls, must find no difference
//! that nothing excuses.

use crate::common::{fixture, options};
use pleach_collector::verify::Verified;

/// At an overhead that gives many bursts in programs of milliseconds.
fn verified(name: &str, overhead: f64, arguments: &[&str]) -> Verified {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), name, &[]);
    let mut options = options();
    (options.verify, options.overhead) = (true, overhead);
    let command: Vec<_> = [program.into()]
        .into_iter()
        .chain(arguments.iter().map(Into::into))
        .collect();
    let recording = pleach_collector::record::record(&command, &options).unwrap();
    let verified = recording.stats.verified.expect("a comparison");
    assert!(verified.bugs.is_empty(), "{name}: {:#?}", verified.bugs);
    assert!(!verified.disagreements.contains_key("bug"), "{name}: {verified:?}");
    println!(
        "{name}: {} instructions, {:?}",
        verified.instructions, verified.disagreements
    );
    verified
}

#[test]
fn one_thread() {
    let found = verified("compute", 20.0, &["1"]);
    assert!(found.instructions > 20_000, "{}", found.instructions);
    assert!(
        found.disagreements.keys().all(|class| class == "undefined-flags"),
        "{found:?}"
    );
    assert!(found.opcodes["interpreted"].len() > 10, "{:?}", found.opcodes);
}

#[test]
fn many_threads() {
    assert!(verified("threads", 1000.0, &[]).instructions > 1000);
}

#[test]
fn signals_jumps_and_stacks() {
    assert!(verified("handlers", 1000.0, &[]).instructions > 10_000);
    assert!(verified("masks", 100.0, &[]).instructions > 1000);
}

#[test]
fn vector_strings() {
    let found = verified("strings", 20.0, &[]);
    assert!(found.instructions > 1000, "{}", found.instructions);
    assert!(found.opcodes.contains_key("native"), "{:?}", found.opcodes);
}
