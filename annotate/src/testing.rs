//! Small graphs for tests of this crate and of those that depend on it.

use crate::cfg::{Block, Cfg, Terminator};
use crate::id::{BlockIndex, FunctionGuid, FunctionId, ModuleHash};

/// A function `f` whose blocks have these successors. Terminators are returns, branches, or switches from three on.
pub fn cfg(successors: &[&[u32]]) -> Cfg {
    let block = |to: &&[u32]| Block {
        successors: to.iter().map(|&b| BlockIndex(b)).collect(),
        terminator: match to.len() {
            0 => Terminator::Return,
            1 | 2 => Terminator::Branch,
            _ => Terminator::Switch,
        },
        is_eh_pad: false,
        instructions: 1,
        line: 0,
    };
    Cfg {
        id: FunctionId {
            guid: FunctionGuid(1),
            module: ModuleHash(0),
        },
        module: ModuleHash(0),
        name: "f".into(),
        source_file: "f.c".into(),
        blocks: successors.iter().map(block).collect(),
        calls: Vec::new(),
    }
}
