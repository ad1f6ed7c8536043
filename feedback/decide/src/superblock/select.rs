//! Selects the traces to copy and the predecessor that each copy serves: greedily, by gain per copied instruction.
//!
//! A candidate is a jump into a join: an edge from a block P to a block J that has other predecessors and that does not
//! follow P in the layout. A copy of J for P alone falls through, and its layout follows the executions that come from
//! P. The trace grows from J while its next step is predictable given P. The gain is the number of taken jumps, jump
//! instructions and folded instructions that the walks through P and J save, by the lower bound of their confidence
//! interval. The cost is proportional to the copied instructions.

use super::duplicated::DuplicatedGraph;
use super::layout::{Flow, JUMP, TAKEN, fall_through};
use super::options::SuperblockOptions;
use super::subject::{Folding, Subject};
use super::walks::{Walk, back_edges, unrollable, walks};
use pleach_annotate::cfg::{Block, Terminator};
use pleach_annotate::id::BlockIndex;

/// Maximum of superblocks in a function, which bounds the time of the selection.
const MAX_SUPERBLOCKS: usize = 64;
/// Growth budget of the smallest functions, in instructions.
const MIN_GROWTH: u32 = 32;

/// A trace to copy.
#[derive(Clone, PartialEq, Debug)]
pub struct Superblock {
    /// The predecessor that the copy serves.
    pub from: BlockIndex,
    /// The blocks to copy, in order.
    pub trace: Vec<BlockIndex>,
    /// Executed jumps and instructions that it saves (lower confidence bound).
    pub gain: f64,
    /// Instructions copied.
    pub copied: u32,
}

/// The decision for a function.
#[derive(Clone, PartialEq, Debug)]
pub struct Formation {
    /// The graph to build. Its first nodes are the function's blocks.
    pub graph: DuplicatedGraph,
    /// The superblocks, best first.
    pub superblocks: Vec<Superblock>,
    /// Instructions copied.
    pub copied: u32,
    /// Number of joins whose gain does not exceed the cost of their code.
    pub not_profitable: usize,
    /// Number of joins that a limit on code size excludes.
    pub too_large: usize,
}

impl Formation {
    /// No superblocks.
    fn none(subject: &Subject<'_>) -> Self {
        Self {
            graph: DuplicatedGraph::new(subject.cfg, subject.counts, subject.probabilities),
            superblocks: Vec::new(),
            copied: 0,
            not_profitable: 0,
            too_large: 0,
        }
    }
}

/// The joins that may be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Candidates {
    /// All.
    All,
    /// The target of one edge, once.
    Edge {
        /// Where the edge begins.
        from: BlockIndex,
        /// Where it ends.
        to: BlockIndex,
    },
    /// None.
    None,
}

impl Candidates {
    /// Maximum of superblocks in a function.
    fn limit(self) -> usize {
        match self {
            Self::All => MAX_SUPERBLOCKS,
            Self::Edge { .. } => 1,
            Self::None => 0,
        }
    }

    fn contain(self, flow: &Flow) -> bool {
        match self {
            Self::All => true,
            Self::Edge { from, to } => flow.from == from.index() && flow.to == to.index(),
            Self::None => false,
        }
    }
}

/// Selects the superblocks of a function. `growth_budget`: instructions that may still be added to its module.
pub fn form(
    subject: &Subject<'_>,
    folding: &dyn Folding,
    growth_budget: u32,
    options: &SuperblockOptions,
    candidates: Candidates,
) -> Formation {
    let back = back_edges(subject.cfg);
    let size: u32 = subject.cfg.blocks.iter().map(|b| b.instructions).sum();
    let own_budget = ((f64::from(size) * (options.function_growth - 1.0)) as u32).max(MIN_GROWTH);
    let mut selection = Selection {
        subject,
        options,
        candidates,
        walks: walks(subject, &back, options.confidence),
        unrollable: unrollable(subject, &back),
        back,
        bases: subject.cfg.edge_bases(),
        growth_budget: growth_budget.min(own_budget),
        formation: Formation::none(subject),
    };
    while selection.formation.superblocks.len() < candidates.limit() {
        let Some(best) = selection.best(folding) else { break };
        selection.take(best);
    }
    let executed = subject.cfg.blocks.iter().zip(subject.counts);
    let executed: f64 = executed
        .map(|(block, count)| f64::from(block.instructions) * count)
        .sum();
    let gain: f64 = selection.formation.superblocks.iter().map(|s| s.gain).sum();
    let formation = selection.formation;
    if gain < options.min_function_gain * executed {
        let declined = Formation::none(subject);
        return Formation {
            not_profitable: formation.not_profitable + formation.superblocks.len(),
            too_large: formation.too_large,
            ..declined
        };
    }
    formation
}

struct Candidate {
    from: usize,
    trace: Vec<usize>,
    gain: f64,
    copied: u32,
}

impl Candidate {
    fn gain_per_instruction(&self) -> f64 {
        self.gain / f64::from(self.copied)
    }
}

struct Selection<'a> {
    subject: &'a Subject<'a>,
    options: &'a SuperblockOptions,
    candidates: Candidates,
    walks: Vec<Walk>,
    back: Vec<bool>,
    /// By block: whether it may be copied for a back edge.
    unrollable: Vec<bool>,
    bases: Vec<u32>,
    growth_budget: u32,
    formation: Formation,
}

/// A walk through the graph with copies.
struct Trace<'w> {
    nodes: Vec<usize>,
    walk: &'w Walk,
}

/// Part of a trace.
struct Steps<'t> {
    /// The nodes from one position of the trace on.
    nodes: &'t [usize],
    /// Number of these nodes on the path that the walk counts. Later nodes are less certain.
    counted: usize,
    walk: &'t Walk,
}

impl<'w> Trace<'w> {
    fn new(graph: &DuplicatedGraph, walk: &'w Walk) -> Self {
        let nodes = graph.trace(walk);
        Self { nodes, walk }
    }

    /// The rest of the trace from `nodes` on, if the walk passes them and counts the step from the first of them.
    fn from(&self, nodes: &[usize]) -> Option<Steps<'_>> {
        let Walk { counted, ends_back, .. } = self.walk;
        // Other walks continue after the back edge that ends this one.
        let end = self.nodes.len() - usize::from(*ends_back);
        let mut places = self.nodes[..end].windows(nodes.len()).enumerate();
        let (at, _) = places.find(|(at, w)| counted.contains(at) && *w == nodes)?;
        Some(Steps {
            nodes: &self.nodes[at..],
            counted: counted.end - at,
            walk: self.walk,
        })
    }
}

impl Steps<'_> {
    /// The node after the first `nodes` ones, if the walk contains it.
    fn after(&self, nodes: usize) -> Option<usize> {
        let known = self.nodes.len() - usize::from(self.walk.ends_back);
        self.nodes[..known].get(nodes).copied()
    }

    /// The lower bound of executions of the first `nodes` nodes.
    fn low(&self, nodes: usize) -> f64 {
        let (counted, all) = self.walk.low;
        if nodes <= self.counted { counted } else { all }
    }
}

impl Selection<'_> {
    fn best(&mut self, folding: &dyn Folding) -> Option<Candidate> {
        let graph = &self.formation.graph;
        let traces: Vec<Trace<'_>> = self.walks.iter().map(|walk| Trace::new(graph, walk)).collect();
        let flows = flows(graph, |node| self.jump(node));
        let next = fall_through(graph.nodes.len(), &flows);
        let mut inflow = vec![0.0; graph.nodes.len()];
        flows.iter().for_each(|f| inflow[f.to] += f.count);

        let min_count = self.options.min_gain * self.subject.total;
        let (mut best, mut not_profitable, mut too_large) = (None::<Candidate>, 0, 0);
        for flow in &flows {
            if flow.count <= min_count || !self.candidates.contain(flow) || !self.is_join(flow, &inflow, &next) {
                continue;
            }
            match self.grow(flow, &traces, &next, folding) {
                Grown::Profitable(candidate)
                    if best
                        .as_ref()
                        .is_none_or(|b| candidate.gain_per_instruction() > b.gain_per_instruction()) =>
                {
                    best = Some(candidate);
                }
                Grown::Profitable(_) => {}
                Grown::TooLarge => too_large += 1,
                Grown::NotProfitable => not_profitable += 1,
            }
        }
        // The last round accepts no candidate: it has counted every rejected join.
        (self.formation.not_profitable, self.formation.too_large) = (not_profitable, too_large);
        best
    }

    /// Whether an edge is a jump into a block that may be copied for it.
    fn is_join(&self, flow: &Flow, inflow: &[f64], next: &[Option<usize>]) -> bool {
        let graph = &self.formation.graph;
        let blocks = self.subject.cfg.blocks.len();
        let elsewhere = next[flow.from].map_or(0.0, |n| graph.flow(flow.from, n));
        flow.to < blocks
            && self.may_copy(flow.from, flow.to, false)
            && next[flow.from] != Some(flow.to)
            && elsewhere <= flow.count
            && (inflow[flow.to] > flow.count || self.options.min_gain == 0.0)
    }

    /// Whether node `to` may be copied for node `from` (`is_copied`: `from` is a copy itself). Copying a loop's header
    /// for a back edge unrolls the loop for that edge: another back edge must remain, so that the header remains a
    /// header.
    fn may_copy(&self, from: usize, to: usize, is_copied: bool) -> bool {
        let origin = self.formation.graph.nodes[to].origin;
        if origin == BlockIndex::ENTRY || !self.subject.clonable[origin.index()] {
            return false;
        }
        let blocks = 0..self.subject.cfg.blocks.len();
        !self.leads_back(from, to)
            || (self.unrollable[origin.index()]
                && (is_copied
                    || blocks
                        .into_iter()
                        .any(|other| other != from && self.leads_back(other, to))))
    }

    /// Whether there is a back edge from one node to another.
    fn leads_back(&self, from: usize, to: usize) -> bool {
        let node = &self.formation.graph.nodes[from];
        let base = self.bases[node.origin.index()] as usize;
        let slots = node.successors.iter().enumerate().filter(|(_, s)| **s == to);
        slots.into_iter().any(|(slot, _)| self.back[base + slot])
    }

    /// The best trace that begins at a join.
    fn grow(&self, flow: &Flow, traces: &[Trace<'_>], next: &[Option<usize>], folding: &dyn Folding) -> Grown {
        let graph = &self.formation.graph;
        // The walks through this edge, from the join on.
        let steps = traces.iter().filter_map(|trace| trace.from(&[flow.from, flow.to]));
        let through: Vec<Steps<'_>> = steps.collect();
        // Walks begin at original blocks. Scale them to the flow of this edge.
        let all: f64 = through.iter().map(|steps| steps.walk.count).sum();
        let share = if all > flow.count { flow.count / all } else { 1.0 };
        let jump = |from: usize| self.jump(from);
        let before = |from: usize, to: usize| if next[from] == Some(to) { 0.0 } else { jump(from) };
        let displaced = next[flow.from].map_or(0.0, |n| graph.flow(flow.from, n)) * TAKEN;

        let (mut nodes, mut copied) = (vec![flow.from], 0);
        let mut to = Some(flow.to);
        let (mut best, mut too_large) = (None::<Candidate>, false);
        while let Some(node) = to {
            copied += self.size(node);
            if copied > self.options.trace_limit.min(self.growth_budget) {
                too_large = true;
                break;
            }
            nodes.push(node);
            let origins: Vec<_> = nodes.iter().map(|&n| graph.nodes[n].origin).collect();
            let saved = folding.saved(&origins);
            let moves = origins[1..].iter().map(|&block| self.moves(block));
            let mut gain = -displaced - moves.fold(0.0, f64::max);
            let new_fall_through = self.new_fall_through_gain(&nodes, &through, share, next);
            gain += new_fall_through.unwrap_or(0.0);
            for steps in &through {
                let agree = steps.nodes.iter().zip(&nodes).take_while(|(a, b)| a == b).count();
                let inside: f64 = steps.nodes[..agree].windows(2).map(|w| before(w[0], w[1])).sum();
                let folded: u32 = saved.iter().take(agree - 1).sum();
                let leaving = steps.nodes.get(agree).map_or(0.0, |&out| {
                    let last = steps.nodes[agree - 1];
                    // The original changes its fall-through, so the copy may fall through to this successor.
                    let freed = agree == nodes.len() && new_fall_through.is_some() && next[last] == Some(out);
                    if freed { 0.0 } else { before(last, out) - jump(last) }
                });
                gain += share * steps.low(nodes.len()) * (inside + leaving + f64::from(folded));
            }
            let is_profitable = gain > self.options.min_gain * self.subject.total * f64::from(copied);
            if (is_profitable || self.options.min_gain == 0.0)
                && best
                    .as_ref()
                    .is_none_or(|b| gain / f64::from(copied) > b.gain_per_instruction() || self.options.min_gain == 0.0)
            {
                best = Some(Candidate {
                    from: flow.from,
                    trace: nodes[1..].to_vec(),
                    gain,
                    copied,
                });
            }
            to = self.predictable(&nodes, &through);
        }
        match best {
            Some(candidate) => Grown::Profitable(candidate),
            None if too_large => Grown::TooLarge,
            None => Grown::NotProfitable,
        }
    }

    /// The gain from a new fall-through of a trace's last node: without the copied executions, the hottest edge of the
    /// original may be another one. A lower bound, in executions; `None` if the fall-through does not change.
    fn new_fall_through_gain(
        &self,
        nodes: &[usize],
        through: &[Steps<'_>],
        share: f64,
        next: &[Option<usize>],
    ) -> Option<f64> {
        let (graph, last) = (&self.formation.graph, *nodes.last()?);
        let old = next[last]?;
        let left = |to: usize, count: &dyn Fn(&Steps<'_>) -> f64| {
            let going = through.iter().filter(|steps| steps.nodes.starts_with(nodes));
            let gone: f64 = going.filter(|s| s.nodes.get(nodes.len()) == Some(&to)).map(count).sum();
            graph.flow(last, to) - share * gone
        };
        let min_left = |to: usize| left(to, &|steps| steps.walk.count);
        // Not yet a fall-through target, and its own chain of fall-throughs does not contain the last node.
        let is_free = |to: usize| {
            let chain = std::iter::successors(Some(to), |&node| next[node]);
            to != 0 && to != old && !next.contains(&Some(to)) && chain.take(next.len()).all(|node| node != last)
        };
        let others = graph.nodes[last].successors.iter().filter(|&&to| is_free(to));
        let hottest = others.map(|&to| min_left(to)).fold(0.0, f64::max);
        let gain = hottest - left(old, &|steps| steps.low(nodes.len()));
        (gain > 0.0).then(|| gain * self.jump(last))
    }

    /// The next node of a trace, if it is predictable and may be copied.
    fn predictable(&self, nodes: &[usize], through: &[Steps<'_>]) -> Option<usize> {
        let mut counts: Vec<(usize, f64)> = Vec::new();
        for steps in through.iter().filter(|steps| steps.nodes.starts_with(nodes)) {
            let Some(step) = steps.after(nodes.len()) else { continue };
            match counts.iter_mut().find(|(known, _)| *known == step) {
                Some((_, count)) => *count += steps.walk.count,
                None => counts.push((step, steps.walk.count)),
            }
        }
        let sum: f64 = counts.iter().map(|(_, c)| c).sum();
        let (step, count) = counts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let fits =
            step < self.subject.cfg.blocks.len() && !nodes.contains(&step) && self.may_copy(*nodes.last()?, step, true);
        (fits && count >= self.options.predictable * sum).then_some(step)
    }

    fn take(&mut self, candidate: Candidate) {
        let probabilities = self.slot_flows(&candidate);
        let graph = &mut self.formation.graph;
        let origin = |graph: &DuplicatedGraph, node: usize| graph.nodes[node].origin;
        self.formation.superblocks.push(Superblock {
            from: origin(graph, candidate.from),
            trace: candidate.trace.iter().map(|&n| origin(graph, n)).collect(),
            gain: candidate.gain,
            copied: candidate.copied,
        });
        graph.duplicate(candidate.from, &candidate.trace, &probabilities);
        self.formation.copied += candidate.copied;
        self.growth_budget -= candidate.copied;
    }

    /// For each node of a trace, the flow of its slots in the executions that the copy serves.
    fn slot_flows(&self, candidate: &Candidate) -> Vec<Vec<f64>> {
        let graph = &self.formation.graph;
        let mut prefix = vec![candidate.from];
        let mut all = Vec::new();
        let traces: Vec<Trace<'_>> = self.walks.iter().map(|walk| Trace::new(graph, walk)).collect();
        for &node in &candidate.trace {
            prefix.push(node);
            let mut flow: Vec<(usize, f64)> = Vec::new();
            for trace in &traces {
                let step = trace
                    .from(&prefix)
                    .and_then(|steps| steps.nodes.get(prefix.len()).copied());
                flow.extend(step.map(|step| (step, trace.walk.count)));
            }
            let slots = &graph.nodes[node];
            let own = slots.successors.iter().zip(&slots.counts).map(|(&successor, &count)| {
                let through: f64 = flow.iter().filter(|(s, _)| *s == successor).map(|(_, c)| c).sum();
                // Slots with a common target share its flow in proportion to their counts.
                let together = graph.flow(node, successor);
                match (flow.is_empty(), together > 0.0) {
                    (true, _) => count,
                    (false, true) => through * count / together,
                    (false, false) => through,
                }
            });
            all.push(own.collect());
        }
        all
    }

    /// The cost of each execution of a node that does not fall through.
    fn jump(&self, node: usize) -> f64 {
        let block = self.block(node);
        match block.terminator {
            // Indirect branches are always taken.
            Terminator::IndirectBranch => 0.0,
            Terminator::Branch if block.successors.len() == 1 => TAKEN + JUMP,
            _ => TAKEN,
        }
    }

    /// Register moves that copying a block may cost, in executions.
    fn moves(&self, block: BlockIndex) -> f64 {
        let successors = &self.subject.cfg.blocks[block.index()].successors;
        let is_latch = successors.iter().any(|to| self.unrollable[to.index()]);
        let each = if self.subject.tight[block.index()] || self.unrollable[block.index()] || is_latch {
            self.options.tight_moves
        } else {
            self.options.moves
        };
        each * self.subject.counts[block.index()]
    }

    /// Instructions that copying a node adds. An entry of a jump table counts as an instruction.
    fn size(&self, node: usize) -> u32 {
        let block = self.block(node);
        let table = match block.terminator {
            Terminator::Switch => block.successors.len() as u32,
            _ => 0,
        };
        block.instructions.max(1) + table
    }

    fn block(&self, node: usize) -> &Block {
        &self.subject.cfg.blocks[self.formation.graph.nodes[node].origin.index()]
    }
}

enum Grown {
    Profitable(Candidate),
    TooLarge,
    NotProfitable,
}

/// Edges between nodes. Slots with a common target are one edge.
fn flows(graph: &DuplicatedGraph, cost: impl Fn(usize) -> f64) -> Vec<Flow> {
    let mut flows: Vec<Flow> = Vec::new();
    for (from, node) in graph.nodes.iter().enumerate() {
        let first = flows.len();
        for (&to, &count) in node.successors.iter().zip(&node.counts) {
            match flows[first..].iter_mut().find(|f| f.to == to) {
                Some(flow) => flow.count += count,
                None => flows.push(Flow {
                    from,
                    to,
                    count,
                    cost: cost(from),
                }),
            }
        }
    }
    flows
}

#[cfg(test)]
mod tests;
