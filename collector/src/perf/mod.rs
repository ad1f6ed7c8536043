//! Import of recordings of `perf record -b`, and export to perf's formats.
//!
//! [`import`] reads perf.data and the text of `perf script`. Both become events of one session, which tracks processes
//! and mappings with the same code as the converter of live recordings. [`export`] writes perf.data; [`live`] feeds
//! records of the running kernel to the same session.

#![allow(unsafe_code, reason = "a recording is mapped")]

pub(crate) mod attr;
mod branches;
mod container;
mod cursor;
mod data;
pub mod export;
pub mod live;
mod mapping;
mod order;
mod reader;
mod records;
mod replacement;
mod report;
mod sample;
mod script;
mod session;

pub use report::{Damage, PerfError, Report};

use crate::vector::{Engine, VectorSet};
use memmap2::Mmap;
use replacement::Replacement;
use session::Session;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How branch stacks are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A perf.data file, or what `perf record -o -` writes.
    PerfData,
    /// What `perf script` prints.
    PerfScript,
}

/// The result of an import.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// The samples that have branches.
    pub vectors: VectorSet,
    /// Warnings and statistics.
    pub report: Report,
}

/// Callback for progress: steps done, and their total.
pub type Watch<'a> = &'a dyn Fn(u64, u64);

/// Reads a file; `-` is the standard input. `binary` replaces the recorded binary of the same name or build-id, or the
/// only binary if a text has no mappings.
pub fn import(path: &Path, binary: Option<&Path>) -> Result<Imported, PerfError> {
    import_watched(path, binary, &|_, _| {})
}

/// As [`import`]; `watch` is called with the bytes read and their total.
pub fn import_watched(path: &Path, binary: Option<&Path>, watch: Watch) -> Result<Imported, PerfError> {
    let io = |error| PerfError::Io {
        path: path.to_owned(),
        error,
    };
    let metadata = (path != Path::new("-"))
        .then(|| path.metadata())
        .transpose()
        .map_err(io)?;
    match metadata {
        Some(metadata) if metadata.is_dir() => Err(io(std::io::Error::other(
            "a directory; import the files `data*` in it one by one",
        ))),
        Some(metadata) if metadata.is_file() && metadata.len() > 0 => {
            let file = File::open(path).map_err(io)?;
            // SAFETY: the mapping is read-only. If another process truncates the file meanwhile, this process gets a
            // fatal SIGBUS, which does not violate memory safety.
            let map = unsafe { Mmap::map(&file) }.map_err(io)?;
            import_of(path, &map, binary, watch)
        }
        other => {
            let mut bytes = Vec::new();
            match other {
                Some(_) => File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
                None => std::io::stdin().read_to_end(&mut bytes),
            }
            .map_err(io)?;
            import_of(path, &bytes, binary, watch)
        }
    }
}

/// Reads the contents of a file; `path` names it in errors.
pub fn import_bytes(path: &Path, bytes: &[u8], binary: Option<&Path>) -> Result<Imported, PerfError> {
    import_of(path, bytes, binary, &|_, _| {})
}

fn import_of(path: &Path, bytes: &[u8], binary: Option<&Path>, watch: Watch) -> Result<Imported, PerfError> {
    let replacement = binary.map(Replacement::open).transpose()?;
    let mut vectors = VectorSet::default();
    let session = Session::new(&mut vectors, Engine::Perf, replacement.as_ref()).watched(watch, bytes.len() as u64);
    let report = if bytes.starts_with(container::MAGIC_SWAPPED) {
        return Err(PerfError::ByteOrder { path: path.to_owned() });
    } else if bytes.starts_with(container::MAGIC) {
        data::import(path, bytes, session)?
    } else {
        script::import(path, bytes, replacement.as_ref(), session)?
    };
    Ok(Imported { vectors, report })
}
