//! Checks that two files can be compared, before anything runs.

use super::{EvaluateError, Job};
use crate::accuracy::truth::FunctionKey;
use pleach_annotate::binary::Binary;
use pleach_annotate::manifest::{self, Entry};
use pleach_annotate::map::AddressMap;
use std::collections::BTreeSet;
use std::path::Path;

/// Checks that one file is annotated and the other instrumented, both at one anchor and from the same sources.
pub fn check(job: &Job) -> Result<(), EvaluateError> {
    let annotated = Binary::open(&job.annotated)?;
    let has_probes = !annotated.probes.is_empty();
    if annotated.is_annotated() && !has_probes {
        return Err(EvaluateError::Instrumented(job.annotated.clone()));
    }
    let map = AddressMap::from_binary(annotated)?;
    let entries = instrumented(&job.exact)?;
    if let Some(entry) = entries.iter().find(|entry| entry.anchor != map.anchor) {
        return Err(EvaluateError::Anchors {
            job: Box::new(job.clone()),
            annotated: map.anchor,
            counted: entry.anchor,
        });
    }
    let known: BTreeSet<FunctionKey> = map.functions.iter().map(|f| (f.cfg.id, f.hash)).collect();
    if !entries.iter().any(|entry| known.contains(&(entry.cfg.id, entry.hash))) {
        return Err(EvaluateError::NothingCommon(Box::new(job.clone())));
    }
    Ok(())
}

/// The graphs of an instrumented file: it has a manifest, but no probes.
fn instrumented(path: &Path) -> Result<Vec<Entry>, EvaluateError> {
    let binary = Binary::open(path)?;
    let not = |what| EvaluateError::NotInstrumented {
        path: path.to_owned(),
        what,
    };
    if !binary.is_annotated() {
        return Err(not("not instrumented"));
    }
    if !binary.probes.is_empty() {
        return Err(not("annotated, not instrumented"));
    }
    Ok(manifest::decode(&binary.manifest).0)
}
