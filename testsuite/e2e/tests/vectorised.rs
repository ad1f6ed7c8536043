//! Counts of loops that the annotated build vectorises are those of the source's loop.

use crate::support::*;
use pleach_profile::file::ProfileFile;
use std::process::Command;

/// The vectoriser repeats a loop's probes for each element, block after block.
#[test]
fn vectorised_loops_have_the_iterations_of_the_source() {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("annotated"), dir.path().join("app.pleach"));
    compile(
        &binary,
        &[flags(&["annotate"]), vec!["-O2".to_owned()]].concat(),
        &[program("vectorised.c")],
    );
    for (calls, length) in [("600000", 8.0), ("160000", 40.0)] {
        let mut record = Command::new(pleach());
        record.args(["record", "--quiet", "--overhead", "50%", "-o"]);
        stdout(
            record
                .arg(&profile)
                .arg("--")
                .arg(&binary)
                .args([calls, &length.to_string()]),
        );
        let profile = ProfileFile::open(&profile)
            .and_then(|file| file.read_all())
            .expect("a profile");
        let add = profile
            .functions
            .iter()
            .find(|function| function.name == "add")
            .expect("add was sampled");
        let mut counts: Vec<f64> = add.blocks.iter().map(|&count| count as f64).collect();
        counts.sort_by(f64::total_cmp);
        // The condition of the inner loop, its body, and what is executed once for each of its runs.
        let [.., once, body, condition] = counts[..] else {
            panic!("{counts:?}");
        };
        let (iterations, tests) = (body / once, condition / once);
        assert!(
            (iterations / length - 1.0).abs() < 0.1,
            "{iterations} iterations, not {length}: {counts:?}"
        );
        assert!(
            (tests / (length + 1.0) - 1.0).abs() < 0.1,
            "{tests} tests of the condition: {counts:?}"
        );
    }
}
