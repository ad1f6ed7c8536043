//! The profile of each phase of a recording.

use crate::analyse::{AnalysisError, analyse};
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::map::AddressMap;
use pleach_annotate::probe::Address;
use pleach_collector::vector::coverage::{ModuleCoverage, SegmentCoverage};
use pleach_collector::vector::{Burst, VectorSet};
use pleach_phases::{PhaseId, Timeline};
use pleach_profile::Profile;
use std::collections::BTreeMap;

/// Code that was executed first, as its breakpoint showed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FirstExecution {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// Linkage name of the function that the code is of, inlined or not; empty if that is unknown.
    pub function: String,
}

/// When code was executed first, in order of time. Breakpoints that were removed for the budget's sake and armed again
/// may show later executions.
pub fn first_executions(program: &Program, coverage: &[ModuleCoverage]) -> Vec<FirstExecution> {
    let mut found = Vec::new();
    for module in coverage {
        let map = program.map(module.module);
        for segment in &module.segments {
            if let Some(time_ns) = segment.first_hit_ns {
                let function = map.and_then(|map| function_of(map, segment)).unwrap_or_default();
                found.push(FirstExecution { time_ns, function });
            }
        }
    }
    found.sort_unstable();
    found
}

/// The function of the first block in a segment.
fn function_of(map: &AddressMap, segment: &SegmentCoverage) -> Option<String> {
    let start = map.binary.address_of_offset(segment.start)?;
    let length = segment.end.saturating_sub(segment.start).saturating_sub(1);
    let probes = map.probes_in(start, Address(start.0.saturating_add(length)));
    let of_block = probes
        .iter()
        .find(|probe| matches!(probe.target, ProbeTarget::Block(_)));
    let probe = of_block.or(probes.first())?;
    Some(map.function_of(probe.instance).cfg.name.clone())
}

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
