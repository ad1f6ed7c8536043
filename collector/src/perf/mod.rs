//! Recordings of `perf record -b`, and what perf makes of ours.
//!
//! [`import`] reads perf.data and the text of `perf script`. Both become events of one session, which keeps track of
//! processes and mappings as the converter of live recordings does, with the same parts of it. [`export`] is the way
//! back; [`live`] lets the records of a running kernel take the same way in.

pub(crate) mod attr;
mod branches;
mod container;
mod cursor;
mod data;
pub mod export;
pub mod live;
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

/// What an import yields.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// The samples that have branches.
    pub vectors: VectorSet,
    /// What was found besides.
    pub report: Report,
}

/// Is told how far a long piece of work has come: steps done, of how many.
pub type Watch<'a> = &'a dyn Fn(u64, u64);

/// Reads a file; `-` is the standard input. A `binary` stands for the recorded one of its name or build, and for the
/// only one where a text tells no mappings.
pub fn import(path: &Path, binary: Option<&Path>) -> Result<Imported, PerfError> {
    import_watched(path, binary, &|_, _| {})
}

/// As [`import`]; `watch` is told from time to time how many bytes of how many have been read.
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
            "a folder; import the files `data*` in it one by one",
        ))),
        Some(metadata) if metadata.is_file() && metadata.len() > 0 => {
            let file = File::open(path).map_err(io)?;
            // SAFETY: the map is read-only. Whoever cuts the file short meanwhile ends this process, not its memory
            // safety.
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
