//! Which traces to copy, and for whom: greedily by gain for each copied instruction.
//!
//! A candidate is a jump into a join: the edge from a block P to a block J that others lead to as well, and that J cannot be placed behind
//! P for. Copying J for P alone makes it fall through, and the copy is laid out as P's executions go on, not as all do. The trace grows from J
//! as long as its next step is predictable given P. The gain is what the walks that pass P and J save in taken jumps, jump
//! instructions and folded instructions, counted at the lower end of their interval; the price is for the code.

use super::layout::{Flow, JUMP, TAKEN, fall_through};
use super::unfolded::Unfolded;
use super::walks::{Walk, back_edges, unrollable, walks};
use super::{Folding, Options, Subject};
use pleach_annotate::cfg::{Block, Terminator};
use pleach_annotate::id::BlockIndex;

/// Superblocks that a function may get: bounds the time that deciding takes.
const MOST_SUPERBLOCKS: usize = 64;
/// Instructions that a function may grow by anyway, however small it is.
const LEAST_ROOM: u32 = 32;

/// A trace that was copied.
#[derive(Clone, PartialEq, Debug)]
pub struct Superblock {
    /// The block that leads to it.
    pub from: BlockIndex,
    /// The blocks that were copied.
    pub trace: Vec<BlockIndex>,
    /// Executions that it saves jumps or instructions in, at least (lower confidence bound).
    pub gain: f64,
    /// Instructions copied.
    pub copied: u32,
}

/// What to make of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct Formation {
    /// The graph to make. Its first nodes are the function's blocks.
    pub graph: Unfolded,
    /// The superblocks, best first.
    pub superblocks: Vec<Superblock>,
    /// Instructions copied.
    pub copied: u32,
    /// Joins that were looked at and not worth their code.
    pub not_worth: usize,
    /// Joins that would have been worth it but for a limit on code size.
    pub too_large: usize,
}

/// Decides for a function. `room`: instructions that its module may still grow by.
pub fn form(subject: &Subject<'_>, folding: &dyn Folding, room: u32, options: &Options) -> Formation {
    let back = back_edges(subject.cfg);
    let size: u32 = subject.cfg.blocks.iter().map(|b| b.instructions).sum();
    let own_room = ((f64::from(size) * (options.function_growth - 1.0)) as u32).max(LEAST_ROOM);
    let mut selection = Selection {
        subject,
        options,
        walks: walks(subject, &back, options.confidence),
        unrollable: unrollable(subject, &back),
        back,
        bases: subject.cfg.edge_bases(),
        room: room.min(own_room),
        formation: Formation {
            graph: Unfolded::new(subject.cfg, subject.counts, subject.probabilities),
            superblocks: Vec::new(),
            copied: 0,
            not_worth: 0,
            too_large: 0,
        },
    };
    while selection.formation.superblocks.len() < MOST_SUPERBLOCKS {
        let Some(best) = selection.best(folding) else { break };
        selection.take(best);
    }
    selection.formation
}

struct Candidate {
    from: usize,
    trace: Vec<usize>,
    gain: f64,
    copied: u32,
}

impl Candidate {
    fn worth(&self) -> f64 {
        self.gain / f64::from(self.copied)
    }
}

struct Selection<'a> {
    subject: &'a Subject<'a>,
    options: &'a Options,
    walks: Vec<Walk>,
    back: Vec<bool>,
    /// By block: it may be copied for a back edge.
    unrollable: Vec<bool>,
    bases: Vec<u32>,
    room: u32,
    formation: Formation,
}

/// A walk through the unfolded graph.
struct Trace<'w> {
    nodes: Vec<usize>,
    walk: &'w Walk,
}

/// Part of a trace.
struct Steps<'t> {
    /// From some node on.
    nodes: &'t [usize],
    /// How many of them belong to the path that the walk counts: what comes then is less sure.
    counted: usize,
    walk: &'t Walk,
}

impl<'w> Trace<'w> {
    fn new(graph: &Unfolded, walk: &'w Walk) -> Self {
        let nodes = graph.trace(walk);
        Self { nodes, walk }
    }

    /// What follows these nodes, them included, where the walk counts the step from the first of them.
    fn from(&self, nodes: &[usize]) -> Option<Steps<'_>> {
        let Walk { counted, ends_back, .. } = self.walk;
        // What follows the back edge that it ends by, others know.
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
    /// What follows so many nodes, as far as that is known.
    fn after(&self, nodes: usize) -> Option<usize> {
        let known = self.nodes.len() - usize::from(self.walk.ends_back);
        self.nodes[..known].get(nodes).copied()
    }

    /// Executions of so many nodes that are sure.
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

        let least = self.options.price * self.subject.total;
        let (mut best, mut not_worth, mut too_large) = (None::<Candidate>, 0, 0);
        for flow in &flows {
            if flow.count <= least || !self.is_join(flow, &inflow, &next) {
                continue;
            }
            match self.grow(flow, &traces, &next, folding) {
                Grown::Worth(candidate) if best.as_ref().is_none_or(|b| candidate.worth() > b.worth()) => {
                    best = Some(candidate);
                }
                Grown::Worth(_) => {}
                Grown::TooLarge => too_large += 1,
                Grown::NotWorth => not_worth += 1,
            }
        }
        // The last round, which takes none, has seen all that was declined.
        (self.formation.not_worth, self.formation.too_large) = (not_worth, too_large);
        best
    }

    /// Whether an edge is a jump into a block that could be copied for it.
    fn is_join(&self, flow: &Flow, inflow: &[f64], next: &[Option<usize>]) -> bool {
        let graph = &self.formation.graph;
        let blocks = self.subject.cfg.blocks.len();
        let elsewhere = next[flow.from].map_or(0.0, |n| graph.flow(flow.from, n));
        flow.to < blocks
            && self.may_copy(flow.from, flow.to, false)
            && next[flow.from] != Some(flow.to)
            && elsewhere <= flow.count
            && (inflow[flow.to] > flow.count || self.options.price == 0.0)
    }

    /// Whether a node may be copied behind another, which is a copy itself or not. Copying a loop's header for a back edge unrolls the loop for
    /// this way back: another must remain, so that the header remains one.
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

    /// The best trace from a join on.
    fn grow(&self, flow: &Flow, traces: &[Trace<'_>], next: &[Option<usize>], folding: &dyn Folding) -> Grown {
        let graph = &self.formation.graph;
        // Walks that come this way, from the join on.
        let steps = traces.iter().filter_map(|trace| trace.from(&[flow.from, flow.to]));
        let through: Vec<Steps<'_>> = steps.collect();
        // Walks begin at blocks, not at copies of them: of what they say, not more than comes this way.
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
            if copied > self.options.trace_limit.min(self.room) {
                too_large = true;
                break;
            }
            nodes.push(node);
            let origins: Vec<_> = nodes.iter().map(|&n| graph.nodes[n].origin).collect();
            let saved = folding.saved(&origins);
            let moves = origins[1..].iter().map(|&block| self.moves(block));
            let mut gain = -displaced - moves.fold(0.0, f64::max);
            let resettled = self.resettled(&nodes, &through, share, next);
            gain += resettled.unwrap_or(0.0);
            for steps in &through {
                let agree = steps.nodes.iter().zip(&nodes).take_while(|(a, b)| a == b).count();
                let inside: f64 = steps.nodes[..agree].windows(2).map(|w| before(w[0], w[1])).sum();
                let folded: u32 = saved.iter().take(agree - 1).sum();
                let leaving = steps.nodes.get(agree).map_or(0.0, |&out| {
                    let last = steps.nodes[agree - 1];
                    // What no longer falls through to it leaves it to the copy.
                    let freed = agree == nodes.len() && resettled.is_some() && next[last] == Some(out);
                    if freed { 0.0 } else { before(last, out) - jump(last) }
                });
                gain += share * steps.low(nodes.len()) * (inside + leaving + f64::from(folded));
            }
            let worth = gain > self.options.price * self.subject.total * f64::from(copied);
            if (worth || self.options.price == 0.0)
                && best
                    .as_ref()
                    .is_none_or(|b| gain / f64::from(copied) > b.worth() || self.options.price == 0.0)
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
            Some(candidate) => Grown::Worth(candidate),
            None if too_large => Grown::TooLarge,
            None => Grown::NotWorth,
        }
    }

    /// What the last node of a trace would rather fall through to once the trace is copied, where what is left of it mostly goes another way than
    /// all of it does: the executions that then jump less, at least. Which of two even sides all of it falls through to is chance.
    fn resettled(&self, nodes: &[usize], through: &[Steps<'_>], share: f64, next: &[Option<usize>]) -> Option<f64> {
        let (graph, last) = (&self.formation.graph, *nodes.last()?);
        let way = next[last]?;
        let left = |to: usize, count: &dyn Fn(&Steps<'_>) -> f64| {
            let going = through.iter().filter(|steps| steps.nodes.starts_with(nodes));
            let gone: f64 = going.filter(|s| s.nodes.get(nodes.len()) == Some(&to)).map(count).sum();
            graph.flow(last, to) - share * gone
        };
        let least_left = |to: usize| left(to, &|steps| steps.walk.count);
        // Nothing falls through to it yet, and it does not lead here by falling through.
        let is_free = |to: usize| {
            let chain = std::iter::successors(Some(to), |&node| next[node]);
            to != 0 && to != way && !next.contains(&Some(to)) && chain.take(next.len()).all(|node| node != last)
        };
        let others = graph.nodes[last].successors.iter().filter(|&&to| is_free(to));
        let most = others.map(|&to| least_left(to)).fold(0.0, f64::max);
        let gain = most - left(way, &|steps| steps.low(nodes.len()));
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
        let probabilities = self.probabilities(&candidate);
        let graph = &mut self.formation.graph;
        let origin = |graph: &Unfolded, node: usize| graph.nodes[node].origin;
        self.formation.superblocks.push(Superblock {
            from: origin(graph, candidate.from),
            trace: candidate.trace.iter().map(|&n| origin(graph, n)).collect(),
            gain: candidate.gain,
            copied: candidate.copied,
        });
        graph.duplicate(candidate.from, &candidate.trace, &probabilities);
        self.formation.copied += candidate.copied;
        self.room -= candidate.copied;
    }

    /// For each node of a trace, how probable its slots are for what comes this way.
    fn probabilities(&self, candidate: &Candidate) -> Vec<Vec<f64>> {
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
                // Several slots that lead to one node share what goes there as they do otherwise.
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

    /// What it costs each time that a node does not fall through.
    fn jump(&self, node: usize) -> f64 {
        let block = self.block(node);
        match block.terminator {
            // Taken wherever it leads to: nothing falls through.
            Terminator::IndirectBranch => 0.0,
            Terminator::Branch if block.successors.len() == 1 => TAKEN + JUMP,
            _ => TAKEN,
        }
    }

    /// Moves that copying a block may cost.
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

    /// Instructions that copying a node adds. An entry of a jump table counts as one, which is as large.
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
    Worth(Candidate),
    TooLarge,
    NotWorth,
}

/// Edges between nodes, those of several slots as one.
fn flows(graph: &Unfolded, cost: impl Fn(usize) -> f64) -> Vec<Flow> {
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
