//! Random graphs with random blocks copied: accepted as they are, refused as soon as one thing is not as it was.

use pleach_feedback_tests::support;

use pleach_annotate::cfg::{Call, Callee, Cfg, Terminator};
use pleach_annotate::id::BlockIndex;
use pleach_decide::superblock::check::{Counts, check, check_flow};
use proptest::prelude::*;
use support::activation::{search, wild};
use support::{Random, random_cfg};

/// A graph, and what became of it.
#[derive(Clone, Debug)]
struct Case {
    before: Cfg,
    after: Cfg,
    origin: Vec<BlockIndex>,
}

impl Case {
    fn random(random: &mut Random) -> Self {
        let before = if random.chance(0.5) {
            wild(random)
        } else {
            let blocks = 1 + random.below(40);
            random_cfg(random, blocks)
        };
        let mut case = Self {
            after: before.clone(),
            origin: (0..before.blocks.len() as u32).map(BlockIndex).collect(),
            before,
        };
        for _ in 0..random.below(12) {
            case.duplicate(random);
        }
        case
    }

    /// Copies a block for some of the slots that lead to it.
    fn duplicate(&mut self, random: &mut Random) {
        let block = random.below(self.after.blocks.len());
        if self.origin[block] == BlockIndex::ENTRY || self.after.blocks[block].is_eh_pad {
            return;
        }
        let copy = BlockIndex(self.after.blocks.len() as u32);
        self.origin.push(self.origin[block]);
        self.after.blocks.push(self.after.blocks[block].clone());
        let calls: Vec<Call> = self
            .after
            .calls
            .iter()
            .filter(|c| c.block.index() == block)
            .copied()
            .collect();
        self.after
            .calls
            .extend(calls.into_iter().map(|c| Call { block: copy, ..c }));
        let share = random.unit();
        for slot in self.after.blocks.iter_mut().flat_map(|b| &mut b.successors) {
            if slot.index() == block && random.chance(share) {
                *slot = copy;
            }
        }
    }

    /// Changes one thing; says whether the graph modulo clones is another one then.
    fn corrupt(&mut self, random: &mut Random) -> bool {
        let blocks = self.after.blocks.len();
        let block = random.below(blocks);
        let content = &mut self.after.blocks[block];
        match random.below(8) {
            0 if !content.successors.is_empty() => {
                let slot = random.below(content.successors.len());
                let to = random.below(blocks);
                let old = std::mem::replace(&mut content.successors[slot], BlockIndex(to as u32));
                self.origin[old.index()] != self.origin[to]
            }
            1 if blocks > 1 => self.drop_block(random, block),
            2 => {
                let terminator = Terminator::from_u8(random.below(8) as u8).unwrap();
                std::mem::replace(&mut content.terminator, terminator) != terminator
            }
            3 => {
                content.is_eh_pad = !content.is_eh_pad;
                true
            }
            4 => {
                content.successors.push(BlockIndex(random.below(blocks) as u32));
                true
            }
            5 if !self.after.calls.is_empty() => {
                let call = random.below(self.after.calls.len());
                self.after.calls.remove(call);
                true
            }
            6 => {
                self.after.calls.push(Call {
                    block: BlockIndex(block as u32),
                    callee: Callee::InlineAsm,
                    may_not_return: false,
                });
                true
            }
            _ => {
                let origin = BlockIndex(random.below(self.before.blocks.len()) as u32);
                let other = std::mem::replace(&mut self.origin[block], origin) != origin;
                // Equal blocks may stand for each other where no other block goes to them.
                other && self.targeted(block)
            }
        }
    }

    fn targeted(&self, block: usize) -> bool {
        let to = BlockIndex(block as u32);
        let mut others = self.after.blocks.iter().enumerate().filter(|&(b, _)| b != block);
        block == 0 || others.any(|(_, b)| b.successors.contains(&to))
    }

    /// Removes a block; what led to it leads to some other one.
    fn drop_block(&mut self, random: &mut Random, block: usize) -> bool {
        let entry_changes = block == 0;
        let dropped = self.origin.remove(block);
        self.after.blocks.remove(block);
        self.after.calls.retain(|c| c.block.index() != block);
        let left = self.after.blocks.len();
        let instead = random.below(left);
        let renumbered = |old: BlockIndex| match old.index() {
            old if old == block => BlockIndex(instead as u32),
            old => BlockIndex((old - usize::from(old > block)) as u32),
        };
        let mut was_target = false;
        for slot in self.after.blocks.iter_mut().flat_map(|b| &mut b.successors) {
            was_target |= slot.index() == block;
            *slot = renumbered(*slot);
        }
        for call in &mut self.after.calls {
            call.block = renumbered(call.block);
        }
        entry_changes || (was_target && self.origin[instead] != dropped)
    }

    /// Reachable blocks by origin: the blocks that can still be executed.
    fn reachable_origins(&self) -> Vec<BlockIndex> {
        let mut origins: Vec<_> = search(&self.after)
            .0
            .into_iter()
            .map(|b| self.origin[b.index()])
            .collect();
        origins.sort_unstable();
        origins.dedup();
        origins
    }
}

/// Exact counts of both graphs: random walks that take the same slots in each. Some walks end anywhere.
struct Walked {
    before: (Vec<f64>, Vec<f64>),
    after: (Vec<f64>, Vec<f64>),
}

impl Walked {
    fn new(random: &mut Random, case: &Case) -> Self {
        let zero = |cfg: &Cfg| (vec![0.0; cfg.blocks.len()], vec![0.0; cfg.edge_count()]);
        let mut walked = Self {
            before: zero(&case.before),
            after: zero(&case.after),
        };
        let bases = [case.before.edge_bases(), case.after.edge_bases()];
        for _ in 0..20 {
            let times = (random.unit() * 1e6).floor();
            let (mut at, mut copy) = (0, 0);
            for step in 0..=100 {
                walked.before.0[at] += times;
                walked.after.0[copy] += times;
                let slots = &case.before.blocks[at].successors;
                if slots.is_empty() || step == 100 {
                    break;
                }
                let slot = random.below(slots.len());
                walked.before.1[bases[0][at] as usize + slot] += times;
                walked.after.1[bases[1][copy] as usize + slot] += times;
                at = slots[slot].index();
                copy = case.after.blocks[copy].successors[slot].index();
            }
        }
        walked
    }

    fn check(&self, case: &Case) -> bool {
        let counts = [&self.before, &self.after].map(|(blocks, edges)| Counts { blocks, edges });
        check_flow(&case.before, &case.after, &case.origin, counts[0], counts[1]).is_ok()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn copies_are_accepted(seed: u64) {
        let mut random = Random(seed);
        let case = Case::random(&mut random);
        prop_assert_eq!(check(&case.before, &case.after, &case.origin), Ok(()));
        let all: Vec<_> = search(&case.before).0.into_iter().collect();
        prop_assert_eq!(case.reachable_origins(), all);
    }

    #[test]
    fn other_graphs_are_refused(seed: u64) {
        let mut random = Random(seed);
        let mut case = Case::random(&mut random);
        if case.corrupt(&mut random) {
            prop_assert!(check(&case.before, &case.after, &case.origin).is_err(), "{:?}", case);
        }
    }

    #[test]
    fn counts_of_the_same_walks_are_accepted_and_others_refused(seed: u64) {
        let mut random = Random(seed);
        let case = Case::random(&mut random);
        let mut walked = Walked::new(&mut random, &case);
        prop_assert!(walked.check(&case));
        let list = if random.chance(0.5) { &mut walked.after.0 } else { &mut walked.after.1 };
        if !list.is_empty() {
            let at = random.below(list.len());
            list[at] += 1000.0 + 1e-3 * list[at];
            prop_assert!(!walked.check(&case));
        }
    }
}
