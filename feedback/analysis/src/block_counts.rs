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
use crate::unwinding::UnwindEdge;
use pleach_annotate::cfg::Terminator;
use pleach_annotate::id::{BlockIndex, FunctionId};
use pleach_annotate::map::{AddressMap, FunctionIndex, InlineInstanceIndex};
use pleach_collector::vector::{CodeAddress, ModuleId, VectorSet};
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

/// By how much the uses of edges by throws are multiplied, at most, for throws whose edges are unknown.
const MAX_SCALE: f64 = 4.0;

/// Counts blocks, edges and call targets.
pub struct BlockCounts<'p> {
    weights: &'p Weights,
    counters: ByModule<Counter<'p>>,
    /// By where the call that throws would return to.
    throws: FxHashMap<CodeAddress, Throws>,
}

impl<'p> BlockCounts<'p> {
    /// Counts for a program's modules.
    pub fn new(program: &'p Program, weights: &'p Weights) -> Self {
        Self {
            weights,
            counters: ByModule::new(program, Counter::new),
            throws: FxHashMap::default(),
        }
    }

    /// All counts; `report` is the replay's.
    pub fn finish(mut self, report: DecodeReport) -> RecordingCounts {
        let mut edges: Vec<(UnwindEdge, f64)> = self.throws.values().flat_map(Throws::edges).collect();
        // Sums of floating-point numbers depend on their order.
        edges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for (edge, weight) in edges {
            if let Some(counter) = self.counters.get_mut(edge.module) {
                counter.unwind(edge, weight);
            }
        }
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
            Event::Throw { site, is_complete } => self.throws.entry(site).or_default().count(is_complete, weight),
            Event::Unwound {
                site,
                is_complete,
                module,
                instance,
                from,
                to,
            } => {
                let edge = UnwindEdge {
                    module,
                    instance,
                    from,
                    to,
                };
                self.throws.entry(site).or_default().add(edge, is_complete, weight);
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

/// Throws of one call.
#[derive(Default)]
struct Throws {
    /// Weighted throws.
    all: f64,
    /// Of these, those of which all edges are known.
    complete: f64,
    /// Weighted uses of edges by complete throws.
    edges: FxHashMap<UnwindEdge, f64>,
    /// By others.
    other_edges: FxHashMap<UnwindEdge, f64>,
}

impl Throws {
    fn count(&mut self, is_complete: bool, weight: f64) {
        self.all += weight;
        self.complete += if is_complete { weight } else { 0.0 };
    }

    fn add(&mut self, edge: UnwindEdge, is_complete: bool, weight: f64) {
        let edges = if is_complete {
            &mut self.edges
        } else {
            &mut self.other_edges
        };
        *edges.entry(edge).or_default() += weight;
    }

    /// Estimated uses of edges. Of a throw whose stack the burst knows too little of, the edges are assumed to be those
    /// of the others.
    fn edges(&self) -> impl Iterator<Item = (UnwindEdge, f64)> {
        let (edges, scale) = if self.complete > 0.0 {
            (&self.edges, (self.all / self.complete).min(MAX_SCALE))
        } else {
            (&self.other_edges, 1.0)
        };
        edges.iter().map(move |(&edge, &weight)| (edge, weight * scale))
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
        let seen = seen(&mut self.out, walker, instance);
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

    /// An unwind edge was taken; its blocks are counted by themselves. As throws to this landing pad are seen, other
    /// calls with this one threw nothing, unless that is seen, too.
    fn unwind(&mut self, edge: UnwindEdge, weight: f64) {
        let graph = self.walker.graph(edge.instance);
        let mut taken = None;
        let mut others = Vec::new();
        for (from, block) in graph.cfg.blocks.iter().enumerate() {
            let slot = block.successors.iter().position(|&successor| successor == edge.to);
            let number = slot.map(|slot| graph.bases[from] as usize + slot);
            if from == edge.from.index() {
                taken = number;
            } else if block.terminator == Terminator::Invoke && graph.probed[from] {
                others.extend(number);
            }
        }
        let seen = seen(&mut self.out, &mut self.walker, edge.instance);
        for other in others {
            seen.edges[other].get_or_insert(0.0);
        }
        if let Some(taken) = taken {
            *seen.edges[taken].get_or_insert(0.0) += weight;
        }
    }
}

/// The counts of an inline instance.
fn seen<'o>(
    out: &'o mut ModuleCounts,
    walker: &mut ProbeWalker<'_>,
    instance: InlineInstanceIndex,
) -> &'o mut InstanceCounts {
    let unobserved = || unobserved(walker.graph(instance));
    out.instances.entry(instance).or_insert_with(unobserved)
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
    fn throws_tell_which_call_with_a_landing_pad_threw() {
        // 1 and 2 invoke with the landing pad 4, which has no probe.
        let mut cfg = cfg(&[&[1], &[2, 4], &[3, 4], &[], &[5], &[]]);
        for block in [1, 2] {
            cfg.blocks[block].terminator = Terminator::Invoke;
        }
        let mut map = map(cfg);
        map.probes
            .retain(|probe| probe.target != ProbeTarget::Block(BlockIndex(4)));
        let mut counter = Counter::new(&map);
        for activation in 0..10 {
            for block in [0, 1, 2, 3] {
                counter.block(FrameId(activation), InlineInstanceIndex(0), BlockIndex(block), 1.0);
            }
        }
        let edges = |counter: &Counter<'_>| counter.out.instances[&InlineInstanceIndex(0)].edges.clone();
        // 0 → 1, 1 → 2, 1 → 4, 2 → 3, 2 → 4, 4 → 5.
        let known = [Some(10.0), Some(10.0), None, Some(10.0), None, None];
        assert_eq!(edges(&counter), known);
        let edge = UnwindEdge {
            module: ModuleId(0),
            instance: InlineInstanceIndex(0),
            from: BlockIndex(1),
            to: BlockIndex(4),
        };
        counter.unwind(edge, 2.0);
        let known = [Some(10.0), Some(10.0), Some(2.0), Some(10.0), Some(0.0), None];
        assert_eq!(edges(&counter), known);
    }

    #[test]
    fn throws_with_unknown_edges_are_taken_for_others() {
        let edge = |to: u32| UnwindEdge {
            module: ModuleId(0),
            instance: InlineInstanceIndex(0),
            from: BlockIndex(1),
            to: BlockIndex(to),
        };
        let mut throws = Throws::default();
        throws.count(false, 3.0);
        throws.add(edge(2), false, 3.0);
        assert_eq!(throws.edges().collect::<Vec<_>>(), [(edge(2), 3.0)]);
        throws.count(true, 6.0);
        throws.add(edge(3), true, 6.0);
        assert_eq!(throws.edges().collect::<Vec<_>>(), [(edge(3), 9.0)]);
        // A single complete throw must not stand for too many others.
        throws.count(false, 991.0);
        assert_eq!(throws.edges().collect::<Vec<_>>(), [(edge(3), 24.0)]);
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
