//! Every peer optimiser, from training to a program that computes the same.

use anyhow::{Context, Result};
use pleach_bench::ablate::{Optimisation, without};
use pleach_bench::peers::variants;
use pleach_facilities::has_program;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::variant::{PleachUse, Recording};
use pleach_harness::{Bench, Binary, InputKind, Variant};
use std::collections::BTreeMap;

fn pleach() -> Pleach {
    Pleach {
        command: crate::support::pleach(),
        options: Vec::new(),
    }
}

/// One short recording for each binary: what is tested is that profiles get where they belong.
fn recording() -> Recording {
    Recording {
        options: ["--quiet", "--keep-vectors", "--overhead", "10%"]
            .map(str::to_owned)
            .to_vec(),
        cpu_seconds: Some(1.0),
        kept: Some(0),
    }
}

#[test]
fn peers_build_programs_that_compute_the_same() -> Result<()> {
    if !["llvm-bolt-22", "perf", "valgrind"].into_iter().all(has_program) {
        return Ok(());
    }
    let bench = Bench::open(None)?;
    let pleach = pleach();
    let workload = bench.workload("bzip2")?;
    let using = PleachUse::new(pleach.clone(), recording());
    let optimisations = without(&using, &[Optimisation::parse("promotion=-pleach-icall-promotion=0")?])?;
    let mut binaries = BTreeMap::new();
    for variant in variants(&pleach, &recording(), &optimisations) {
        let binary = variant.produce(&bench, workload)?;
        let run = bench.run(&binary, InputKind::Short)?;
        assert!(run.checksum_ok, "{}", variant.label());
        binaries.insert(variant.label(), binary);
    }

    // BOLT says of its own profile that fewer branches are taken, and it is so.
    let plain = Variant::O2.produce(&bench, workload)?;
    let plain = bench.taken_branches(&plain, InputKind::Short)?;
    for label in ["bolt", "bolt-exact"] {
        let binary = &binaries[label];
        let log = std::fs::read_to_string(binary.path.with_file_name("bolt.log"))?;
        assert!(log.contains(" taken branches (-"), "{label}: {log}");
        let taken = bench.taken_branches(binary, InputKind::Short)?;
        assert!(taken < plain, "{label}: {taken} of {plain}");
    }
    // Profiles change the code.
    let code = |label: &str| std::fs::read(&binaries[label].path).with_context(|| label.to_owned());
    for label in ["autofdo", "csspgo-flat"] {
        let profile = bench.taken_branches(&binaries[label], InputKind::Short)?;
        assert_ne!(profile, plain, "{label}");
    }
    assert_ne!(code("ir-pgo")?, code("cs-ir-pgo")?);
    Ok(())
}

#[test]
fn functions_in_another_order_are_the_same_code() -> Result<()> {
    if !has_program("valgrind") {
        return Ok(());
    }
    let bench = Bench::open(None)?;
    let pleach = pleach();
    let workload = bench.workload("bzip2")?;
    // One of its own: another test, at the same time, may write a shared one anew between two builds.
    let recording = Recording {
        cpu_seconds: None,
        kept: Some(1),
        ..recording()
    };
    let in_order = |function_order| {
        let using = PleachUse {
            function_order,
            ..PleachUse::new(pleach.clone(), recording.clone())
        };
        Variant::PleachUse(using).produce(&bench, workload)
    };
    let (own, first, second) = (in_order(None)?, in_order(Some(1))?, in_order(Some(2))?);
    let taken = |binary| bench.taken_branches(binary, InputKind::Short);
    assert_eq!(taken(&first)?, taken(&own)?);
    assert_eq!(taken(&second)?, taken(&own)?);
    let code = |binary: &Binary| std::fs::read(&binary.path);
    assert_ne!(code(&first)?, code(&own)?);
    assert_ne!(code(&first)?, code(&second)?);
    Ok(())
}

#[test]
fn options_that_the_plugin_does_not_know_are_refused() -> Result<()> {
    let pleach = pleach();
    let using = PleachUse::new(pleach, recording());
    let error = without(&using, &[Optimisation::parse("none=-pleach-no-such-optimisation=0")?]).unwrap_err();
    assert!(
        format!("{error:#}").contains("-pleach-no-such-optimisation"),
        "{error:#}"
    );
    Ok(())
}
