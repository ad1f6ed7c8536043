//! The annotated binaries that a profile is of, and what they tell about the source.

use pleach_annotate::binary::{Binary, BinaryError};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::find::Finder;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::sources::Sources;
use pleach_annotate::symbol_names::read_symbol_names;
use pleach_profile::Profile;
use pleach_report::source_paths::SourceNames;
use std::path::{Path, PathBuf};

/// Where recorded paths are.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Root {
    /// Look for recorded files below this directory first, such as a container's root. They are also found by build-id
    /// in the caches of debuginfod and perf.
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
}

/// Where the files of recorded modules are.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct RecordedFiles {
    /// Read this file instead of the recorded one of the same build-id or name; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub binary: Vec<PathBuf>,
    #[command(flatten)]
    pub root: Root,
}

impl RecordedFiles {
    /// Finds recorded modules.
    ///
    /// # Errors
    /// A named file cannot be read.
    pub fn finder(&self) -> Result<Finder, BinaryError> {
        Finder::new(&self.binary, self.root.symfs.as_deref())
    }
}

/// The annotated files that were recorded, as far as they are found and the same build; of a profile that does not name
/// them, the programs of the recorded commands. Also why others are left out.
fn recorded(root: &Root, profile: &Profile) -> (Vec<PathBuf>, Vec<String>) {
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    // Without named files, none can fail to be read.
    let finder = Finder::new(&[], root.symfs.as_deref()).unwrap_or_default();
    for module in &profile.provenance.modules {
        match finder.open(Path::new(&module.path), bytes(&module.build_id).as_deref()) {
            Ok(binary) => found.push(binary.path),
            Err(reason) => left_out.push(reason.to_string()),
        }
    }
    if profile.provenance.modules.is_empty() {
        let programs = profile.provenance.commands.iter();
        let mut programs: Vec<_> = programs.filter_map(|command| program_of(command)).collect();
        programs.sort();
        programs.dedup();
        for program in programs {
            match Binary::open(&program) {
                Ok(binary) if binary.is_annotated() => found.push(program),
                Ok(_) => left_out.push(format!("{}: not annotated", program.display())),
                Err(error) => left_out.push(error.to_string()),
            }
        }
    }
    (found, left_out)
}

/// The files that a user names, else those that were recorded. Prints a note on each that is left out.
pub fn named_or_recorded(named: &[PathBuf], root: &Root, profile: &Profile) -> Vec<PathBuf> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let (found, left_out) = recorded(root, profile);
    for reason in left_out {
        eprintln!("pleach: note: left out: {reason}");
    }
    found
}

/// The same without notes, for commands that can do without these files.
pub fn named_or_recorded_quietly(named: &[PathBuf], root: &Root, profile: &Profile) -> Vec<PathBuf> {
    match named.is_empty() {
        true => recorded(root, profile).0,
        false => named.to_vec(),
    }
}

/// The bytes of a build-id in hexadecimal; `None` for a file without one.
fn bytes(build_id: &str) -> Option<Vec<u8>> {
    let digits = build_id.as_bytes();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    bytes.filter(|bytes| !bytes.is_empty())
}

/// The program of a command line, whose path may have spaces: the shortest beginning that is a file.
fn program_of(command: &str) -> Option<PathBuf> {
    let ends = command.match_indices(' ').map(|(at, _)| at);
    let candidates = ends.chain([command.len()]).map(|end| Path::new(&command[..end]));
    candidates.into_iter().find(|path| path.is_file()).map(Path::to_owned)
}

/// Source files and names of functions from binaries. What cannot be read is left out: paths are then shown with less.
pub fn source_names<'c>(
    binaries: &[PathBuf],
    functions: impl Iterator<Item = (FunctionId, CfgHash, &'c str, Option<&'c Cfg>)>,
) -> SourceNames {
    let mut names = SourceNames::default();
    let mut sources = Vec::new();
    for path in binaries {
        let debug_file = Binary::open(path).ok().and_then(|binary| binary.debug_file);
        for file in std::iter::once(path).chain(&debug_file) {
            names.functions.extend(read_symbol_names(file).unwrap_or_default());
            sources.extend(Sources::read(file));
        }
    }
    for (id, hash, name, graph) in functions {
        names.functions.insert(id.guid, name.to_owned());
        let file = sources.iter().find_map(|sources| match graph {
            Some(graph) => sources.file_of(&graph.name, &graph.source_file),
            None => sources.only_file_of(name),
        });
        if let Some(name) = file.and_then(Path::file_name) {
            names.files.insert((id, hash), name.to_string_lossy().into_owned());
        }
    }
    names
}

/// Those of a profile's functions.
pub fn profile_names(binaries: &[PathBuf], profile: &Profile) -> SourceNames {
    let functions = profile.functions.iter();
    source_names(
        binaries,
        functions.map(|f| (f.id, f.cfg_hash, f.name.as_str(), f.graph.as_deref())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_commands() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("an app");
        std::fs::write(&program, "").expect("written");
        let command = format!("{} --fast x", program.display());
        assert_eq!(program_of(&command), Some(program));
        assert_eq!(program_of("/none --fast"), None);
    }

    #[test]
    fn build_ids_of_profiles() {
        assert_eq!(bytes("0aff"), Some(vec![0x0a, 0xff]));
        assert_eq!(bytes(""), None, "a file without a build-id");
        assert_eq!(bytes("zz"), None);
    }
}
