//! clang's own exact counts of the training input.

use super::{Variant, own, training_key};
use crate::bench::Bench;
use crate::build::Binary;
use crate::process::run_measured;
use crate::run::run_with;
use crate::tools::Tool;
use crate::workload::{InputKind, Workload};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The flags of [`Variant::IrPgo`] beside `-O2`, after training.
pub fn ir_pgo_flags(bench: &Bench, workload: &Workload) -> Result<Vec<String>> {
    let (bench, workload) = bench.training(workload)?;
    let instrumented = Variant::IrPgoInstrumented.produce(bench, workload)?;
    Ok(use_flags(&profile(bench, workload, &instrumented, &[])?))
}

/// The flags of [`Variant::CsIrPgo`] beside `-O2`: the build that uses the first counts is trained again.
pub fn cs_ir_pgo_flags(bench: &Bench, workload: &Workload) -> Result<Vec<String>> {
    let (bench, workload) = bench.training(workload)?;
    let first = profile(
        bench,
        workload,
        &Variant::IrPgoInstrumented.produce(bench, workload)?,
        &[],
    )?;
    let mut cflags = use_flags(&first);
    cflags.push("-fcs-profile-generate".to_owned());
    let again = Variant::Flags {
        label: "cs-ir-pgo-instrumented".to_owned(),
        cflags,
        ldflags: Vec::new(),
    };
    let again = again.produce(bench, workload)?;
    Ok(use_flags(&profile(bench, workload, &again, &[&first])?))
}

/// The counts of a training run, merged with others; made once.
fn profile(bench: &Bench, workload: &Workload, instrumented: &Binary, others: &[&Path]) -> Result<PathBuf> {
    let invocation = bench.invocation(workload, InputKind::Train)?;
    let folder = bench.scratch_dir(workload)?;
    let name = training_key(instrumented, &invocation)?;
    let profile = folder.join(format!("{name}.profdata"));
    if !profile.is_file() {
        let unfinished = tempfile::tempdir_in(&folder)?;
        let (raw, merged) = (unfinished.path().join("raw"), unfinished.path().join("merged"));
        run_with(instrumented, &invocation, &[], &[("LLVM_PROFILE_FILE", &raw)])?
            .expect_checksum(instrumented, &invocation)?;
        let mut merge = Command::new(Tool::ProfData.find()?);
        merge.arg("merge").arg("-o").arg(&merged).arg(&raw).args(others);
        run_measured(&mut merge)?.expect_success("merging the profile")?;
        std::fs::rename(&merged, &profile).with_context(|| format!("cannot write {}", profile.display()))?;
    }
    Ok(profile)
}

fn use_flags(profile: &Path) -> Vec<String> {
    own(&[
        &format!("-fprofile-use={}", profile.display()),
        // Functions that the training input never reaches have no counts, and need none.
        "-Wno-profile-instr-unprofiled",
        "-Wno-profile-instr-out-of-date",
        "-Wno-backend-plugin",
    ])
}
