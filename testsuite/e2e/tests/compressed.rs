//! The analysis gives the same result for compressed bursts as for the bursts themselves.

use crate::support::*;
use pleach_analysis::block_counts::{RecordingCounts, count_blocks};
use pleach_analysis::program::Program;
use pleach_analysis::time_bias::Weights;
use pleach_annotate::find::Finder;
use pleach_collector::stream::{Compressor, Generator};
use pleach_collector::vector::VectorSet;
use pleach_profile::file::ProfileFile;
use std::path::Path;
use std::process::Command;

fn recorded(dir: &Path) -> VectorSet {
    let (binary, profile) = (dir.join("annotated"), dir.join("app.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program("loops.c")]);
    let mut record = Command::new(pleach());
    record.args([
        "record",
        "-q",
        "--overhead",
        "1000%",
        "--repeat",
        "3",
        "--keep-vectors",
        "-o",
    ]);
    record.arg(&profile);
    stdout(record.arg("--").arg(&binary));
    let file = ProfileFile::open(&profile).expect("a profile");
    VectorSet::from_bytes(file.vectors().expect("intact").expect("kept")).expect("vectors")
}

/// Sums over everything: entries of blocks, transitions, targets of indirect calls.
fn sums(observations: &RecordingCounts) -> [f64; 3] {
    let modules = || observations.modules.values();
    let instances = || modules().flat_map(|module| module.instances.values());
    [
        instances().flat_map(|instance| instance.blocks.iter().flatten()).sum(),
        instances().flat_map(|instance| instance.edges.iter().flatten()).sum(),
        modules().flat_map(|module| module.targets.values()).sum(),
    ]
}

#[test]
fn windows_of_all_bursts_are_the_bursts() {
    let dir = scratch();
    let mut set = recorded(dir.path());
    let program = Program::read(&set.modules, &Finder::default());
    let whole = count_blocks(&program, &set, &Weights::equal());
    let mut compressor = Compressor::new(Generator::new(1));
    set.bursts.drain(..).for_each(|burst| compressor.push(&burst));
    set.compressed = Some(compressor.finish());
    let windows = count_blocks(&program, &set, &Weights::equal());
    assert_eq!(windows.report.bursts, whole.report.bursts);
    assert_eq!(windows.report.branches, whole.report.branches);
    for (module, observed) in &whole.modules {
        let other = &windows.modules[module];
        for (instance, counts) in &observed.instances {
            assert_eq!(
                other.instances[instance].blocks, counts.blocks,
                "every block is entered as often"
            );
        }
        assert_eq!(other.targets, observed.targets);
    }
    let ([_, all, _], [_, kept, _]) = (sums(&whole), sums(&windows));
    println!("{kept} transitions of {all}");
    // Lost are those of calls that return in a later window than the next.
    assert!(kept <= all && kept >= all * 0.97, "{kept} transitions of {all}");
}
