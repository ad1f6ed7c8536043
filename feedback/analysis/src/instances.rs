//! Inferred counts of each inline instance. A profile has their sums: one function's counts over all of its instances.

use crate::analyse::SCALE;
use crate::block_counts::{InstanceCounts, count_blocks};
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CallIndex, FunctionId};
use pleach_annotate::map::InlineInstanceIndex;
use pleach_collector::vector::{ModuleId, VectorSet};
use pleach_inference::{Evidence, FlowCounts, infer};
use std::collections::BTreeMap;

/// The counts of one inline instance.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InstanceProfile {
    /// Inferred executions of each block, in block order: sampled executions × [`SCALE`].
    pub blocks: Vec<u64>,
    /// Observed targets of its indirect calls, in the same unit.
    pub targets: BTreeMap<CallIndex, BTreeMap<FunctionId, u64>>,
}

/// The profiles of all inline instances with samples.
pub fn instance_profiles(
    program: &Program,
    vectors: &VectorSet,
    weights: &Weights,
) -> BTreeMap<(ModuleId, InlineInstanceIndex), InstanceProfile> {
    let observations = count_blocks(program, vectors, weights);
    let mut profiles: BTreeMap<_, InstanceProfile> = BTreeMap::new();
    for (module, map) in program.annotated() {
        let Some(observed) = observations.modules.get(&module) else {
            continue;
        };
        for (&instance, counts) in &observed.instances {
            let profile = profiles.entry((module, instance)).or_default();
            profile.blocks = infer_instance(&map.function_of(instance).cfg, counts).blocks;
        }
        for (&(instance, call, target), &samples) in &observed.targets {
            let profile = profiles.entry((module, instance)).or_default();
            let of_call = profile.targets.entry(CallIndex(call)).or_default();
            *of_call.entry(target).or_default() += (samples * SCALE) as u64;
        }
    }
    profiles
}

/// The counts of one inline instance that conserve flow.
pub(crate) fn infer_instance(cfg: &Cfg, observed: &InstanceCounts) -> FlowCounts {
    let evidence = Evidence {
        blocks: observed.blocks.clone(),
        edges: observed.edges.clone(),
        ..Evidence::default()
    };
    infer(cfg, &evidence, SCALE)
}
