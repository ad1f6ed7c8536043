//! The address map: machine address → blocks and calls, with inline stack.
//!
//! Joins the probes of emitted code with the graphs of the manifest. A probe names its function by GUID. Several graphs
//! may have the same GUID (local functions of the same name, or one function compiled in different ways). The resolver
//! then chooses by three criteria: the probes must fit the graph, the symbol's source file should match, and so should
//! the module: that of the instance that the code was inlined into, or of the object file that the symbol is of. Where
//! `strip -g` took the names of source files away, the order of the emitted functions tells the module.

use crate::binary::{Binary, BinaryError};
use crate::cfg::{Cfg, ProbeTarget};
use crate::id::{CallIndex, CfgHash, FunctionGuid, ModuleHash};
use crate::link_order::{Emitted, modules_by_order};
use crate::manifest::{self, Anchor, Entry};
use crate::probe::{self, Address, ProbeForest, ProbeKind, RawInstance, RawInstanceIndex, RawProbe, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::path::Path;

/// Position in [`AddressMap::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FunctionIndex(pub u32);

/// Position in [`AddressMap::inline_instances`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InlineInstanceIndex(pub u32);

impl InlineInstanceIndex {
    /// As an index into a slice of inline instances.
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

/// A function's body in the emitted code: out of line, or inlined at one call site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlineInstance {
    /// The function.
    pub function: FunctionIndex,
    /// The instance that it was inlined into, and the call there if the optimiser kept track of it. `None` for an
    /// emitted function, and where the instance around it is unknown.
    pub parent: Option<(InlineInstanceIndex, Option<CallIndex>)>,
    /// Position of the emitted function's symbol in the binary's symbols.
    pub symbol: u32,
}

/// A probe whose graph is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Address of the instruction that runs exactly when `target` does.
    pub address: Address,
    /// The instance that it belongs to.
    pub instance: InlineInstanceIndex,
    /// Block or call.
    pub target: ProbeTarget,
}

/// What the address map had to leave out, by reason.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// Malformed manifest entries.
    pub manifest_entries: usize,
    /// Emitted functions without a symbol.
    pub without_symbol: usize,
    /// Instances whose function is not in the manifest (not annotated by pleach).
    pub without_graph: usize,
    /// Functions with instances that fit several graphs.
    pub ambiguous: FxHashSet<FunctionGuid>,
}

/// A binary's code with the blocks and calls that its addresses belong to.
#[derive(Clone, Debug)]
pub struct AddressMap {
    /// The binary.
    pub binary: Binary,
    /// Where the graphs were taken.
    pub anchor: Anchor,
    /// Graphs, in the manifest's order.
    pub functions: Vec<Function>,
    /// Instances; a parent precedes its children.
    pub inline_instances: Vec<InlineInstance>,
    /// Sorted by address. Probes of the same instance and address are in order of execution.
    pub probes: Vec<Probe>,
    /// What was left out.
    pub losses: Losses,
    /// Names of the functions of which code was left out.
    pub unplaced: FxHashSet<FunctionGuid>,
}

/// Why an address map could not be built.
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
        "{path}: no symbols, so its probes cannot be located: link it without -s, keep the unstripped binary, or install \
         its debug file by build-id (/usr/lib/debug/.build-id)"
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
        /// The defect of the section.
        source: probe::ProbeError,
    },
}

impl AddressMap {
    /// Opens a binary and builds its map.
    pub fn read(path: &Path) -> Result<Self, MapError> {
        Self::from_binary(Binary::open(path)?)
    }

    /// Builds the map of an opened binary.
    ///
    /// # Errors
    /// Fails if the binary is not annotated, has no symbols, mixes anchors, or has a malformed probe section.
    pub fn from_binary(binary: Binary) -> Result<Self, MapError> {
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
        let modules = modules_by_file(&entries);
        let functions = distinct_functions(entries);
        let mut forest =
            probe::decode(&binary.probes, &binary.symbols).map_err(|source| MapError::Probes { path, source })?;
        if anchor == Anchor::Late {
            forest.flatten();
        }
        let mut losses = Losses {
            manifest_entries: errors.len(),
            without_symbol: forest.without_symbol,
            ..Losses::default()
        };
        // Probes whose symbol is missing have no address.
        let missing = forest.instances.iter().filter(|instance| instance.symbol == u32::MAX);
        let mut unplaced: FxHashSet<FunctionGuid> = missing.map(|instance| instance.guid).collect();
        let resolver = Resolver::new(&binary, &functions, &forest, &modules);
        let (inline_instances, probes) = resolver.run(&mut losses, &mut unplaced);
        Ok(Self {
            binary,
            anchor,
            functions,
            inline_instances,
            probes,
            losses,
            unplaced,
        })
    }

    /// The function of an instance.
    pub fn function_of(&self, instance: InlineInstanceIndex) -> &Function {
        &self.functions[self.inline_instances[instance.index()].function.0 as usize]
    }

    /// The symbol and function of an instance that is an emitted function's own body. Code that lost its inline stack
    /// has no parent either, but it lies in another function's symbol and is no such body.
    pub fn body(&self, instance: &InlineInstance) -> Option<(&Symbol, &Function)> {
        let symbol = self.binary.symbols.get(instance.symbol as usize)?;
        let function = &self.functions[instance.function.0 as usize];
        // Specialised and promoted copies have the function's name and a suffix.
        let suffix = symbol.name.strip_prefix(function.cfg.name.as_str())?;
        let own = instance.parent.is_none() && (suffix.is_empty() || suffix.starts_with('.'));
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

fn base_name(path: &str) -> Option<&str> {
    Path::new(path).file_name().and_then(|name| name.to_str())
}

/// The modules of each source file's base name, in the order in which they were linked.
fn modules_by_file(entries: &[Entry]) -> FxHashMap<String, Vec<ModuleHash>> {
    let mut modules: FxHashMap<String, Vec<ModuleHash>> = FxHashMap::default();
    for cfg in entries.iter().map(|entry| &entry.cfg) {
        let of_file = modules.entry(base_name(&cfg.source_file).unwrap_or_default().to_owned());
        let of_file = of_file.or_default();
        if !of_file.contains(&cfg.module) {
            of_file.push(cfg.module);
        }
    }
    modules
}

/// Finds the graph of each instance.
struct Resolver<'a> {
    binary: &'a Binary,
    functions: &'a [Function],
    forest: &'a ProbeForest,
    by_guid: FxHashMap<FunctionGuid, Vec<FunctionIndex>>,
    /// Positions of each raw instance's probes, which are contiguous.
    ranges: Vec<Range<usize>>,
    /// By position in [`Binary::files`]: the module of the object file, if it is known.
    modules: Vec<Option<ModuleHash>>,
    /// The modules of emitted functions that only their order tells.
    by_order: FxHashMap<RawInstanceIndex, ModuleHash>,
}

impl<'a> Resolver<'a> {
    fn new(
        binary: &'a Binary,
        functions: &'a [Function],
        forest: &'a ProbeForest,
        modules: &FxHashMap<String, Vec<ModuleHash>>,
    ) -> Self {
        let mut by_guid: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (index, function) in functions.iter().enumerate() {
            by_guid
                .entry(function.cfg.id.guid)
                .or_default()
                .push(FunctionIndex(index as u32));
        }
        let mut ranges = vec![0..0; forest.instances.len()];
        for (position, probe) in forest.probes.iter().enumerate() {
            let range = &mut ranges[probe.instance.0 as usize];
            if range.start == range.end {
                *range = position..position;
            }
            range.end = position + 1;
        }
        let mut resolver = Self {
            binary,
            functions,
            forest,
            by_guid,
            ranges,
            modules: Vec::new(),
            by_order: FxHashMap::default(),
        };
        resolver.modules = resolver.modules_of_objects(modules);
        resolver.by_order = resolver.modules_by_order();
        resolver
    }

    /// The modules of object files. A source file that was compiled several times, such as one that serves as a
    /// template, has several object files and modules of one name. Both are in the order in which they were linked. That
    /// tells nothing if not all of the object files are annotated, so there must be as many modules as object files, and
    /// no function that has one graph only may contradict.
    fn modules_of_objects(&self, modules: &FxHashMap<String, Vec<ModuleHash>>) -> Vec<Option<ModuleHash>> {
        let files = &self.binary.files;
        let mut objects: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (position, name) in files.iter().enumerate() {
            objects.entry(name).or_default().push(position);
        }
        let mut known = vec![None; files.len()];
        for (name, objects) in &objects {
            let modules = modules.get(*name).filter(|modules| modules.len() == objects.len());
            for (&object, &module) in objects.iter().zip(modules.into_iter().flatten()) {
                known[object] = Some(module);
            }
        }
        let mut contradicted: FxHashSet<&str> = FxHashSet::default();
        for (position, raw) in self.forest.instances.iter().enumerate() {
            let Some(file) = self.file_of(raw.symbol).filter(|_| raw.parent.is_none()) else {
                continue;
            };
            let name = files[file as usize].as_str();
            if objects[name].len() > 1
                && let [one] = self.candidates(RawInstanceIndex(position as u32))[..]
                && base_name(&self.cfg(one).source_file) == Some(name)
                && known[file as usize].is_some_and(|module| module != self.cfg(one).module)
            {
                contradicted.insert(name);
            }
        }
        for object in contradicted.iter().flat_map(|name| &objects[name]) {
            known[*object] = None;
        }
        known
    }

    fn run(&self, losses: &mut Losses, unplaced: &mut FxHashSet<FunctionGuid>) -> (Vec<InlineInstance>, Vec<Probe>) {
        let mut inline_instances: Vec<InlineInstance> = Vec::new();
        let mut probes = Vec::new();
        let mut mapped: Vec<Option<InlineInstanceIndex>> = vec![None; self.forest.instances.len()];
        let mut bodies: FxHashMap<(FunctionIndex, &str, Option<u32>), InlineInstanceIndex> = FxHashMap::default();
        let mut modules: Vec<Option<ModuleHash>> = vec![None; self.forest.instances.len()];
        for (position, raw) in self.forest.instances.iter().enumerate() {
            let raw_index = RawInstanceIndex(position as u32);
            let around = raw.parent.and_then(|(parent, _)| modules[parent.0 as usize]);
            let function = match self.resolve(raw_index, around) {
                Resolved::Function(function) => function,
                Resolved::None => {
                    losses.without_graph += 1;
                    unplaced.insert(raw.guid);
                    continue;
                }
                Resolved::Ambiguous => {
                    losses.ambiguous.insert(raw.guid);
                    unplaced.insert(raw.guid);
                    continue;
                }
            };
            let cfg = &self.functions[function.0 as usize].cfg;
            modules[position] = Some(cfg.module);
            let parent = raw.parent.and_then(|(parent, call)| {
                let parent = mapped[parent.0 as usize]?;
                let outer = &self.functions[inline_instances[parent.index()].function.0 as usize].cfg;
                let call = match outer.probe_target(call) {
                    Some(ProbeTarget::Call(call)) => Some(call),
                    _ => None,
                };
                Some((parent, call))
            });
            let new = InlineInstance {
                function,
                parent,
                symbol: raw.symbol,
            };
            let instance = if raw.parent.is_none() {
                // A body and the cold part that was split off from it are one instance.
                let symbol = self.symbol_name(raw.symbol).unwrap_or_default();
                let name = symbol.strip_suffix(".cold").unwrap_or(symbol);
                let key = (function, name, self.file_of(raw.symbol));
                let body = *bodies.entry(key).or_insert_with(|| push(&mut inline_instances, new));
                if name.len() == symbol.len() {
                    inline_instances[body.index()].symbol = raw.symbol;
                }
                body
            } else {
                push(&mut inline_instances, new)
            };
            mapped[position] = Some(instance);
            probes.extend(self.probes_of(raw_index).iter().filter_map(|p| {
                Some(Probe {
                    address: p.address,
                    instance,
                    target: cfg.probe_target(p.index)?,
                })
            }));
        }
        // Stable, because probes with equal addresses are in order of execution.
        probes.sort_by_key(|p| p.address);
        (inline_instances, probes)
    }

    fn symbol_name(&self, symbol: u32) -> Option<&str> {
        self.binary.symbols.get(symbol as usize).map(|s| s.name.as_str())
    }

    fn file_of(&self, symbol: u32) -> Option<u32> {
        self.binary.symbols.get(symbol as usize)?.file
    }

    fn cfg(&self, function: FunctionIndex) -> &Cfg {
        &self.functions[function.0 as usize].cfg
    }

    fn probes_of(&self, instance: RawInstanceIndex) -> &[RawProbe] {
        &self.forest.probes[self.ranges[instance.0 as usize].clone()]
    }

    /// Whether a graph has the blocks and calls of all probes of an instance.
    fn fits(&self, instance: RawInstanceIndex, function: FunctionIndex) -> bool {
        let cfg = self.cfg(function);
        self.probes_of(instance).iter().all(|p| {
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

    /// The functions of an instance's GUID whose graphs have its probes.
    fn candidates(&self, instance: RawInstanceIndex) -> Vec<FunctionIndex> {
        let named = self.by_guid.get(&self.forest.instances[instance.0 as usize].guid);
        let named = named.into_iter().flatten().copied();
        named.filter(|&f| self.fits(instance, f)).collect()
    }

    fn resolve(&self, instance: RawInstanceIndex, around: Option<ModuleHash>) -> Resolved {
        match self.preferred(instance, around)[..] {
            [] => Resolved::None,
            [one] => Resolved::Function(one),
            _ => Resolved::Ambiguous,
        }
    }

    /// The functions that an instance may be of, after all criteria.
    fn preferred(&self, instance: RawInstanceIndex, around: Option<ModuleHash>) -> Vec<FunctionIndex> {
        let raw = &self.forest.instances[instance.0 as usize];
        let mut candidates = self.candidates(instance);
        let symbol = self.binary.symbols.get(raw.symbol as usize);
        if raw.parent.is_none() && symbol.is_some_and(|s| s.local) {
            let file = self.file_of(raw.symbol);
            let name = file.and_then(|file| self.binary.files.get(file as usize));
            narrow(&mut candidates, |f| {
                base_name(&self.cfg(f).source_file) == name.map(String::as_str)
            });
            if let Some(module) = file.and_then(|file| *self.modules.get(file as usize)?) {
                narrow(&mut candidates, |f| self.cfg(f).module == module);
            }
        } else if raw.parent.is_none() {
            narrow(&mut candidates, |f| self.cfg(f).id.module == ModuleHash(0));
        }
        if let Some(&module) = around.as_ref().or(self.by_order.get(&instance)) {
            narrow(&mut candidates, |f| self.cfg(f).module == module);
        }
        candidates
    }

    /// The modules of emitted functions that fit several graphs, if their order tells.
    fn modules_by_order(&self) -> FxHashMap<RawInstanceIndex, ModuleHash> {
        let mut ranks: FxHashMap<ModuleHash, u32> = FxHashMap::default();
        let mut modules = Vec::new();
        for function in self.functions {
            ranks.entry(function.cfg.module).or_insert_with(|| {
                modules.push(function.cfg.module);
                modules.len() as u32 - 1
            });
        }
        let instances = self.forest.instances.iter().zip((0..).map(RawInstanceIndex));
        let bodies = instances.filter(|(raw, _)| raw.parent.is_none() && self.is_body(raw));
        let (bodies, emitted): (Vec<_>, Vec<_>) = bodies
            .filter_map(|(raw, instance)| {
                let functions = self.preferred(instance, None);
                let mut modules: Vec<u32> = functions.iter().map(|&f| ranks[&self.cfg(f).module]).collect();
                modules.sort_unstable();
                modules.dedup();
                let name = raw.guid;
                (!modules.is_empty()).then_some((instance, Emitted { name, modules }))
            })
            .unzip();
        let found = modules_by_order(&emitted).into_iter();
        let found = bodies.into_iter().zip(found);
        found
            .filter_map(|(body, rank)| Some((body, modules[rank? as usize])))
            .collect()
    }

    /// Whether a tree of probes is of the code that a function's own symbol names.
    fn is_body(&self, raw: &RawInstance) -> bool {
        self.symbol_name(raw.symbol)
            .is_some_and(|name| FunctionGuid::of_name(name) == raw.guid)
    }
}

enum Resolved {
    Function(FunctionIndex),
    None,
    Ambiguous,
}

fn push(inline_instances: &mut Vec<InlineInstance>, instance: InlineInstance) -> InlineInstanceIndex {
    inline_instances.push(instance);
    InlineInstanceIndex(inline_instances.len() as u32 - 1)
}

/// Keeps only the candidates that satisfy a preference, if there are any.
fn narrow(candidates: &mut Vec<FunctionIndex>, preferred: impl Fn(FunctionIndex) -> bool) {
    if candidates.len() > 1 && candidates.iter().any(|&f| preferred(f)) {
        candidates.retain(|&f| preferred(f));
    }
}
