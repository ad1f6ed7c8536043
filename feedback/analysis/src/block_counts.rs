//! Sequences of blocks → counts of each inline instance.
//!
//! Each inline instance is counted by itself, because each loses its own probes: the count of a block that has no probe
//! in an inline instance is unknown there, whatever the counts elsewhere. A block that has a probe in a part of an
//! inline instance's code only is also counted where every path passes it (`probe_walker`).

use crate::decode::{DecodeReport, Event, FrameId, Position};
use crate::probe_walker::{ByModule, Graph, ProbeWalker, Step};
use crate::program::Program;
use crate::replay::{Observer, Replay, Run};
use crate::time_bias::Weights;
use pleach_annotate::id::{BlockIndex, FunctionId};
use pleach_annotate::map::{AddressMap, FunctionIndex, InlineInstanceIndex};
use pleach_collector::vector::{ModuleId, VectorSet};
use pleach_profile::ValueSite;
use rustc_hash::FxHashMap;

/// The counts of one inline instance.
#[derive(Clone, PartialEq, Debug)]
pub struct InstanceCounts {
    /// Weighted entries of each block: sampled ones, and those that the next sampled block implies. `None` if the block
    /// has no probe in this inline instance.
    pub blocks: Vec<Option<f64>>,
    /// Weighted transitions by successor slot; the first of several slots with the same target holds their sum. `None`
    /// if the two blocks alone do not prove that the edge was taken.
    pub edges: Vec<Option<f64>>,
}

/// The counts of one annotated module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModuleCounts {
    /// Inline instances with at least one sampled block.
    pub instances: FxHashMap<InlineInstanceIndex, InstanceCounts>,
    /// Weighted targets of indirect calls, by the caller's inline instance, call and target.
    pub targets: FxHashMap<(InlineInstanceIndex, u32, FunctionId), f64>,
    /// Observed values, by function and operand.
    pub values: FxHashMap<(FunctionIndex, ValueSite), ObservedValues>,
}

/// The values that an operand had.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ObservedValues {
    /// Bursts with at least one of them.
    pub bursts: u64,
    /// The last of these bursts.
    last: Option<usize>,
    /// Weighted executions, by value.
    pub values: FxHashMap<u64, f64>,
}

impl ObservedValues {
    fn add(&mut self, burst: usize, value: u64, weight: f64) {
        self.bursts += u64::from(self.last.replace(burst) != Some(burst));
        *self.values.entry(value).or_default() += weight;
    }
}

/// The counts of a recording.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecordingCounts {
    /// By annotated module.
    pub modules: FxHashMap<ModuleId, ModuleCounts>,
    /// How much of the vectors the address maps explained.
    pub report: DecodeReport,
}

/// Replays a recording, and counts blocks, edges and call targets with the weight of the branch before each.
pub fn count_blocks(program: &Program, vectors: &VectorSet, weights: &Weights) -> RecordingCounts {
    let mut counts = BlockCounts::new(program, weights);
    let mut replay = Replay::new(program);
    replay.recording(vectors, &mut counts);
    counts.finish(replay.report())
}

/// Counts blocks, edges and call targets.
pub struct BlockCounts<'p> {
    weights: &'p Weights,
    counters: ByModule<Counter<'p>>,
}

impl<'p> BlockCounts<'p> {
    /// Counts for a program's modules.
    pub fn new(program: &'p Program, weights: &'p Weights) -> Self {
        Self {
            weights,
            counters: ByModule::new(program, Counter::new),
        }
    }

    /// All counts; `report` is the replay's.
    pub fn finish(self, report: DecodeReport) -> RecordingCounts {
        let counters = self.counters.into_iter();
        RecordingCounts {
            modules: counters.map(|(module, counter)| (module, counter.out)).collect(),
            report,
        }
    }
}

impl Observer for BlockCounts<'_> {
    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        let Some(weight) = run.weight(position, self.weights) else {
            return;
        };
        match event {
            Event::Block {
                module,
                frame,
                instance,
                block,
                ..
            } => {
                if let Some(counter) = self.counters.get_mut(module) {
                    counter.block(frame, instance, block, weight);
                }
            }
            Event::Entered { .. } | Event::Left { .. } => {}
            Event::IndirectCall {
                module,
                instance,
                call,
                target,
            } => {
                if let Some(counter) = self.counters.get_mut(module) {
                    *counter.out.targets.entry((instance, call.0, target)).or_default() += weight;
                }
            }
            Event::Value {
                module,
                instance,
                site,
                value,
            } => {
                if let Some(counter) = self.counters.get_mut(module) {
                    let function = counter.walker.function(instance);
                    let counts = counter.out.values.entry((function, site)).or_default();
                    counts.add(run.number, value, weight);
                }
            }
        }
    }
}

struct Counter<'m> {
    walker: ProbeWalker<'m>,
    out: ModuleCounts,
}

impl<'m> Counter<'m> {
    fn new(map: &'m AddressMap) -> Self {
        Self {
            walker: ProbeWalker::new(map),
            out: ModuleCounts::default(),
        }
    }

    fn block(&mut self, frame: FrameId, instance: InlineInstanceIndex, block: BlockIndex, weight: f64) {
        let walker = &mut self.walker;
        let seen = (self.out.instances)
            .entry(instance)
            .or_insert_with(|| unobserved(walker.graph(instance)));
        if let Some(entries) = &mut seen.blocks[block.index()] {
            *entries += weight;
        }
        let Some(taken) = walker.pass(frame, instance, block) else {
            return;
        };
        for &edge in taken.edges {
            *seen.edges[edge as usize].get_or_insert(0.0) += weight;
        }
        for &implied in taken.implied {
            *seen.blocks[implied.index()].get_or_insert(0.0) += weight;
        }
    }
}

/// Counts without samples: zero where a sample can be observed, unknown elsewhere.
fn unobserved(graph: Graph<'_>) -> InstanceCounts {
    let mut edges = Vec::with_capacity(graph.cfg.edge_count());
    for (index, block) in graph.cfg.blocks.iter().enumerate() {
        let block_index = BlockIndex(index as u32);
        for (slot, &successor) in block.successors.iter().enumerate() {
            let tells = graph.probed[index]
                && graph.probed[successor.index()]
                && !block.successors[..slot].contains(&successor)
                && matches!(graph.find_step(block_index, successor), Step::Path(p) if p.len() == 1);
            edges.push(tells.then_some(0.0));
        }
    }
    InstanceCounts {
        blocks: graph.probed.iter().map(|&p| p.then_some(0.0)).collect(),
        edges,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::Cfg;
    use pleach_annotate::cfg::ProbeTarget;
    use pleach_annotate::map::{Function, InlineInstance, Probe};
    use pleach_annotate::probe::Address;
    use pleach_annotate::testing::cfg;

    /// One inline instance of a function, whose blocks have a probe each.
    fn map(cfg: Cfg) -> AddressMap {
        let probe = |block: u32| Probe {
            address: Address(u64::from(block)),
            instance: InlineInstanceIndex(0),
            target: ProbeTarget::Block(BlockIndex(block)),
        };
        AddressMap {
            probes: (0..cfg.blocks.len() as u32).map(probe).collect(),
            functions: vec![Function { hash: cfg.hash(), cfg }],
            inline_instances: vec![InlineInstance {
                function: FunctionIndex(0),
                parent: None,
                symbol: 0,
            }],
            ..pleach_annotate::testing::map()
        }
    }

    #[test]
    fn an_unrolled_loop_conserves_flow() {
        // 1 tests, 2 is the body; control leaves from the body's second copy, where the test left no probe.
        let map = map(cfg(&[&[1], &[2, 3], &[1], &[]]));
        let mut counter = Counter::new(&map);
        for activation in 0..10 {
            for block in [0, 1, 2, 2, 3] {
                counter.block(FrameId(activation), InlineInstanceIndex(0), BlockIndex(block), 1.0);
            }
        }
        let seen = &counter.out.instances[&InlineInstanceIndex(0)];
        assert_eq!(seen.blocks, [10.0, 30.0, 20.0, 10.0].map(Some));
        // 0 → 1, 1 → 2, 1 → 3, 2 → 1.
        assert_eq!(seen.edges, [10.0, 20.0, 10.0, 20.0].map(Some));
    }
}
