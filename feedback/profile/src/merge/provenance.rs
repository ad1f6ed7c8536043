//! Sums of what belongs to whole profiles: where they come from, and their scale.

use super::{MergeError, check_anchor};
use crate::data::Provenance;
use crate::sums::{RunSums, Sum};
use pleach_annotate::manifest::Anchor;

/// The sum of several profiles' provenance.
#[derive(Default)]
pub(super) struct ProvenanceSum {
    profiles: usize,
    /// Whether a profile has another weight than 1.
    is_weighted: bool,
    anchor: Anchor,
    /// The largest scale.
    scale: f64,
    sums: RunSums,
    /// Of the profiles so far: all but the sums.
    provenance: Provenance,
    hot_instances: HotInstances,
}

/// Sum of the counts of hot instances.
#[derive(Default)]
struct HotInstances {
    sum: u64,
    /// One of them is not known.
    is_unknown: bool,
}

impl ProvenanceSum {
    pub fn profiles(&self) -> usize {
        self.profiles
    }

    pub fn add(
        &mut self,
        anchor: Anchor,
        scale: f64,
        samples: u64,
        provenance: Provenance,
        weight: u64,
    ) -> Result<(), MergeError> {
        if self.profiles > 0 {
            check_anchor(self.anchor, anchor, self.profiles + 1)?;
        }
        self.anchor = anchor;
        self.profiles += 1;
        self.is_weighted |= weight != 1;
        self.scale = self.scale.max(scale);
        let (program, own) = (provenance.program_cpu_seconds, provenance.own_cpu_seconds);
        let sums = provenance
            .sums
            .unwrap_or_else(|| RunSums::from_recording(samples, scale, program, own));
        self.sums.add(&sums.times(weight));
        // If the same inline instances are hot in all profiles, their counts add up. Otherwise the sum is too high, and
        // fewer blocks count as hot.
        let hot = &mut self.hot_instances;
        hot.is_unknown |= provenance.hot_instance_count == 0;
        hot.sum = hot
            .sum
            .saturating_add(provenance.hot_instance_count.saturating_mul(weight));
        if self.profiles == 1 {
            self.provenance = provenance;
            return Ok(());
        }
        let all = &mut self.provenance;
        all.commands.extend(provenance.commands);
        all.engines.extend(provenance.engines);
        all.engines.sort_unstable();
        all.engines.dedup();
        all.modules.extend(provenance.modules);
        all.modules.sort_unstable();
        all.modules.dedup();
        all.bursts = all.bursts.saturating_add(provenance.bursts);
        all.taken_branches = all.taken_branches.saturating_add(provenance.taken_branches);
        Ok(())
    }

    /// Anchor, scale and provenance. One profile keeps its own.
    pub fn finish(self) -> (Anchor, f64, Provenance) {
        let Self {
            anchor,
            sums,
            mut provenance,
            ..
        } = self;
        if self.profiles == 1 && !self.is_weighted {
            return (anchor, self.scale, provenance);
        }
        provenance.commands.sort_unstable();
        provenance.engines.sort_unstable();
        provenance.engines.dedup();
        provenance.modules.sort_unstable();
        provenance.modules.dedup();
        let hot = self.hot_instances;
        provenance.hot_instance_count = if hot.is_unknown { 0 } else { hot.sum };
        provenance.program_cpu_seconds = sums.program_nanoseconds as f64 / 1e9;
        provenance.own_cpu_seconds = sums.own_nanoseconds as f64 / 1e9;
        provenance.sums = Some(sums);
        (anchor, sums.scale().unwrap_or(self.scale), provenance)
    }
}
