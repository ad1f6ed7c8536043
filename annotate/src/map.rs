//! The address map: machine address → blocks and calls, with inline stack.
//!
//! Joins the probes that emitted code carries with the graphs of the manifest. A probe names its function by GUID; where
//! several graphs have that GUID (local functions of one name, or one function compiled in different ways) the right one
//! is told by what the probes fit, by the symbol's source file, and by the module of the code around it.

use crate::binary::{Binary, BinaryError};
use crate::cfg::{Cfg, ProbeTarget};
use crate::id::{CallIndex, CfgHash, FunctionGuid, ModuleHash};
use crate::manifest::{self, Anchor, Entry};
use crate::probe::{self, Address, ProbeForest, ProbeKind, RawNodeIndex, RawProbe, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::path::Path;

/// Position in [`AddressMap::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FunctionIndex(pub u32);

/// Position in [`AddressMap::nodes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeIndex(pub u32);

impl NodeIndex {
    /// As an index into a slice of nodes.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function of the manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its graph.
    pub cfg: Cfg,
    /// The graph's hash.
    pub hash: CfgHash,
}

/// One copy of a function in the emitted code: its own body, or a body inlined somewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Whose copy.
    pub function: FunctionIndex,
    /// Into what it was inlined, and at which call, where the optimiser kept track of that.
    pub parent: Option<(NodeIndex, Option<CallIndex>)>,
    /// Position of the emitted function's symbol in the binary's symbols.
    pub symbol: u32,
}

/// A probe whose meaning is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Address of the instruction that runs exactly when `target` does.
    pub address: Address,
    /// The copy that it belongs to.
    pub node: NodeIndex,
    /// Block or call.
    pub target: ProbeTarget,
}

/// What could not be used, and how often.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// Malformed manifest entries.
    pub manifest_entries: usize,
    /// Emitted functions without a symbol.
    pub without_symbol: usize,
    /// Copies whose function is not in the manifest (not annotated by pleach).
    pub without_graph: usize,
    /// Copies that fit several graphs.
    pub ambiguous: usize,
}

/// Everything that is known about a binary's code.
#[derive(Clone, Debug)]
pub struct AddressMap {
    /// The binary.
    pub binary: Binary,
    /// Where the graphs were taken.
    pub anchor: Anchor,
    /// Graphs, in the manifest's order.
    pub functions: Vec<Function>,
    /// Copies; a parent precedes its children.
    pub nodes: Vec<Node>,
    /// Sorted by address; of one node and one address, in order of execution.
    pub probes: Vec<Probe>,
    /// What could not be used.
    pub losses: Losses,
}

/// Why there is no address map.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The file cannot be used at all.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The file carries no manifest.
    #[error("{path}: not annotated: compile it with $(pleach flags annotate)")]
    NotAnnotated {
        /// The file.
        path: String,
    },
    /// Probes cannot be located without symbols.
    #[error(
        "{path}: no symbols, so its probes cannot be located: keep the unstripped binary, or install its debug file \
         by build-id (/usr/lib/debug/.build-id)"
    )]
    Stripped {
        /// The file.
        path: String,
    },
    /// The manifest mixes anchors.
    #[error("{path}: annotated at different anchors: compile all of it with the same --anchor")]
    MixedAnchors {
        /// The file.
        path: String,
    },
    /// A section is malformed.
    #[error("{path}: {source}: the file is damaged, or not made by this compiler; rebuild it")]
    Probes {
        /// The file.
        path: String,
        /// What is wrong.
        source: probe::ProbeError,
    },
}

impl AddressMap {
    /// Reads a binary's map.
    pub fn read(path: &Path) -> Result<Self, MapError> {
        Self::of(Binary::open(path)?)
    }

    /// Builds the map of an opened binary.
    pub fn of(binary: Binary) -> Result<Self, MapError> {
        let path = binary.path.display().to_string();
        if !binary.is_annotated() {
            return Err(MapError::NotAnnotated { path });
        }
        if binary.symbols.is_empty() {
            return Err(MapError::Stripped { path });
        }
        let (entries, errors) = manifest::decode(&binary.manifest);
        let anchor = entries.first().map(|e| e.anchor).unwrap_or_default();
        if entries.iter().any(|e| e.anchor != anchor) {
            return Err(MapError::MixedAnchors { path });
        }
        let functions = distinct_functions(entries);
        let forest =
            probe::decode(&binary.probes, &binary.symbols).map_err(|source| MapError::Probes { path, source })?;
        let mut losses = Losses {
            manifest_entries: errors.len(),
            without_symbol: forest.without_symbol,
            ..Losses::default()
        };
        let (nodes, probes) = Resolver::new(&binary, &functions, &forest).run(&mut losses);
        Ok(Self {
            binary,
            anchor,
            functions,
            nodes,
            probes,
            losses,
        })
    }

    /// The function that a node is a copy of.
    pub fn function_of(&self, node: NodeIndex) -> &Function {
        &self.functions[self.nodes[node.index()].function.0 as usize]
    }

    /// The symbol and function of a node that is an emitted function's own body. Code that lost its inline stack is not:
    /// it has no parent either, but lies in some other function's symbol.
    pub fn body(&self, node: &Node) -> Option<(&Symbol, &Function)> {
        let symbol = self.binary.symbols.get(node.symbol as usize)?;
        let function = &self.functions[node.function.0 as usize];
        // Specialised and promoted copies have the function's name and a suffix.
        let suffix = symbol.name.strip_prefix(function.cfg.name.as_str())?;
        let own = node.parent.is_none() && (suffix.is_empty() || suffix.starts_with('.'));
        own.then_some((symbol, function))
    }

    /// The probes at addresses from `start` to `end`, both included.
    pub fn probes_in(&self, start: Address, end: Address) -> &[Probe] {
        let first = self.probes.partition_point(|p| p.address < start);
        let len = self.probes[first..].partition_point(|p| p.address <= end);
        &self.probes[first..first + len]
    }
}

fn distinct_functions(entries: Vec<Entry>) -> Vec<Function> {
    let mut seen = FxHashSet::default();
    entries
        .into_iter()
        .filter(|e| seen.insert((e.cfg.id, e.hash)))
        .map(|e| Function {
            cfg: e.cfg,
            hash: e.hash,
        })
        .collect()
}

/// Finds each copy's graph.
struct Resolver<'a> {
    binary: &'a Binary,
    functions: &'a [Function],
    forest: &'a ProbeForest,
    by_guid: FxHashMap<FunctionGuid, Vec<FunctionIndex>>,
    /// Probes of each raw node: they are contiguous.
    ranges: Vec<Range<usize>>,
}

impl<'a> Resolver<'a> {
    fn new(binary: &'a Binary, functions: &'a [Function], forest: &'a ProbeForest) -> Self {
        let mut by_guid: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (index, function) in functions.iter().enumerate() {
            by_guid
                .entry(function.cfg.id.guid)
                .or_default()
                .push(FunctionIndex(index as u32));
        }
        let mut ranges = vec![0..0; forest.nodes.len()];
        for (position, probe) in forest.probes.iter().enumerate() {
            let range = &mut ranges[probe.node.0 as usize];
            if range.start == range.end {
                *range = position..position;
            }
            range.end = position + 1;
        }
        Self {
            binary,
            functions,
            forest,
            by_guid,
            ranges,
        }
    }

    fn run(&self, losses: &mut Losses) -> (Vec<Node>, Vec<Probe>) {
        let mut nodes: Vec<Node> = Vec::new();
        let mut probes = Vec::new();
        let mut mapped: Vec<Option<NodeIndex>> = vec![None; self.forest.nodes.len()];
        let mut bodies: FxHashMap<(FunctionIndex, &str, Option<&str>), NodeIndex> = FxHashMap::default();
        let mut modules: Vec<Option<ModuleHash>> = vec![None; self.forest.nodes.len()];
        for (position, raw) in self.forest.nodes.iter().enumerate() {
            let raw_index = RawNodeIndex(position as u32);
            let around = raw.parent.and_then(|(parent, _)| modules[parent.0 as usize]);
            let function = match self.resolve(raw_index, around) {
                Resolved::Function(function) => function,
                Resolved::None => {
                    losses.without_graph += 1;
                    continue;
                }
                Resolved::Ambiguous => {
                    losses.ambiguous += 1;
                    continue;
                }
            };
            let cfg = &self.functions[function.0 as usize].cfg;
            modules[position] = Some(cfg.module);
            let parent = raw.parent.and_then(|(parent, call)| {
                let parent = mapped[parent.0 as usize]?;
                let outer = &self.functions[nodes[parent.index()].function.0 as usize].cfg;
                let call = match outer.probe_target(call) {
                    Some(ProbeTarget::Call(call)) => Some(call),
                    _ => None,
                };
                Some((parent, call))
            });
            let new = Node {
                function,
                parent,
                symbol: raw.symbol,
            };
            let node = if raw.parent.is_none() {
                // A body and the cold part split off from it are one copy.
                let symbol = self.symbol_name(raw.symbol).unwrap_or_default();
                let name = symbol.strip_suffix(".cold").unwrap_or(symbol);
                let key = (function, name, self.file_of(raw.symbol));
                let body = *bodies.entry(key).or_insert_with(|| push(&mut nodes, new));
                if name.len() == symbol.len() {
                    nodes[body.index()].symbol = raw.symbol;
                }
                body
            } else {
                push(&mut nodes, new)
            };
            mapped[position] = Some(node);
            probes.extend(self.probes_of(raw_index).iter().filter_map(|p| {
                Some(Probe {
                    address: p.address,
                    node,
                    target: cfg.probe_target(p.index)?,
                })
            }));
        }
        // Stable: the section's order is the order of execution where addresses are equal.
        probes.sort_by_key(|p| p.address);
        (nodes, probes)
    }

    fn symbol_name(&self, symbol: u32) -> Option<&str> {
        self.binary.symbols.get(symbol as usize).map(|s| s.name.as_str())
    }

    fn file_of(&self, symbol: u32) -> Option<&str> {
        self.binary.symbols.get(symbol as usize)?.file.as_deref()
    }

    fn probes_of(&self, node: RawNodeIndex) -> &[RawProbe] {
        &self.forest.probes[self.ranges[node.0 as usize].clone()]
    }

    /// Whether every probe of a copy means something in a graph.
    fn fits(&self, node: RawNodeIndex, function: FunctionIndex) -> bool {
        let cfg = &self.functions[function.0 as usize].cfg;
        self.probes_of(node).iter().all(|p| {
            matches!(
                (cfg.probe_target(p.index), p.kind),
                (Some(ProbeTarget::Block(_)), ProbeKind::Block)
                    | (
                        Some(ProbeTarget::Call(_)),
                        ProbeKind::DirectCall | ProbeKind::IndirectCall
                    )
            )
        })
    }

    fn resolve(&self, node: RawNodeIndex, around: Option<ModuleHash>) -> Resolved {
        let raw = &self.forest.nodes[node.0 as usize];
        let Some(named) = self.by_guid.get(&raw.guid) else {
            return Resolved::None;
        };
        let mut candidates: Vec<_> = named.iter().copied().filter(|&f| self.fits(node, f)).collect();
        if candidates.is_empty() {
            return Resolved::None;
        }
        let cfg = |f: FunctionIndex| &self.functions[f.0 as usize].cfg;
        let symbol = self.binary.symbols.get(raw.symbol as usize);
        if raw.parent.is_none() && symbol.is_some_and(|s| s.local) {
            let file = symbol.and_then(|s| s.file.as_deref());
            narrow(&mut candidates, |f| {
                Path::new(&cfg(f).source_file).file_name().and_then(|n| n.to_str()) == file
            });
        } else if raw.parent.is_none() {
            narrow(&mut candidates, |f| cfg(f).id.module == ModuleHash(0));
        }
        if let Some(around) = around {
            narrow(&mut candidates, |f| cfg(f).module == around);
        }
        match candidates[..] {
            [one] => Resolved::Function(one),
            _ => Resolved::Ambiguous,
        }
    }
}

enum Resolved {
    Function(FunctionIndex),
    None,
    Ambiguous,
}

fn push(nodes: &mut Vec<Node>, node: Node) -> NodeIndex {
    nodes.push(node);
    NodeIndex(nodes.len() as u32 - 1)
}

/// Keeps the candidates that satisfy a preference, if any does.
fn narrow(candidates: &mut Vec<FunctionIndex>, preferred: impl Fn(FunctionIndex) -> bool) {
    if candidates.len() > 1 && candidates.iter().any(|&f| preferred(f)) {
        candidates.retain(|&f| preferred(f));
    }
}
