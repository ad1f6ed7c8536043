//! Small graphs and maps for tests of this crate and of those that depend on it.

use crate::binary::Binary;
use crate::cfg::{Block, Cfg, Terminator};
use crate::id::{BlockIndex, FunctionGuid, FunctionId, ModuleHash};
use crate::manifest::Anchor;
use crate::map::{AddressMap, Losses};
use rustc_hash::FxHashSet;
use std::path::PathBuf;

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

/// The map of a binary without code.
pub fn map() -> AddressMap {
    AddressMap {
        binary: Binary {
            path: PathBuf::new(),
            build_id: None,
            symbols: Vec::new(),
            files: Vec::new(),
            code: Vec::new(),
            manifest: Vec::new(),
            probes: Vec::new(),
            probe_descriptors: Vec::new(),
            block_addresses: Vec::new(),
            architecture: crate::binary::Architecture::X86_64,
            is_program: true,
            debug_file: None,
        },
        anchor: Anchor::Early,
        functions: Vec::new(),
        inline_instances: Vec::new(),
        probes: Vec::new(),
        losses: Losses::default(),
        unplaced: FxHashSet::default(),
    }
}
