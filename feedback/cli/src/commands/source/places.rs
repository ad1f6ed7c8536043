//! Graphs of functions, from manifests, and their source files, from debug information.

use super::block_places::{BlockPlaces, add_block_places};
use super::code::mark_uncertain_lines_unknown;
use crate::commands::output::plural;
use anyhow::{Context, Result, bail};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::AddressMap;
use pleach_annotate::sources::{Locations, Sources};
use pleach_profile::{FunctionProfile, Profile};
use pleach_report::lines::SourceFiles;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A binary.
struct ReadBinary {
    path: PathBuf,
    map: AddressMap,
}

impl ReadBinary {
    /// The files with its debug information: its own and a separate one.
    fn files(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.path)
            .chain(&self.map.binary.debug_file)
            .map(PathBuf::as_path)
    }
}

/// Graphs and source files of annotated binaries.
pub struct Places {
    binaries: Vec<ReadBinary>,
    graphs: HashMap<(FunctionId, CfgHash), Cfg>,
    sources: Vec<Sources>,
    /// Source files of emitted functions of which `sources` knows nothing, since there are lines only (`-g1`).
    files: HashMap<(FunctionId, CfgHash), PathBuf>,
    /// Read when lines are wanted.
    blocks: OnceCell<BlockPlaces>,
}

impl Places {
    /// Reads binaries.
    pub fn read(binaries: &[PathBuf]) -> Result<Self> {
        let mut places = Self {
            binaries: Vec::new(),
            graphs: HashMap::new(),
            sources: Vec::new(),
            files: HashMap::new(),
            blocks: OnceCell::new(),
        };
        for path in binaries {
            let map = AddressMap::read(path)?;
            let functions = map.functions.iter();
            places
                .graphs
                .extend(functions.map(|f| ((f.cfg.id, f.hash), f.cfg.clone())));
            let path = path.clone();
            let binary = ReadBinary { path, map };
            for file in binary.files() {
                places
                    .sources
                    .push(Sources::read(file).with_context(|| cannot_read(file))?);
            }
            places.binaries.push(binary);
        }
        places.find_files_by_lines()?;
        Ok(places)
    }

    fn find_files_by_lines(&mut self) -> Result<()> {
        for binary in &self.binaries {
            let is_unknown = |cfg: &Cfg| {
                !self
                    .sources
                    .iter()
                    .any(|s| s.file_of(&cfg.name, &cfg.source_file).is_some())
            };
            let map = &binary.map;
            let bodies = map.inline_instances.iter().filter_map(|instance| map.body(instance));
            let bodies: Vec<_> = bodies.filter(|(_, function)| is_unknown(&function.cfg)).collect();
            if bodies.is_empty() {
                continue;
            }
            for file in binary.files() {
                let locations = Locations::read(file).with_context(|| cannot_read(file))?;
                for (symbol, function) in &bodies {
                    if let Some(path) = locations.file_at(symbol.address) {
                        let key = (function.cfg.id, function.hash);
                        self.files.entry(key).or_insert_with(|| path.to_owned());
                    }
                }
            }
        }
        Ok(())
    }

    /// The address maps of the binaries.
    pub fn maps(&self) -> impl Iterator<Item = &AddressMap> {
        self.binaries.iter().map(|binary| &binary.map)
    }

    /// The graph of a function.
    pub fn graph(&self, id: FunctionId, hash: CfgHash) -> Option<&Cfg> {
        self.graphs.get(&(id, hash))
    }

    /// The source file of a function.
    pub fn file_of(&self, cfg: &Cfg) -> Option<PathBuf> {
        let mut files = self.sources.iter();
        let known = files.find_map(|sources| sources.file_of(&cfg.name, &cfg.source_file));
        let by_lines = || self.files.get(&(cfg.id, cfg.hash())).map(PathBuf::as_path);
        known.or_else(by_lines).map(Path::to_owned)
    }

    fn block_places(&self) -> Result<BlockPlaces> {
        let mut places = BlockPlaces::new();
        for binary in &self.binaries {
            for file in binary.files() {
                let locations = Locations::read(file).with_context(|| cannot_read(file))?;
                add_block_places(&mut places, &binary.map, &locations);
            }
        }
        Ok(places)
    }

    /// A profile's counts by source line. `wanted` selects functions; the profile has to have all of the binaries'
    /// functions. Prints a note on functions without lines.
    pub fn lines(&self, profile: &Profile, wanted: impl Fn(&str) -> bool) -> Result<SourceFiles> {
        let graph = |id, hash| self.graph(id, hash);
        let blocks = match self.blocks.get() {
            Some(blocks) => blocks,
            None => {
                let read = self.block_places()?;
                self.blocks.get_or_init(|| read)
            }
        };
        let places = |function: &FunctionProfile| {
            let places = blocks.get(&(function.id, function.cfg_hash));
            places.map_or(&[][..], Vec::as_slice)
        };
        let mut lines = SourceFiles::from_profile(profile, &graph, wanted, |cfg| self.file_of(cfg), places);
        if lines.files.is_empty() {
            let names: Vec<_> = self
                .binaries
                .iter()
                .map(|binary| binary.path.display().to_string())
                .collect();
            bail!(
                "{}: no source lines of the profile's functions: build with -g, and name the recorded binary",
                names.join(", ")
            );
        }
        if lines.without_lines > 0 {
            eprintln!(
                "pleach: note: {} without source lines in the named files: built without -g, or made by the compiler",
                plural(lines.without_lines, "function")
            );
        }
        for binary in &self.binaries {
            if binary.map.probes.is_empty() {
                eprintln!(
                    "pleach: note: {}: has no probes, so a partly executed line may be shown as not executed: name the \
                     binary built with $(pleach flags annotate)",
                    binary.path.display()
                );
            }
            for file in binary.files() {
                mark_uncertain_lines_unknown(&mut lines, file, &binary.map, profile)
                    .with_context(|| cannot_read(file))?;
            }
        }
        Ok(lines)
    }
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}
