//! Programs' own tests give the same results with any profile.

use crate::support::*;
use anyhow::Result;
use pleach_check::suites::{Checked, SuiteOptions, check};
use pleach_harness::Bench;
use std::path::Path;

fn options(keep: &Path, also: &[&str]) -> SuiteOptions {
    SuiteOptions {
        only: Vec::new(),
        seeds: vec![1],
        levels: vec!["-O2".into()],
        anchors: vec!["early".into()],
        plugin: built().join("libpleach_pass.so"),
        also: also.iter().map(|&option| option.to_owned()).collect(),
        keep: keep.to_path_buf(),
        jobs: 2,
    }
}

fn check_bzip2(options: &SuiteOptions) -> Result<Checked> {
    let bench = Bench::open(None)?;
    let mut checked = check(&bench, &[bench.workload("bzip2")?], options)?;
    assert_eq!(checked.len(), 1);
    Ok(checked.remove(0))
}

#[test]
fn bzip2_passes_its_own_check() -> Result<()> {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suites");
    let checked = check_bzip2(&options(&kept, &[]))?;
    assert!(checked.failures.is_empty(), "{:#?}", checked.failures);
    assert_eq!((checked.cases, checked.checks, checked.builds), (6, 6, 1));
    assert!(checked.summary_lines.functions > 50, "{:?}", checked.summary_lines);
    assert!(checked.summary_lines.superblocks > 100, "{:?}", checked.summary_lines);
    Ok(())
}

#[test]
fn a_build_that_fails_is_kept() -> Result<()> {
    let kept = scratch();
    let checked = check_bzip2(&options(kept.path(), &["-pleach-no-such-option"]))?;
    let [failure] = &checked.failures[..] else {
        panic!("{:#?}", checked.failures);
    };
    assert!(failure.what.contains("pleach-no-such-option"), "{failure}");
    let script = std::fs::read_to_string(failure.folder.join("reproduce.sh"))?;
    assert!(script.contains("blocksort.c"), "{script}");
    Ok(())
}

#[test]
fn programs_that_bring_no_tests_are_named() -> Result<()> {
    let bench = Bench::open(None)?;
    let lua = bench.workload("lua")?;
    let checked = check(&bench, &[lua], &options(Path::new("unused"), &[]))?;
    assert_eq!(checked[0].suite, None);
    assert!(!checked[0].note.is_empty());
    let named = SuiteOptions {
        only: vec!["none".into()],
        ..options(Path::new("unused"), &[])
    };
    assert!(check(&bench, &[lua], &named).is_err());
    Ok(())
}
