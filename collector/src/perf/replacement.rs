//! The binary that the user names: it replaces the recorded binary of the same name or build.

use super::PerfError;
use super::mapping::RawMapping;
use crate::convert::modules::{FileIdentity, build_id_of};
use crate::vector::BuildId;
use object::{Object, ObjectSegment, SegmentFlags};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A binary, and its mappings at the addresses it was linked for.
#[derive(Clone, Debug)]
pub(super) struct Replacement {
    path: PathBuf,
    build_id: Option<BuildId>,
    /// Executable segments at the addresses they were linked for.
    pub(super) segments: Vec<RawMapping>,
}

impl Replacement {
    pub(super) fn open(path: &Path) -> Result<Self, PerfError> {
        let io = |error| PerfError::Io {
            path: path.to_owned(),
            error,
        };
        let path = path.canonicalize().map_err(io)?;
        let build_id = build_id_of(std::fs::File::open(&path).map_err(io)?);
        let identity = build_id.clone().map_or(FileIdentity::Unknown, FileIdentity::Build);
        let cache = object::ReadCache::new(std::fs::File::open(&path).map_err(io)?);
        let file = object::File::parse(&cache).map_err(|error| io(std::io::Error::other(error)))?;
        let executable =
            |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
        let segments = file.segments().filter(|segment| executable(segment.flags()));
        let segments = segments.map(|segment| RawMapping {
            path: path.as_os_str().as_bytes().to_owned(),
            addresses: segment.address()..segment.address().saturating_add(segment.size()),
            offset: segment.file_range().0,
            identity: identity.clone(),
        });
        let segments = segments.collect();
        Ok(Self {
            path,
            build_id,
            segments,
        })
    }

    /// The build of this binary, if the mapping has its file name and no recorded build.
    pub(super) fn identity_of(&self, mapping: &RawMapping) -> Option<FileIdentity> {
        if matches!(mapping.identity, FileIdentity::Build(_)) {
            return None;
        }
        let name = Path::new(OsStr::from_bytes(&mapping.path)).file_name()?;
        (self.path.file_name() == Some(name)).then(|| match &self.build_id {
            Some(build_id) => FileIdentity::Build(build_id.clone()),
            None => FileIdentity::Unknown,
        })
    }
}
