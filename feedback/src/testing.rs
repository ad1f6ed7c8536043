//! Graphs for unit tests.

use pleach_annotate::cfg::{Block, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionGuid, FunctionId, ModuleHash};

/// A function `f` whose blocks lead to these: branches, and returns where there are none.
pub fn cfg(successors: &[&[u32]]) -> Cfg {
    let block = |to: &&[u32]| Block {
        successors: to.iter().map(|&b| BlockIndex(b)).collect(),
        terminator: if to.is_empty() {
            Terminator::Return
        } else {
            Terminator::Branch
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
