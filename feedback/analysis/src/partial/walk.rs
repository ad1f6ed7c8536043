//! One activation of one copy of a function: from the blocks that were seen to the pieces of paths that it took.
//!
//! Only blocks that have code can be seen. Where several ways lead from one such block to the next through blocks without
//! code, all of them are followed side by side until they meet again; what they took meanwhile are alternatives. Where they
//! get too many to be followed, what was passed since they parted is lost: no evidence rather than a guess.

use super::copy::{Copy, Graph, MAX_WAYS};
use super::{Alternatives, Piece};
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Start};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The path that goes on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Open {
    start: Option<Start>,
    blocks: Vec<BlockIndex>,
}

impl Open {
    fn last(&self) -> BlockIndex {
        self.blocks[self.blocks.len() - 1]
    }

    fn end(self, end: Option<End>) -> Piece {
        Piece {
            start: self.start,
            blocks: self.blocks,
            end,
        }
    }
}

/// One of the ways that an activation may have gone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Way {
    /// Pieces that ended since the ways parted.
    ended: Vec<Piece>,
    open: Option<Open>,
}

impl Way {
    /// Nothing is known of how control got to this block.
    fn at(block: BlockIndex) -> Self {
        Self {
            ended: Vec::new(),
            open: Some(Open {
                start: None,
                blocks: vec![block],
            }),
        }
    }
}

/// Where an activation is. There is always at least one way.
#[derive(Clone, Debug)]
pub(super) struct Activation {
    ways: Vec<Way>,
    /// It was entered while it was watched, so that nothing of it is missing before its first block.
    is_fresh: bool,
    /// The path that ended in the block where control is, which nothing follows.
    exiting: Vec<BlockIndex>,
}

/// All ways between two places, each without the block that it begins at; `None`: too many.
type Ways = Option<Box<[Vec<BlockIndex>]>>;

/// What a copy needs for walking: its graph, what it shows, and the steps found so far.
pub(super) struct Steps {
    pub copy: Copy,
    /// By the block that control comes from (`None`: the caller) and the group it gets to.
    known: FxHashMap<(Option<BlockIndex>, u32), Ways>,
    groups: FxHashMap<Box<[BlockIndex]>, u32>,
}

impl Steps {
    pub fn new(copy: Copy) -> Self {
        Self {
            copy,
            known: FxHashMap::default(),
            groups: FxHashMap::default(),
        }
    }

    fn ways(&mut self, graph: &Graph, from: Option<BlockIndex>, group: &[BlockIndex]) -> Option<&[Vec<BlockIndex>]> {
        let number = match self.groups.get(group) {
            Some(&number) => number,
            None => {
                let number = self.groups.len() as u32;
                self.groups.insert(group.into(), number);
                number
            }
        };
        let copy = &self.copy;
        self.known
            .entry((from, number))
            .or_insert_with(|| copy.ways(graph, from, group).map(Vec::into))
            .as_deref()
    }

    /// Some block of this way has code, but was not seen.
    fn lose(&mut self, way: &[BlockIndex]) {
        for &block in way {
            if self.copy.lose(block) {
                self.known.clear();
            }
        }
    }
}

/// What a walk tells.
pub(super) trait Sink {
    /// Pieces that were passed: one of these lists of them.
    fn pieces(&mut self, alternatives: Alternatives);
    /// Control got to a block in no way that the graph has.
    fn inconsistent(&mut self);
    /// Control went in one of too many ways: what was passed is not told.
    fn lost(&mut self);
}

impl Activation {
    pub fn new(is_fresh: bool) -> Self {
        Self {
            ways: vec![Way::default()],
            is_fresh,
            exiting: Vec::new(),
        }
    }

    /// The last blocks of the path that control is on, if there is no doubt about it.
    pub fn latest(&self, most: usize) -> Option<&[BlockIndex]> {
        let [way] = &self.ways[..] else { return None };
        let blocks = way.open.as_ref().map_or(&self.exiting, |open| &open.blocks);
        (!blocks.is_empty()).then(|| &blocks[blocks.len().saturating_sub(most)..])
    }

    fn is_open(&self) -> bool {
        self.ways.iter().any(|way| way.open.is_some())
    }

    /// Control got to the code of these blocks.
    pub fn pass(&mut self, group: &[BlockIndex], graph: &Graph, steps: &mut Steps, sink: &mut impl Sink) {
        if self.is_open() {
            if self.go_on(group, graph, steps, sink) {
                return;
            }
            let last = group[group.len() - 1];
            if !group.contains(&BlockIndex::ENTRY) {
                let lasts: Vec<_> = self.ways.iter().filter_map(|w| Some(w.open.as_ref()?.last())).collect();
                if let Some(way) = steps.copy.shortest(graph, &lasts, last) {
                    steps.lose(&way);
                    if self.go_on(group, graph, steps, sink) {
                        return;
                    }
                }
            }
            self.leave(true, graph, steps, sink);
        }
        self.begin(group, graph, steps, sink);
    }

    fn go_on(&mut self, group: &[BlockIndex], graph: &Graph, steps: &mut Steps, sink: &mut impl Sink) -> bool {
        // The usual case, without copying the way.
        if let [way] = &mut self.ways[..]
            && let Some(open) = &way.open
            && let Some([step]) = steps.ways(graph, Some(open.last()), group)
        {
            for &block in step {
                enter(way, block, graph);
            }
            if !way.ended.is_empty() {
                let ended = std::mem::take(&mut way.ended);
                if let (None, Some(last)) = (&way.open, ended.last()) {
                    self.exiting.clone_from(&last.blocks);
                }
                sink.pieces(vec![ended]);
            }
            return true;
        }
        let mut on = Vec::new();
        for way in &self.ways {
            let Some(open) = &way.open else { continue };
            let Some(onward) = steps.ways(graph, Some(open.last()), group) else {
                self.lose(Some(group[group.len() - 1]), sink);
                return true;
            };
            for step in onward {
                let mut way = way.clone();
                step.iter().for_each(|&block| enter(&mut way, block, graph));
                on.push(way);
            }
        }
        if on.is_empty() {
            return false;
        }
        self.settle(on, sink);
        true
    }

    /// The first that is seen of an activation.
    fn begin(&mut self, group: &[BlockIndex], graph: &Graph, steps: &mut Steps, sink: &mut impl Sink) {
        // Whatever comes after this activation was watched from its beginning.
        let is_fresh = std::mem::replace(&mut self.is_fresh, true);
        let from_entry = group.contains(&BlockIndex::ENTRY) || (is_fresh && steps.copy.is_silent(BlockIndex::ENTRY));
        if from_entry {
            let Some(steps) = steps.ways(graph, None, group) else {
                self.lose(Some(group[group.len() - 1]), sink);
                return;
            };
            let into = steps.iter().map(|step| {
                let mut way = Way::default();
                step.iter().for_each(|&block| enter(&mut way, block, graph));
                way
            });
            let into: Vec<_> = into.collect();
            if !into.is_empty() {
                self.settle(into, sink);
                return;
            }
            sink.inconsistent();
        }
        let mut way = Way::at(group[group.len() - 1]);
        end_at_exit(&mut way, graph);
        self.settle(vec![way], sink);
    }

    /// Nothing more is seen of the activation. `has_left`: control left the function, not just our sight.
    pub fn leave(&mut self, has_left: bool, graph: &Graph, steps: &mut Steps, sink: &mut impl Sink) {
        let mut left = Vec::new();
        for way in std::mem::replace(&mut self.ways, vec![Way::default()]) {
            let Some(open) = &way.open else {
                left.push(way);
                continue;
            };
            let out = if has_left {
                steps.copy.ways_out(graph, open.last()).unwrap_or_default()
            } else {
                Vec::new()
            };
            if out.is_empty() {
                let mut way = way;
                let open = way.open.take();
                way.ended.extend(open.map(|open| open.end(None)));
                left.push(way);
                continue;
            }
            for (blocks, end) in out {
                let mut way = way.clone();
                let open = way.open.take();
                way.ended.extend(open.map(|mut open| {
                    open.blocks.extend(blocks);
                    open.end(Some(end))
                }));
                left.push(way);
            }
        }
        self.settle(left, sink);
        self.ways.truncate(1);
        self.ways[0] = Way::default();
    }

    /// Goes on with these ways. Where what goes on does not depend on what ended, as when they have met, the pieces that
    /// ended are told.
    fn settle(&mut self, mut ways: Vec<Way>, sink: &mut impl Sink) {
        ways.sort();
        ways.dedup();
        // All of them differ, so that there is one for each pair of what ended and what goes on if there are as many.
        let ended: Vec<_> = ways
            .chunk_by(|a, b| a.ended == b.ended)
            .map(|same| &same[0].ended)
            .collect();
        let open: BTreeSet<_> = ways.iter().map(|way| &way.open).collect();
        if ended.len() * open.len() == ways.len() && ended.iter().any(|pieces| !pieces.is_empty()) {
            let open = open.into_iter().cloned().map(|open| Way {
                ended: Vec::new(),
                open,
            });
            let open: Vec<Way> = open.collect();
            self.exiting.clear();
            if let ([Way { open: None, .. }], [pieces]) = (&open[..], &ended[..]) {
                self.exiting
                    .extend(pieces.last().into_iter().flat_map(|last| &last.blocks));
            }
            sink.pieces(ended.into_iter().cloned().collect());
            ways = open;
        }
        if ways.len() > MAX_WAYS {
            let mut lasts = ways.iter().map(|way| Some(way.open.as_ref()?.last()));
            let last = lasts.next().flatten();
            let last = last.filter(|_| lasts.all(|other| other == last));
            self.lose(last, sink);
        } else {
            self.ways = ways;
        }
    }

    /// Forgets how control got to a block, or where it is now.
    fn lose(&mut self, at: Option<BlockIndex>, sink: &mut impl Sink) {
        sink.lost();
        self.ways = vec![at.map(Way::at).unwrap_or_default()];
        // What is seen next is not its beginning.
        self.is_fresh = false;
    }
}

/// Control gets to the next block of a way.
fn enter(way: &mut Way, block: BlockIndex, graph: &Graph) {
    let Some(open) = &mut way.open else {
        way.open = Some(Open {
            start: Some(Start::Entry),
            blocks: vec![block],
        });
        end_at_exit(way, graph);
        return;
    };
    let last = open.last();
    match graph.end_at(last, block) {
        None => {
            open.blocks.push(block);
            end_at_exit(way, graph);
        }
        Some(end) if graph.is_counted_apart(last, block) => way.ended.push(Piece {
            start: Some(Start::Inside),
            blocks: vec![block],
            end: Some(end),
        }),
        Some(end) => {
            let next = Open {
                start: Some(Start::Inside),
                blocks: vec![block],
            };
            let before = std::mem::replace(open, next);
            way.ended.push(before.end(Some(end)));
            end_at_exit(way, graph);
        }
    }
}

fn end_at_exit(way: &mut Way, graph: &Graph) {
    let ends = way
        .open
        .as_ref()
        .is_some_and(|open| graph.successors(open.last()).is_empty());
    if ends && let Some(open) = way.open.take() {
        way.ended.push(open.end(Some(End::Exit)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::Cfg;
    use pleach_annotate::testing::cfg;
    use pleach_ball_larus::NumberingOptions;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Told {
        observations: Vec<Alternatives>,
        inconsistent: usize,
        lost: usize,
    }

    impl Sink for Told {
        fn pieces(&mut self, alternatives: Alternatives) {
            self.observations.push(alternatives);
        }

        fn inconsistent(&mut self) {
            self.inconsistent += 1;
        }

        fn lost(&mut self) {
            self.lost += 1;
        }
    }

    /// Walks through what is not silent of these blocks.
    fn walk(cfg: &Cfg, silent: &[u32], passed: &[u32], is_fresh: bool, has_left: bool) -> Told {
        let graph = Graph::new(cfg, &NumberingOptions::default());
        let blocks = cfg.blocks.len() as u32;
        let shown = (0..blocks).filter(|b| !silent.contains(b)).map(BlockIndex);
        let mut steps = Steps::new(Copy::new(cfg.blocks.len(), shown));
        let mut activation = Activation::new(is_fresh);
        let mut told = Told::default();
        for &block in passed.iter().filter(|b| !silent.contains(b)) {
            activation.pass(&[BlockIndex(block)], &graph, &mut steps, &mut told);
        }
        activation.leave(has_left, &graph, &mut steps, &mut told);
        told
    }

    fn piece(start: Option<Start>, blocks: &[u32], end: Option<End>) -> Piece {
        Piece {
            start,
            blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
            end,
        }
    }

    const ENTRY: Option<Start> = Some(Start::Entry);
    const INSIDE: Option<Start> = Some(Start::Inside);

    #[test]
    fn a_loop_is_cut_at_its_back_edge() {
        let cfg = cfg(&[&[1], &[2, 3], &[1], &[]]);
        let told = walk(&cfg, &[], &[0, 1, 2, 1, 2, 1, 3], true, true);
        let back = Some(End::Back(BlockIndex(1)));
        let expected = [
            piece(ENTRY, &[0, 1, 2], back),
            piece(INSIDE, &[1, 2], back),
            piece(INSIDE, &[1, 3], Some(End::Exit)),
        ];
        assert_eq!(told.observations, expected.map(|p| vec![vec![p]]));
        // Seen from its middle on, and not to its end.
        let told = walk(&cfg, &[], &[2, 1], false, false);
        assert_eq!(
            told.observations,
            [
                vec![vec![piece(None, &[2], back)]],
                vec![vec![piece(INSIDE, &[1], None)]]
            ]
        );
    }

    #[test]
    fn blocks_without_code_leave_alternatives() {
        // 1 and 2 have no code.
        let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
        let told = walk(&cfg, &[1, 2], &[0, 3], true, true);
        let whole = |by| vec![piece(ENTRY, &[0, by, 3], Some(End::Exit))];
        assert_eq!(told.observations, [vec![whole(1), whole(2)]]);
        // One of them only: there is no doubt.
        let told = walk(&cfg, &[1], &[0, 3], true, true);
        assert_eq!(told.observations, [vec![whole(1)]]);
    }

    #[test]
    fn each_turn_of_a_loop_is_in_doubt_for_itself() {
        // 1 is seen, 2 and 3 have no code: two ways round, as often as one likes.
        let cfg = cfg(&[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
        let mut passed = vec![0];
        passed.extend([1, 2, 4].repeat(40));
        passed.push(5);
        let told = walk(&cfg, &[2, 3], &passed, true, true);
        assert_eq!(told.lost, 0);
        assert_eq!(told.observations.len(), 40);
        let back = Some(End::Back(BlockIndex(1)));
        let turn = |by| vec![piece(INSIDE, &[1, by, 4], back)];
        assert_eq!(told.observations[7], vec![turn(2), turn(3)]);
    }

    #[test]
    fn too_many_ways_are_no_evidence() {
        // Five diamonds without code in a row: 32 ways.
        let successors: Vec<Vec<u32>> = (0..5)
            .flat_map(|d| [vec![3 * d + 1, 3 * d + 2], vec![3 * d + 3], vec![3 * d + 3]])
            .collect();
        let mut successors: Vec<&[u32]> = successors.iter().map(Vec::as_slice).collect();
        successors.extend([&[16][..], &[]]);
        let told = walk(
            &cfg(&successors),
            &(1..15).collect::<Vec<_>>(),
            &[0, 15, 16],
            true,
            true,
        );
        assert_eq!((told.lost, told.inconsistent), (1, 0));
        assert_eq!(told.observations, [vec![vec![piece(None, &[15, 16], Some(End::Exit))]]]);
    }

    #[test]
    fn a_block_that_hides_only_sometimes_is_no_contradiction() {
        let cfg = cfg(&[&[1], &[2], &[]]);
        let graph = Graph::new(&cfg, &NumberingOptions::default());
        let mut steps = Steps::new(Copy::new(3, (0..3).map(BlockIndex)));
        let (mut activation, mut told) = (Activation::new(true), Told::default());
        for block in [0, 2] {
            activation.pass(&[BlockIndex(block)], &graph, &mut steps, &mut told);
        }
        assert_eq!(
            told.observations,
            [vec![vec![piece(ENTRY, &[0, 1, 2], Some(End::Exit))]]]
        );
        assert_eq!(told.inconsistent, 0);
        assert!(steps.copy.is_silent(BlockIndex(1)));
    }

    fn any_cfg() -> impl Strategy<Value = Cfg> {
        prop::collection::vec((0u32..4, 1u32..5, 0u32..8), 2..14).prop_map(|shape| {
            let n = shape.len() as u32 + 1;
            let blocks = shape.iter().enumerate().map(|(at, &(kind, ahead, back))| {
                let at = at as u32;
                let next = at + 1;
                match kind {
                    0 => vec![next],
                    3 if at > 0 => vec![at.saturating_sub(back).max(1), next],
                    _ => vec![next, (at + ahead).min(n - 1)],
                }
            });
            let mut blocks: Vec<Vec<u32>> = blocks.collect();
            blocks.push(Vec::new());
            cfg(&blocks.iter().map(Vec::as_slice).collect::<Vec<_>>())
        })
    }

    proptest! {
        #[test]
        fn what_was_passed_is_among_the_alternatives(cfg in any_cfg(), hidden in any::<u32>(), choices in prop::collection::vec(any::<u8>(), 1..60)) {
            // A random walk to the function's end, or for so long.
            let (mut passed, mut at) = (vec![0], 0);
            for choice in choices {
                let successors = &cfg.blocks[at as usize].successors;
                if successors.is_empty() {
                    break;
                }
                at = successors[usize::from(choice) % successors.len()].0;
                passed.push(at);
            }
            let has_left = cfg.blocks[at as usize].successors.is_empty();
            let truth = walk(&cfg, &[], &passed, true, has_left);
            prop_assert!(truth.observations.iter().all(|o| o.len() == 1));
            let truth: Vec<Piece> = truth.observations.into_iter().flat_map(|mut o| o.remove(0)).collect();
            // Everything but the ends may hide.
            let silent: Vec<u32> = (1..cfg.blocks.len() as u32 - 1).filter(|b| hidden >> b & 1 == 1).collect();
            let told = walk(&cfg, &silent, &passed, true, has_left);
            prop_assert_eq!(told.inconsistent, 0);
            // Each observation explains the next of the pieces that were passed; after a loss it is not known which is next.
            if told.lost > 0 {
                return Ok(());
            }
            let mut rest = truth.as_slice();
            for alternatives in &told.observations {
                let fits = |pieces: &Vec<Piece>| pieces.len() <= rest.len() && pieces.iter().zip(rest).all(|(a, b)| covers(a, b));
                let Some(found) = alternatives.iter().find(|pieces| fits(pieces)) else {
                    // A loop of blocks without code may have gone round more often than once.
                    let loops = silent.iter().any(|&b| cfg.blocks[b as usize].successors.iter().any(|s| s.0 <= b));
                    prop_assert!(loops, "{:?} not in {:?}", rest, alternatives);
                    return Ok(());
                };
                rest = &rest[found.len()..];
            }
        }
    }

    /// A piece that lacks its end because nothing more was seen, and the piece that was passed.
    fn covers(seen: &Piece, passed: &Piece) -> bool {
        seen.start == passed.start
            && match seen.end {
                Some(_) => seen == passed,
                None => passed.blocks.starts_with(&seen.blocks),
            }
    }
}
