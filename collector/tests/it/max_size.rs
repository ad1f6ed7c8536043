//! Recordings with a limit on their size: files respect it, counts stay exact, and the kept sample is representative.

use crate::common::{Run, fixture, record};
use pleach_collector::vector::{Branch, Process, VectorSet};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

const LIMIT: u64 = 64 << 10;

fn shares(set: &VectorSet) -> HashMap<Branch, f64> {
    let bursts = set.bursts.iter().map(|burst| (&burst.branches, burst.count));
    let windows = set.compressed.iter().flat_map(|compressed| &compressed.windows);
    let mut shares: HashMap<Branch, f64> = HashMap::new();
    for (branches, weight) in bursts.chain(windows.map(|window| (&window.branches, window.weight))) {
        for branch in branches {
            *shares.entry(*branch).or_default() += weight as f64;
        }
    }
    let sum: f64 = shares.values().sum();
    shares.values_mut().for_each(|share| *share /= sum);
    shares
}

/// By file name and offset: two recordings number modules as they meet them.
fn named(set: &VectorSet) -> HashMap<[(String, u64); 2], f64> {
    let mut named = HashMap::new();
    for (branch, share) in shares(set) {
        let name = |at: pleach_collector::vector::CodeAddress| {
            let module = set.modules.get(at.module.0 as usize);
            (
                module.map_or(String::new(), |m| m.path.display().to_string()),
                at.offset,
            )
        };
        *named.entry([name(branch.from), name(branch.to)]).or_default() += share;
    }
    named
}

fn overlap(a: &VectorSet, b: &VectorSet) -> f64 {
    let (a, b) = (named(a), named(b));
    a.iter()
        .map(|(branch, share)| share.min(b.get(branch).copied().unwrap_or(0.0)))
        .sum()
}

fn recorded(program: &Path, arguments: &[&str], limit: Option<u64>) -> Run {
    recorded_at(3.0, program, arguments, limit)
}

fn recorded_at(overhead: f64, program: &Path, arguments: &[&str], limit: Option<u64>) -> Run {
    let command: Vec<&OsStr> = [program.as_os_str()]
        .into_iter()
        .chain(arguments.iter().map(OsStr::new))
        .collect();
    let limit = limit.map(|limit| limit.to_string());
    let mut settings: Vec<(&str, &str)> = limit.iter().map(|limit| ("MAX_SIZE", limit.as_str())).collect();
    settings.push(("CLOCKS", "off"));
    record(overhead, &command, &settings)
}

#[test]
fn a_long_run_keeps_to_the_limit_and_is_like_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "varied", &["-O1"]);
    let whole = recorded(&program, &["60"], None);
    let part = recorded(&program, &["60"], Some(LIMIT));
    assert_eq!(part.output.stdout, whole.output.stdout);
    let bytes = |set: &VectorSet| set.to_bytes().len() as u64;
    assert!(
        bytes(&whole.vectors) > 3 * LIMIT,
        "{} bytes are no test",
        bytes(&whole.vectors)
    );
    assert!(bytes(&part.vectors) <= LIMIT, "{}", bytes(&part.vectors));
    let compressed = part.vectors.compressed.as_ref().unwrap();
    assert!(part.vectors.bursts.is_empty() && compressed.rate > 1);

    // The counts are exact, and the weights of the kept windows add up to about the total.
    let epochs = &compressed.epochs;
    assert_eq!(epochs.iter().map(|epoch| epoch.bursts).sum::<u64>(), part.stats.bursts);
    let (windows, weights) = (
        epochs.iter().map(|epoch| epoch.windows).sum::<u64>() as f64,
        compressed.windows.iter().map(|window| window.weight).sum::<u64>() as f64,
    );
    assert!((weights / windows - 1.0).abs() < 0.1, "{weights} for {windows}");
    assert_eq!(part.stats.lost + part.stats.damaged_bytes, 0);

    // Two recordings of one program differ as well: that is the most that can be asked for.
    let (alike, ceiling) = (
        overlap(&whole.vectors, &part.vectors),
        overlap(&whole.vectors, &recorded(&program, &["60"], None).vectors),
    );
    println!(
        "r {}, {} epochs, {} windows of {windows}; overlap {alike:.3} of {ceiling:.3}; {} bytes of {}",
        compressed.rate,
        epochs.len(),
        compressed.windows.len(),
        bytes(&part.vectors),
        bytes(&whole.vectors),
    );
    assert!(alike > 0.9 && alike > ceiling - 0.06, "{alike}, {ceiling}");
}

#[test]
fn a_short_run_is_kept_whole() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "compute", &["-O1"]);
    // Unpacked, its bursts take more than the limit but less than memory may hold: a tenth of what they take at 300 %.
    let run = recorded_at(0.3, &program, &[], Some(1 << 20));
    assert!(run.vectors.compressed.is_none());
    assert_eq!(run.vectors.bursts.len() as u64, run.stats.bursts);
    assert!(run.stats.bursts > 0);
}

/// What children store is read while they run, each with mappings of its own; parents are found although children end
/// first.
#[test]
fn children_are_gathered() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "children", &["-O1"]);
    let (whole, part) = (recorded(&program, &[], None), recorded(&program, &[], Some(16 << 10)));
    for run in [&whole, &part] {
        // Twelve processes end and tell so. A child that was sampled before its `exec` counts for itself.
        let images = run.stats.processes + run.stats.unsampled_processes;
        assert!(images >= 12, "{:?}", run.stats);
        let is_child = |process: &&Process| process.parent.is_some();
        assert!(run.vectors.processes.iter().filter(is_child).count() > 0);
    }
    assert!(part.vectors.to_bytes().len() <= 16 << 10);
    assert_eq!(part.stats.lost + part.stats.damaged_bytes, 0);
}
