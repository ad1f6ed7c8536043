//! Graphs of functions, from manifests, and their source files, from debug information.

use anyhow::{Context, Result, bail};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::AddressMap;
use pleach_annotate::sources::Sources;
use pleach_profile::Profile;
use pleach_report::lines::SourceFiles;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Graphs and source files of annotated binaries.
pub struct Places {
    binaries: Vec<PathBuf>,
    graphs: HashMap<(FunctionId, CfgHash), Cfg>,
    sources: Vec<Sources>,
}

impl Places {
    /// Reads binaries.
    pub fn read(binaries: &[PathBuf]) -> Result<Self> {
        let mut places = Self {
            binaries: binaries.to_vec(),
            graphs: HashMap::new(),
            sources: Vec::new(),
        };
        for path in binaries {
            let map = AddressMap::read(path)?;
            let read = |path: &Path| Sources::read(path).with_context(|| format!("cannot read {}", path.display()));
            places.sources.push(read(path)?);
            if let Some(debug) = &map.binary.debug_file {
                places.sources.push(read(debug)?);
            }
            let functions = map.functions.into_iter();
            places.graphs.extend(functions.map(|f| ((f.cfg.id, f.hash), f.cfg)));
        }
        Ok(places)
    }

    /// The graph of a function.
    pub fn graph(&self, id: FunctionId, hash: CfgHash) -> Option<&Cfg> {
        self.graphs.get(&(id, hash))
    }

    /// The source file of a function.
    pub fn file_of(&self, cfg: &Cfg) -> Option<PathBuf> {
        let mut files = self.sources.iter();
        files.find_map(|sources| sources.file_of(&cfg.name, &cfg.source_file).map(Path::to_owned))
    }

    /// A profile's counts by source line. Prints a note on functions without lines.
    pub fn lines(&self, profile: &Profile, wanted: impl Fn(&str) -> bool) -> Result<SourceFiles> {
        let graph = |id, hash| self.graph(id, hash);
        let lines = SourceFiles::from_profile(profile, &graph, wanted, |cfg| self.file_of(cfg));
        if lines.files.is_empty() {
            let names: Vec<_> = self.binaries.iter().map(|path| path.display().to_string()).collect();
            bail!(
                "{}: no source lines of the profile's functions: build with -g, and name what was recorded",
                names.join(", ")
            );
        }
        if lines.without_lines > 0 {
            eprintln!(
                "pleach: note: {} functions have no source lines: they were built without -g, or are not in the named files",
                lines.without_lines
            );
        }
        Ok(lines)
    }
}
