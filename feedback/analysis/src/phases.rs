//! The profile of each phase of a recording.

use crate::analyse::{AnalysisError, analyse};
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_collector::vector::{Burst, VectorSet};
use pleach_phases::{PhaseId, Timeline};
use pleach_profile::Profile;
use std::collections::BTreeMap;

/// Analyses the bursts of each phase, in the order of the timeline's phases. What breakpoints showed is left out: it is
/// of no phase.
///
/// # Errors
/// As for [`analyse`].
pub fn profiles_of_phases(
    program: &Program,
    mut vectors: VectorSet,
    timeline: &Timeline,
) -> Result<Vec<(PhaseId, Profile)>, AnalysisError> {
    vectors.coverage.clear();
    let mut bursts = BTreeMap::<PhaseId, Vec<Burst>>::new();
    for (phase, burst) in timeline.phase_of.iter().zip(std::mem::take(&mut vectors.bursts)) {
        bursts.entry(*phase).or_default().push(burst);
    }
    let phases = timeline.phases.iter().map(|of| {
        vectors.bursts = bursts.remove(&of.phase).unwrap_or_default();
        let mut profile = analyse(program, &vectors, &Weights::equal())?.profile;
        profile.provenance.program_cpu_seconds = of.cpu_seconds;
        Ok((of.phase, profile))
    });
    phases.collect()
}
