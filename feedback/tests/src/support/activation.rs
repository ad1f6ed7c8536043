//! Graphs of any shape, and activations of the functions that they are of.
#![allow(dead_code, reason = "every test binary uses its own part")]

use super::Random;
use pleach_annotate::cfg::{Block, Call, Callee, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, CallIndex, FunctionGuid, FunctionId, ModuleHash};
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::*;
use std::collections::BTreeSet;

/// Any graph: unreachable blocks, loops of every shape, slots that repeat, calls of all kinds.
pub fn wild(random: &mut Random) -> Cfg {
    let most = [4, 10, 30][random.below(3)];
    let n = 1 + random.below(most);
    let (forward, leaves, calls) = (random.unit(), random.unit() * 0.4, random.unit());
    let twice = if random.chance(0.4) { 0.3 } else { 0.0 };
    let mut cfg = Cfg {
        id: FunctionId {
            guid: FunctionGuid(1),
            module: ModuleHash(0),
        },
        module: ModuleHash(0),
        name: "f".into(),
        source_file: "f.c".into(),
        blocks: Vec::new(),
        calls: Vec::new(),
    };
    for block in 0..n {
        let count = if random.chance(leaves) { 0 } else { 1 + random.below(4) };
        let target = |random: &mut Random| match () {
            () if random.chance(forward) => (block + 1 + random.below(4)).min(n - 1),
            () if random.chance(0.3) => block,
            () => random.below(n),
        };
        let successors: Vec<_> = (0..count).map(|_| BlockIndex(target(random) as u32)).collect();
        let terminator = match count {
            0 if random.chance(0.3) => Terminator::Unreachable,
            0 => Terminator::Return,
            1 | 2 => Terminator::Branch,
            _ => Terminator::Switch,
        };
        cfg.blocks.push(Block {
            successors,
            terminator,
            is_eh_pad: random.chance(0.05),
            instructions: 1,
            line: 0,
        });
        while random.chance(calls * 0.6) {
            let callee = match () {
                () if random.chance(twice) => Callee::Direct(FunctionGuid::of_name("_setjmp")),
                () if random.chance(0.1) => Callee::InlineAsm,
                () => Callee::Indirect,
            };
            cfg.calls.push(Call {
                block: BlockIndex(block as u32),
                callee,
                may_not_return: random.chance(0.5),
            });
        }
    }
    cfg
}

/// Distinct successors in order.
pub fn successors(cfg: &Cfg, block: BlockIndex) -> Vec<BlockIndex> {
    let mut seen = BTreeSet::new();
    let all = cfg.blocks[block.index()].successors.iter().copied();
    all.filter(|&s| seen.insert(s)).collect()
}

/// Reachable blocks, and edges to blocks whose search has begun and not ended.
pub fn search(cfg: &Cfg) -> (BTreeSet<BlockIndex>, BTreeSet<(BlockIndex, BlockIndex)>) {
    fn visit(
        cfg: &Cfg,
        at: BlockIndex,
        open: &mut Vec<BlockIndex>,
        found: &mut (BTreeSet<BlockIndex>, BTreeSet<(BlockIndex, BlockIndex)>),
    ) {
        found.0.insert(at);
        open.push(at);
        for to in successors(cfg, at) {
            if open.contains(&to) {
                found.1.insert((at, to));
            } else if !found.0.contains(&to) {
                visit(cfg, to, open, found);
            }
        }
        open.pop();
    }
    let mut found = Default::default();
    visit(cfg, BlockIndex::ENTRY, &mut Vec::new(), &mut found);
    found
}

/// One step of an activation.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Along an edge into a block.
    Edge(BlockIndex, BlockIndex),
    /// A call in this block does not come back.
    Leave(BlockIndex),
    /// A call returns again.
    Resume(CallIndex),
}

/// An activation that ends; `None` if it has not after some steps.
pub fn walk(cfg: &Cfg, random: &mut Random) -> Option<Vec<Event>> {
    let (mut events, mut at, mut call, mut marks) = (Vec::new(), BlockIndex::ENTRY, 0, Vec::new());
    let early = [0.02, 0.2][random.below(2)];
    'blocks: while events.len() < 300 {
        while call < cfg.calls.len() {
            let index = CallIndex(call as u32);
            let content = cfg.calls[call];
            call += 1;
            if content.block != at {
                continue;
            }
            if may_not_return(&content) && random.chance(if events.len() > 200 { 0.5 } else { early }) {
                events.push(Event::Leave(at));
                if marks.is_empty() || random.chance(0.3) {
                    return Some(events);
                }
                let to: CallIndex = marks[random.below(marks.len())];
                events.push(Event::Resume(to));
                at = cfg.calls[to.index()].block;
                call = to.index() + 1;
                continue 'blocks;
            }
            if returns_twice(&content) {
                marks.push(index);
            }
        }
        let slots = &cfg.blocks[at.index()].successors;
        if slots.is_empty() {
            return Some(events);
        }
        let to = slots[random.below(slots.len())];
        events.push(Event::Edge(at, to));
        (at, call) = (to, 0);
    }
    None
}

/// The paths of an activation, by definition.
pub fn split(cfg: &Cfg, graph: &PathGraph, options: &NumberingOptions, events: &[Event]) -> Vec<Path> {
    let (_, back) = search(cfg);
    let is_exit = |b: BlockIndex| cfg.blocks[b.index()].successors.is_empty();
    let mut paths = Vec::new();
    let begin = |start, block| Path {
        start,
        blocks: vec![block],
        end: End::Exit,
    };
    let mut path = begin(Start::Entry, BlockIndex::ENTRY);
    let finish = |path: &Path, end| Path { end, ..path.clone() };
    if is_exit(BlockIndex::ENTRY) {
        paths.push(path.clone());
    }
    for &event in events {
        match event {
            Event::Edge(from, to) => {
                let alone = from == to && options.iterations == 1 && successors(cfg, from).len() > 1;
                let cut = graph.find(EdgeKind::End(from, End::Cut(to))).is_some();
                if alone {
                    paths.push(finish(&begin(Start::Inside, from), End::Back(from)));
                    continue;
                } else if back.contains(&(from, to)) {
                    paths.push(finish(&path, End::Back(to)));
                    path = begin(Start::Inside, to);
                } else if cut {
                    paths.push(finish(&path, End::Cut(to)));
                    path = begin(Start::Inside, to);
                } else {
                    path.blocks.push(to);
                }
                if is_exit(to) {
                    paths.push(path.clone());
                }
            }
            Event::Leave(block) if is_exit(block) => {}
            Event::Leave(_) => paths.push(finish(&path, End::Call)),
            Event::Resume(call) => {
                path = begin(Start::Inside, cfg.calls[call.index()].block);
                if is_exit(path.blocks[0]) {
                    paths.push(path.clone());
                }
            }
        }
    }
    paths
}
