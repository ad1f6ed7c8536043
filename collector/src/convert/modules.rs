//! The modules of a set, found by path and build.

use super::space::Located;
use crate::vector::{BuildId, Module, ModuleId, ModuleMapping, VectorSet};
use object::Object;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The identity of a mapped file, to recognise it on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FileIdentity {
    /// The inode; 0 if there is no file.
    Inode(u64),
    /// The build-id from the recording.
    Build(BuildId),
    /// Unknown.
    Unknown,
}

/// The modules of a set, found by path and build.
pub(crate) struct Modules<'a> {
    pub(crate) set: &'a mut VectorSet,
    known: HashMap<(PathBuf, Option<BuildId>), ModuleId>,
    builds: Builds,
}

/// Build-ids by path and inode.
pub(crate) type Builds = HashMap<(PathBuf, u64), Option<BuildId>>;

impl<'a> Modules<'a> {
    pub(crate) fn new(set: &'a mut VectorSet) -> Self {
        Self::with(set, Builds::new())
    }

    /// Starts with build-ids that were read before, see [`Modules::into_builds`].
    pub(crate) fn with(set: &'a mut VectorSet, builds: Builds) -> Self {
        let known = set
            .modules
            .iter()
            .enumerate()
            .map(|(i, module)| ((module.path.clone(), module.build_id.clone()), ModuleId(i as u32)))
            .collect();
        Self { set, known, builds }
    }

    /// The build-ids that were read.
    pub(crate) fn into_builds(self) -> Builds {
        self.builds
    }

    /// Adds an executable mapping of a process, and returns it with its module.
    pub(crate) fn locate(
        &mut self,
        process: u32,
        path: &[u8],
        addresses: Range<u64>,
        file_offset: u64,
        identity: FileIdentity,
    ) -> Located {
        let mut located = Located {
            start: addresses.start,
            end: addresses.end,
            offset: file_offset,
            module: ModuleId::EXTERNAL,
        };
        if identity == FileIdentity::Inode(0) || !path.starts_with(b"/") || is_no_file(path) {
            return located;
        }
        let path = PathBuf::from(OsStr::from_bytes(path));
        let build_id = match identity {
            FileIdentity::Build(build_id) => Some(build_id),
            FileIdentity::Unknown => None,
            FileIdentity::Inode(inode) => {
                let build = self.builds.entry((path.clone(), inode));
                build.or_insert_with(|| build_id(&path, inode)).clone()
            }
        };
        let modules = &mut self.set.modules;
        located.module = *self.known.entry((path.clone(), build_id.clone())).or_insert_with(|| {
            modules.push(Module {
                path,
                build_id,
                mappings: Vec::new(),
            });
            ModuleId(modules.len() as u32 - 1)
        });
        let mapping = ModuleMapping {
            process,
            start: addresses.start,
            end: addresses.end,
            file_offset,
        };
        let mappings = &mut modules[located.module.0 as usize].mappings;
        // Most mappings of a snapshot are also in the previous one.
        if !mappings
            .iter()
            .rev()
            .take_while(|m| m.process == process)
            .any(|m| *m == mapping)
        {
            mappings.push(mapping);
        }
        located
    }
}

/// Names that the kernel and perf give to memory without a readable file.
fn is_no_file(path: &[u8]) -> bool {
    [&b"/memfd:"[..], b"//anon", b"/dev/zero", b"/SYSV", b"/anon_hugepage"]
        .iter()
        .any(|name| path.starts_with(name))
}

/// The build-id of a file, if it still is the one that was mapped.
fn build_id(path: &Path, inode: u64) -> Option<BuildId> {
    let is_it = |metadata: &std::fs::Metadata| metadata.ino() == inode && metadata.is_file();
    // Checked before opening, which would block on a pipe without a writer.
    path.metadata().ok().filter(is_it)?;
    let file = std::fs::File::open(path).ok()?;
    file.metadata().ok().filter(is_it)?;
    build_id_of(file)
}

/// The build-id in an open ELF file.
pub(crate) fn build_id_of(file: std::fs::File) -> Option<BuildId> {
    let cache = object::ReadCache::new(file);
    let parsed = object::File::parse(&cache).ok()?;
    parsed.build_id().ok()?.map(|id| BuildId(id.to_vec()))
}
