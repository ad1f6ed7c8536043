//! The one file that a format is about.

use super::Args;
use anyhow::{Result, bail};
use pleach_annotate::binary::Binary;
use pleach_collector::vector::{Module, ModuleId, VectorSet};
use std::path::Path;

/// The file that the user names, or else the recorded program with the most branches. `why`: why it is only one.
pub fn of(vectors: &VectorSet, args: &Args, why: &str) -> Result<(ModuleId, Binary)> {
    match args.files.binary.as_slice() {
        [] => recorded(vectors, args),
        [path] => named(vectors, path),
        _ => bail!("{why}: name one with --binary"),
    }
}

/// The recorded module that a file is.
fn named(vectors: &VectorSet, path: &Path) -> Result<(ModuleId, Binary)> {
    let binary = Binary::open(path)?;
    let is_same = |module: &Module| match (&module.build_id, &binary.build_id) {
        (Some(recorded), Some(now)) => recorded.0 == *now,
        (None, None) => module.path.file_name() == path.file_name(),
        _ => false,
    };
    match vectors.modules.iter().position(is_same) {
        Some(position) => Ok((ModuleId(position as u32), binary)),
        None => bail!(
            "{}: not among the recorded files, or changed since: name the file that was recorded",
            path.display()
        ),
    }
}

/// The program with the most branches.
fn recorded(vectors: &VectorSet, args: &Args) -> Result<(ModuleId, Binary)> {
    let finder = args.files.finder()?;
    let mut branches = vec![0; vectors.modules.len()];
    for burst in &vectors.bursts {
        for branch in &burst.branches {
            if let Some(count) = branches.get_mut(branch.from.module.0 as usize) {
                *count += burst.count;
            }
        }
    }
    for window in vectors.compressed.iter().flat_map(|compressed| &compressed.windows) {
        for branch in &window.branches {
            if let Some(count) = branches.get_mut(branch.from.module.0 as usize) {
                *count += window.weight;
            }
        }
    }
    let mut candidates: Vec<usize> = (0..branches.len()).collect();
    candidates.sort_by_key(|&module| std::cmp::Reverse(branches[module]));
    let mut problem = None;
    for module in candidates {
        let recorded = &vectors.modules[module];
        let build_id = recorded.build_id.as_ref().map(|id| id.0.as_slice());
        match finder.open(&recorded.path, build_id) {
            Ok(binary) if binary.is_program => return Ok((ModuleId(module as u32), binary)),
            Ok(_) => {}
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    match problem {
        Some(problem) => Err(problem.into()),
        None => bail!(
            "{}: no recorded program: name a file with --binary",
            args.profile.display()
        ),
    }
}
