//! Which bursts of shadow execution prove what they show, and which processes end undisturbed.

use crate::common::{fixture, options};
use pleach_collector::vector::{Engine, Process, VectorSet};

fn recorded(fixture_name: &str, how: &str) -> VectorSet {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), fixture_name, &[]);
    let mut options = options();
    options.overhead = 0.3;
    let recording = pleach_collector::record::record(&[program.into(), how.into()], &options).unwrap();
    let set = recording.vectors;
    assert!(set.bursts.len() > 5, "{how}: {} bursts", set.bursts.len());
    assert!(set.bursts.iter().all(|burst| burst.engine == Engine::RunAhead));
    assert_eq!(VectorSet::from_bytes(&set.to_bytes()).unwrap(), set);
    set
}

fn process(set: &VectorSet) -> &Process {
    &set.processes[0]
}

fn proved(set: &VectorSet) -> usize {
    set.bursts.iter().filter(|burst| burst.proved).count()
}

/// Bursts whose proof is waited for at the same time: of a longer stay in one loop, only the last ones are proved.
const MAX_WAITING: usize = 256;

/// Whether all but two of the bursts that may be are proved.
fn is_proved(set: &VectorSet) -> bool {
    proved(set) + 2 >= set.bursts.len().min(MAX_WAITING)
}

/// Whether a process that nothing disturbs is known to have ended so, in this recording or in another: a tick may come
/// after it told its end, which then was none.
fn ended_undisturbed(set: &VectorSet, how: &str) -> bool {
    process(set).undisturbed || (0..4).any(|_| process(&recorded("company", how)).undisturbed)
}

#[test]
fn a_program_alone_is_proof() {
    for how in ["", "ignored", "_exit"] {
        let set = recorded("company", how);
        assert!(ended_undisturbed(&set, how), "{how}");
        let last = set.bursts.iter().max_by_key(|burst| burst.time_ns).unwrap();
        assert!(
            process(&set).undisturbed || !last.proved,
            "{how}: nothing came after its end"
        );
        // What comes after the process told its end proves nothing.
        assert!(is_proved(&set), "{how}: {} of {}", proved(&set), set.bursts.len());
    }
}

#[test]
fn company_is_none() {
    for how in ["thread", "handler", "shared"] {
        let set = recorded("company", how);
        // At most what came before.
        let first = set.bursts.iter().take_while(|burst| burst.proved).count();
        assert_eq!(proved(&set), first, "{how}");
        assert!(first <= 2, "{how}: {first}");
        if how == "shared" {
            assert!(ended_undisturbed(&set, how));
        } else {
            assert!(!process(&set).undisturbed, "{how}");
        }
    }
}

#[test]
fn a_handler_that_is_gone_may_have_cut_functions_short() {
    let set = recorded("company", "former-handler");
    assert!(is_proved(&set));
    assert!(!process(&set).undisturbed);
}

#[test]
fn a_killed_program_proves_only_what_it_was_seen_beyond() {
    let set = recorded("company", "kill");
    assert!(!process(&set).undisturbed);
    let last = set.bursts.iter().max_by_key(|burst| burst.time_ns).unwrap();
    assert!(!last.proved, "it may have been killed before it came there");
    // It printed after all of its work, so it was interrupted elsewhere than in its loops.
    assert!(proved(&set) < set.bursts.len());
}
