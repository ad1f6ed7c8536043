//! What tells the blocks of a function apart.

use pleach_annotate::cfg::{Block, Callee, Cfg, Terminator};
use pleach_annotate::id::FunctionGuid;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The features of one block.
#[derive(Clone, PartialEq, Debug)]
pub struct Features {
    /// Kind of the terminator.
    pub terminator: Terminator,
    /// The block begins with an exception-handling pad.
    pub is_eh_pad: bool,
    /// Number of successor slots.
    pub slots: usize,
    /// IR instructions.
    pub instructions: u32,
    /// What it calls, in order.
    pub callees: Vec<Target>,
    /// Hash of all of the above.
    pub own: u64,
    /// Hash of the block's own features and of those of its successors, in order, and its predecessors.
    pub neighbourhood: u64,
}

/// The target of a call; the function itself has the same in all versions, whatever it is called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// The calling function.
    Itself,
    /// Another function.
    Function(FunctionGuid),
    /// Known only at run time.
    Indirect,
    /// Inline assembly.
    InlineAsm,
    /// An intrinsic for memory.
    Memory,
}

impl Features {
    /// The features of all blocks, in block order.
    pub fn of(cfg: &Cfg) -> Vec<Self> {
        let mut callees: Vec<Vec<Target>> = vec![Vec::new(); cfg.blocks.len()];
        for call in &cfg.calls {
            callees[call.block.index()].push(target(cfg, call.callee));
        }
        let mut features: Vec<Self> = cfg.blocks.iter().zip(callees).map(alone).collect();
        let own: Vec<u64> = features.iter().map(|block| block.own).collect();
        let mut before: Vec<Vec<u64>> = vec![Vec::new(); own.len()];
        for (index, block) in cfg.blocks.iter().enumerate() {
            for to in &block.successors {
                before[to.index()].push(own[index]);
            }
        }
        for ((features, block), mut before) in features.iter_mut().zip(&cfg.blocks).zip(before) {
            before.sort_unstable();
            let after: Vec<u64> = block.successors.iter().map(|to| own[to.index()]).collect();
            features.neighbourhood = hash(&(features.own, after, before));
        }
        features
    }

    /// Whether the two may be one block: they end alike. Switches may have lost or gained cases.
    pub fn is_compatible(&self, other: &Self) -> bool {
        self.terminator == other.terminator
            && self.is_eh_pad == other.is_eh_pad
            && (self.slots == other.slots || self.terminator == Terminator::Switch)
    }

    /// How alike two compatible blocks are: from 0 to [`Self::ALIKE`].
    pub fn similarity(&self, other: &Self) -> f64 {
        if self.neighbourhood == other.neighbourhood {
            return Self::ALIKE;
        }
        if self.own == other.own {
            return SAME_BLOCK;
        }
        let calls = self.callees.len().max(other.callees.len());
        let of_calls = match calls {
            0 => SAME_CALLS / 3.0,
            _ => SAME_CALLS * common(&self.callees, &other.callees) as f64 / calls as f64,
        };
        let (a, b) = (f64::from(self.instructions + 1), f64::from(other.instructions + 1));
        SAME_KIND + of_calls + SAME_SIZE * a.min(b) / a.max(b)
    }

    /// The similarity of blocks with equal neighbourhoods.
    pub const ALIKE: f64 = 10.0;
}

/// Similarity of blocks that are equal, but whose neighbours are not.
const SAME_BLOCK: f64 = 7.0;
/// Of blocks that end alike. With calls and size it is less than that of equal blocks.
const SAME_KIND: f64 = 1.0;
/// Of blocks with the same calls. A block's calls say more than its size. Blocks without calls get a third.
const SAME_CALLS: f64 = 3.0;
/// Of blocks with equally many instructions.
const SAME_SIZE: f64 = 2.0;

fn target(cfg: &Cfg, callee: Callee) -> Target {
    match callee {
        Callee::Direct(guid) if guid == cfg.id.guid => Target::Itself,
        Callee::Direct(guid) => Target::Function(guid),
        Callee::Indirect => Target::Indirect,
        Callee::InlineAsm => Target::InlineAsm,
        Callee::Memory => Target::Memory,
    }
}

fn alone((block, callees): (&Block, Vec<Target>)) -> Features {
    let slots = block.successors.len();
    let own = hash(&(block.terminator, block.is_eh_pad, slots, block.instructions, &callees));
    Features {
        terminator: block.terminator,
        is_eh_pad: block.is_eh_pad,
        slots,
        instructions: block.instructions,
        callees,
        own,
        neighbourhood: own,
    }
}

fn hash(of: &impl Hash) -> u64 {
    // Only compared with hashes of the same process.
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Number of targets that both lists have, regardless of order.
fn common(a: &[Target], b: &[Target]) -> usize {
    let mut rest = b.to_vec();
    let taken = |target: &&Target| {
        let found = rest.iter().position(|other| other == *target);
        found.map(|at| rest.swap_remove(at)).is_some()
    };
    a.iter().filter(taken).count()
}
