//! A function's control-flow graph at the anchor, as plain data.

use crate::id::{BlockIndex, CallIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// Kind of the instruction that ends a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Terminator {
    /// Returns to the caller.
    Return = 0,
    /// Unconditional or conditional branch.
    Branch = 1,
    /// Multi-way branch on a value.
    Switch = 2,
    /// Branch to a computed address.
    IndirectBranch = 3,
    /// Call with a normal and an exceptional successor.
    Invoke = 4,
    /// Control never gets past the block's last instruction.
    Unreachable = 5,
    /// Leaves the function by unwinding.
    Resume = 6,
    /// Any other terminator (funclet returns, catch switches, `callbr`).
    Other = 7,
}

impl Terminator {
    /// Decodes the discriminant that a manifest stores.
    pub fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::Return,
            1 => Self::Branch,
            2 => Self::Switch,
            3 => Self::IndirectBranch,
            4 => Self::Invoke,
            5 => Self::Unreachable,
            6 => Self::Resume,
            7 => Self::Other,
            _ => return None,
        })
    }
}

/// Target of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Callee {
    /// A function known by name.
    Direct(FunctionGuid),
    /// A target known only at run time.
    Indirect,
    /// Inline assembly, which has no target.
    InlineAsm,
    /// `memcpy`, `memmove` or `memset`, as LLVM's intrinsic, with a length that is not constant.
    Memory,
}

/// One call instruction; intrinsics other than [`Callee::Memory`] are not calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The block that contains the call.
    pub block: BlockIndex,
    /// Its target.
    pub callee: Callee,
    /// The call is not known to be `nounwind willreturn`: control may leave the function here.
    pub may_not_return: bool,
}

/// One basic block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Block {
    /// Successors in the terminator's order; a block may be listed more than once.
    pub successors: Vec<BlockIndex>,
    /// Kind of its last instruction.
    pub terminator: Terminator,
    /// The block begins with an exception-handling pad.
    pub is_eh_pad: bool,
    /// IR instructions, without debug and pseudo instructions.
    pub instructions: u32,
    /// First source line of the block, 0 where unknown.
    pub line: u32,
}

/// A function's control-flow graph at the anchor. `blocks[0]` is the entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cfg {
    /// Identifier, unique in a program.
    pub id: FunctionId,
    /// The defining module, also for functions that are not local to it.
    pub module: ModuleHash,
    /// Linkage name.
    pub name: String,
    /// Name of the module's source file, without its folder.
    pub source_file: String,
    /// In the function's block order; a block's position is its [`BlockIndex`].
    pub blocks: Vec<Block>,
    /// In block order, those of [`Callee::Memory`] after all others; a call's position is its [`CallIndex`].
    pub calls: Vec<Call>,
}

impl Cfg {
    /// Hash of what a profile refers to: block count, successor order, terminators, and the blocks and kinds of calls.
    ///
    /// Source lines, names and instruction counts are not hashed, so that editing a comment or constant does not
    /// invalidate the profile.
    pub fn hash(&self) -> CfgHash {
        let mut hasher = Xxh3::new();
        let mut word = |value: u32| hasher.update(&value.to_le_bytes());
        word(self.blocks.len() as u32);
        for block in &self.blocks {
            word(block.terminator as u32 | u32::from(block.is_eh_pad) << 8);
            word(block.successors.len() as u32);
            block.successors.iter().for_each(|s| word(s.0));
        }
        word(self.calls.len() as u32);
        for call in &self.calls {
            word(call.block.0);
            word(match call.callee {
                Callee::Direct(_) => 0,
                Callee::Indirect => 1,
                Callee::InlineAsm => 2,
                Callee::Memory => 3,
            });
        }
        // LLVM reserves the top four bits of a probe descriptor's hash.
        CfgHash(hasher.digest() & (u64::MAX >> 4))
    }

    /// Number of edges, counting every successor slot.
    pub fn edge_count(&self) -> usize {
        self.blocks.iter().map(|b| b.successors.len()).sum()
    }

    /// Position of each block's first successor slot in the list of all slots, in block order.
    pub fn edge_bases(&self) -> Vec<u32> {
        let mut next = 0;
        self.blocks
            .iter()
            .map(|block| {
                let base = next;
                next += block.successors.len() as u32;
                base
            })
            .collect()
    }

    /// The index of a block's probe in `.pseudo_probe`.
    pub fn block_probe(&self, block: BlockIndex) -> u32 {
        block.0 + 1
    }

    /// The block or call that a probe index in `.pseudo_probe` identifies, if this graph has it.
    pub fn probe_target(&self, probe: u32) -> Option<ProbeTarget> {
        let position = probe.checked_sub(1)?;
        let blocks = self.blocks.len() as u32;
        if position < blocks {
            return Some(ProbeTarget::Block(BlockIndex(position)));
        }
        let call = position - blocks;
        ((call as usize) < self.calls.len()).then_some(ProbeTarget::Call(CallIndex(call)))
    }
}

/// The item that a probe identifies. Blocks have the probe indices 1…B and calls B+1…B+C, as in LLVM, whose
/// calls are those before the first [`Callee::Memory`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProbeTarget {
    /// A block was entered.
    Block(BlockIndex),
    /// A call is about to be made.
    Call(CallIndex),
}
