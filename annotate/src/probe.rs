//! Decodes `.pseudo_probe`: the block and call identifiers of emitted code, with their inline stacks.
//!
//! The section is a sequence of trees, one for each emitted function: GUID, probes, then the functions inlined into it.
//! Probe addresses are chained differences that start at the function's symbol, which the tree names by GUID only
//! (LLVM's `MCPseudoProbe.h`). Several symbols may have the same GUID (local functions of the same name). Their trees
//! are in address order, because the linker orders the section like the text. A symbol may have several consecutive
//! trees: inlined code that lost its inline stack gets a tree of its own.

use crate::id::FunctionGuid;
use gimli::{EndianSlice, LittleEndian, Reader};
use rustc_hash::FxHashMap;

/// Name of the section.
pub const SECTION: &str = ".pseudo_probe";

/// Virtual address in the file, before the loader relocates it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub u64);

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A function symbol: where the addresses of a probe tree can start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// First address.
    pub address: Address,
    /// Length in bytes.
    pub size: u64,
    /// Linkage name.
    pub name: String,
    /// Position in [`Binary::files`](crate::binary::Binary::files) of the source file of a local symbol that has one.
    pub file: Option<u32>,
    /// Not visible outside its object file.
    pub local: bool,
}

/// Kind of a probe; LLVM's `PseudoProbeType`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProbeKind {
    /// A block.
    Block,
    /// A call through a pointer.
    IndirectCall,
    /// A call by name.
    DirectCall,
}

/// Position of an instance in [`ProbeForest::instances`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RawInstanceIndex(pub u32);

/// An inline instance whose graph is not known yet: an emitted function, or a function inlined into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawInstance {
    /// The function.
    pub guid: FunctionGuid,
    /// The instance that it was inlined into and the index of the call's probe there; `None` for an emitted function.
    pub parent: Option<(RawInstanceIndex, u32)>,
    /// Position, in the symbols given to [`decode`], of the emitted function that contains this code; `u32::MAX` if
    /// that symbol is missing.
    pub symbol: u32,
}

/// One probe: the instruction at `address` runs exactly when the block or call that the probe identifies does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawProbe {
    /// Address of the instruction that the probe precedes.
    pub address: Address,
    /// The instance that it belongs to.
    pub instance: RawInstanceIndex,
    /// LLVM's probe index: blocks from 1, then calls.
    pub index: u32,
    /// Block, direct call or indirect call.
    pub kind: ProbeKind,
}

/// All probes of a binary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProbeForest {
    /// Inline trees; a parent precedes its children.
    pub instances: Vec<RawInstance>,
    /// Probes in the section's order. Probes of the same instance and address are in order of execution.
    pub probes: Vec<RawProbe>,
    /// Number of emitted functions whose symbol is missing. Their probes have no address and are left out.
    pub without_symbol: usize,
}

impl ProbeForest {
    /// Makes each tree one instance, of the emitted function. At the late anchor, blocks and calls are numbered in the
    /// emitted function; the trees are the inline stacks of debug information.
    pub fn flatten(&mut self) {
        let (mut roots, mut root_of) = (Vec::new(), Vec::with_capacity(self.instances.len()));
        for instance in &self.instances {
            root_of.push(match instance.parent {
                Some((parent, _)) => root_of[parent.0 as usize],
                None => {
                    roots.push(*instance);
                    RawInstanceIndex(roots.len() as u32 - 1)
                }
            });
        }
        for probe in &mut self.probes {
            probe.instance = root_of[probe.instance.0 as usize];
        }
        self.instances = roots;
    }
}

/// The defect for which the section could not be decoded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("section {SECTION}, offset {offset:#x}: {what}")]
pub struct ProbeError {
    /// Offset in the section, in bytes.
    pub offset: usize,
    /// The defect.
    pub what: &'static str,
}

const SENTINEL: u8 = 2;
const HAS_DISCRIMINATOR: u8 = 4;
/// Keeps a corrupt section from exhausting the call stack; compilers inline far less deeply.
const MAX_DEPTH: u32 = 1000;

/// Decodes a section.
///
/// `symbols` are the file's function symbols, sorted by address.
///
/// # Errors
/// Fails if the section is truncated, nests too deeply or has an unknown kind of probe.
pub fn decode(section: &[u8], symbols: &[Symbol]) -> Result<ProbeForest, ProbeError> {
    let mut decoder = Decoder {
        input: EndianSlice::new(section, LittleEndian),
        starts: Starts::new(symbols),
        symbols,
        last: None,
        current: None,
        trees_of_current: Vec::new(),
        forest: ProbeForest::default(),
    };
    while !decoder.input.is_empty() {
        if let Err(what) = decoder.tree(None, 0) {
            return Err(ProbeError {
                offset: section.len() - decoder.input.len(),
                what,
            });
        }
    }
    Ok(decoder.forest)
}

/// Symbols by GUID. Each is returned once, in address order.
struct Starts {
    by_guid: FxHashMap<FunctionGuid, std::vec::IntoIter<u32>>,
}

impl Starts {
    fn new(symbols: &[Symbol]) -> Self {
        let mut lists: FxHashMap<FunctionGuid, Vec<u32>> = FxHashMap::default();
        for (index, symbol) in symbols.iter().enumerate() {
            let list = lists.entry(FunctionGuid::of_name(&symbol.name)).or_default();
            if list
                .last()
                .is_none_or(|&last| symbols[last as usize].address != symbol.address)
            {
                list.push(index as u32);
            }
        }
        Self {
            by_guid: lists.into_iter().map(|(guid, list)| (guid, list.into_iter())).collect(),
        }
    }

    fn next(&mut self, guid: FunctionGuid) -> Option<u32> {
        self.by_guid.get_mut(&guid)?.next()
    }
}

struct Decoder<'a> {
    input: EndianSlice<'a, LittleEndian>,
    starts: Starts,
    symbols: &'a [Symbol],
    /// Address of the previous probe of the current tree; `None` where the tree's symbol is missing.
    last: Option<u64>,
    /// The GUID of the current tree's symbol, and the symbol.
    current: Option<(FunctionGuid, Option<u32>)>,
    /// Functions of the current symbol's trees so far; a symbol has at most one tree for each function.
    trees_of_current: Vec<FunctionGuid>,
    forest: ProbeForest,
}

const TRUNCATED: &str = "the section ends inside a record";

impl Decoder<'_> {
    /// Begins the tree of `function` in the emitted code of the symbol with GUID `symbol`.
    fn start(&mut self, function: FunctionGuid, symbol: FunctionGuid) {
        let same = self.current.is_some_and(|(guid, _)| guid == symbol) && !self.trees_of_current.contains(&function);
        if !same {
            self.current = Some((symbol, self.starts.next(symbol)));
            self.trees_of_current.clear();
        }
        self.trees_of_current.push(function);
        self.last = self.symbol().map(|s| self.symbols[s as usize].address.0);
    }

    fn symbol(&self) -> Option<u32> {
        self.current.and_then(|(_, symbol)| symbol)
    }

    fn tree(&mut self, parent: Option<RawInstanceIndex>, depth: u32) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("inline stacks nest too deeply");
        }
        let call_probe = match parent {
            Some(_) => self.input.read_uleb128().map_err(|_| TRUNCATED)? as u32,
            None => 0,
        };
        let guid = FunctionGuid(self.input.read_u64().map_err(|_| TRUNCATED)?);
        let probe_count = self.input.read_uleb128().map_err(|_| TRUNCATED)?;
        let child_count = self.input.read_uleb128().map_err(|_| TRUNCATED)?;
        let instance = RawInstanceIndex(self.forest.instances.len() as u32);
        self.forest.instances.push(RawInstance {
            guid,
            parent: parent.map(|p| (p, call_probe)),
            symbol: u32::MAX,
        });
        let mut started = parent.is_some();
        for _ in 0..probe_count {
            let index = self.input.read_uleb128().map_err(|_| TRUNCATED)? as u32;
            let flags = self.input.read_u8().map_err(|_| TRUNCATED)?;
            let attributes = flags >> 4 & 7;
            if attributes & SENTINEL != 0 {
                // The emitted symbol differs from the function's own name (a split or specialised copy).
                let split = FunctionGuid(self.input.read_u64().map_err(|_| TRUNCATED)?);
                self.start(guid, split);
                started = true;
            } else {
                if !started {
                    self.start(guid, guid);
                    started = true;
                }
                self.probe(instance, index, flags)?;
            }
            if attributes & HAS_DISCRIMINATOR != 0 {
                self.input.read_uleb128().map_err(|_| TRUNCATED)?;
            }
        }
        if !started {
            // All probes of this tree belong to inlined functions.
            self.start(guid, guid);
        }
        self.forest.instances[instance.0 as usize].symbol = self.symbol().unwrap_or(u32::MAX);
        if parent.is_none() && self.symbol().is_none() {
            self.forest.without_symbol += 1;
        }
        for _ in 0..child_count {
            self.tree(Some(instance), depth + 1)?;
        }
        Ok(())
    }

    fn probe(&mut self, instance: RawInstanceIndex, index: u32, flags: u8) -> Result<(), &'static str> {
        if flags & 0x80 != 0 {
            let delta = self.input.read_sleb128().map_err(|_| TRUNCATED)?;
            self.last = self.last.map(|last| last.wrapping_add_signed(delta));
        } else {
            self.last = Some(self.input.read_u64().map_err(|_| TRUNCATED)?);
        }
        let kind = match flags & 0xf {
            0 => ProbeKind::Block,
            1 => ProbeKind::IndirectCall,
            2 => ProbeKind::DirectCall,
            _ => return Err("unknown kind of probe"),
        };
        if let Some(address) = self.last {
            self.forest.probes.push(RawProbe {
                address: Address(address),
                instance,
                index,
                kind,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symbol(name: &str, address: u64) -> Symbol {
        Symbol {
            address: Address(address),
            size: 64,
            name: name.into(),
            file: None,
            local: false,
        }
    }

    fn record(guid: FunctionGuid, probes: &[(u8, u8, i64)], children: u8) -> Vec<u8> {
        let mut out = guid.0.to_le_bytes().to_vec();
        out.extend([probes.len() as u8, children]);
        for &(index, kind, delta) in probes {
            out.extend([index, kind | 0x80]);
            gimli::leb128::write::signed(&mut out, delta).expect("a vector");
        }
        out
    }

    #[test]
    fn inlined_functions_continue_the_address_chain() {
        let (outer, inner) = (FunctionGuid::of_name("outer"), FunctionGuid::of_name("inner"));
        let mut section = record(outer, &[(1, 0, 0), (4, 2, 12)], 1);
        section.push(4);
        section.extend(record(inner, &[(1, 0, -4)], 0));
        let forest = decode(&section, &[symbol("outer", 0x1000)]).expect("well-formed");
        let at: Vec<_> = forest
            .probes
            .iter()
            .map(|p| (p.address.0, p.instance.0, p.index))
            .collect();
        assert_eq!(at, [(0x1000, 0, 1), (0x100c, 0, 4), (0x1008, 1, 1)]);
        assert_eq!(forest.instances[1].parent, Some((RawInstanceIndex(0), 4)));
        let mut flat = forest.clone();
        flat.flatten();
        assert_eq!((flat.instances.len(), flat.instances[0].guid), (1, outer));
        assert!(flat.probes.iter().all(|probe| probe.instance.0 == 0) && flat.probes.len() == 3);
        assert_eq!(forest.instances[1].symbol, 0);
    }

    #[test]
    fn local_functions_of_one_name_follow_address_order() {
        let guid = FunctionGuid::of_name("init");
        let section: Vec<u8> = [record(guid, &[(1, 0, 0)], 0), record(guid, &[(1, 0, 0)], 0)].concat();
        let forest = decode(&section, &[symbol("init", 0x10), symbol("init", 0x80)]).expect("well-formed");
        assert_eq!(
            forest.probes.iter().map(|p| p.address.0).collect::<Vec<_>>(),
            [0x10, 0x80]
        );
    }

    #[test]
    fn code_that_lost_its_inline_stack_shares_the_symbol() {
        let (outer, lost) = (FunctionGuid::of_name("outer"), FunctionGuid::of_name("lost"));
        let mut orphan = lost.0.to_le_bytes().to_vec();
        orphan.extend([2, 0, 0, 2 << 4]);
        orphan.extend(outer.0.to_le_bytes());
        orphan.extend([1, 0x80, 8]);
        let section: Vec<u8> = [orphan, record(outer, &[(1, 0, 0)], 0)].concat();
        let forest = decode(&section, &[symbol("outer", 0x1000)]).expect("well-formed");
        assert_eq!(forest.without_symbol, 0);
        assert_eq!(
            forest.probes.iter().map(|p| p.address.0).collect::<Vec<_>>(),
            [0x1008, 0x1000]
        );
    }

    #[test]
    fn a_missing_symbol_loses_its_function_only() {
        let section: Vec<u8> = [
            record(FunctionGuid(1), &[(1, 0, 3)], 0),
            record(FunctionGuid::of_name("f"), &[(1, 0, 0)], 0),
        ]
        .concat();
        let forest = decode(&section, &[symbol("f", 0x40)]).expect("well-formed");
        assert_eq!((forest.without_symbol, forest.probes.len()), (1, 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes, &[symbol("f", 0x40)]);
        }
    }
}
