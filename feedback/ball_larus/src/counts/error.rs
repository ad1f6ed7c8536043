//! Errors of count files.

use super::unit::{UnitError, UnitId};
use std::io;
use std::path::PathBuf;

/// Why a count file could not be read or written. Every message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountError {
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed, for instance `open`.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A directory or a device where a file is expected.
    #[error(
        "{}: is {what}, not a count file: name a file that an instrumented program or `pleach merge` wrote",
        path.display()
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What is at the path.
        what: &'static str,
    },
    /// The file is a sampled profile.
    #[error(
        "{}: is a sampled profile, not a count file: `pleach show` prints it, `pleach flags use` optimises with it",
        path.display()
    )]
    Profile {
        /// The file.
        path: PathBuf,
    },
    /// The file has another format.
    #[error("{}: not a count file: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it looks like, and what to do with it.
        what: &'static str,
    },
    /// Written by another version of pleach.
    #[error(
        "{}: count format {found}, but this pleach reads format {expected}: build and run again, or use the pleach that \
         built the program",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's format version.
        found: u32,
        /// The version that this build reads.
        expected: u32,
    },
    /// The counts in memory cannot be stored.
    #[error("{}: cannot write the counts: {what}", path.display())]
    Unstorable {
        /// The file that was to be written.
        path: PathBuf,
        /// What is wrong with the counts.
        what: String,
    },
}

/// A part of a count file that could not be read, with the file's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct CountProblem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, and which counts are left out.
    pub what: Problem,
}

/// What is wrong with a part of a count file, and which counts are left out. Offsets and lengths are in bytes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file's header is damaged.
    #[error("its header is damaged; nothing else is lost")]
    Header,
    /// The file ends inside a segment.
    #[error(
        "cut off: {missing} bytes of the segment at offset {offset:#x} are missing, and everything after it: \
         the counts there are left out"
    )]
    Cut {
        /// Offset of the segment.
        offset: u64,
        /// Number of missing bytes.
        missing: u64,
    },
    /// There are bytes between segments.
    #[error("no segment begins at offset {offset:#x}: the counts in the next {length} bytes are left out")]
    NoSegment {
        /// Offset at which a segment should begin.
        offset: u64,
        /// Distance to the next segment.
        length: u64,
    },
    /// A segment's header is malformed.
    #[error(
        "the segment at offset {offset:#x} {what}: its counts are read up to its end or to the first damaged block"
    )]
    Segment {
        /// Offset of the segment.
        offset: u64,
        /// What is malformed.
        what: &'static str,
    },
    /// A block's header is malformed.
    #[error("damaged block at offset {offset:#x}: the counts in the next {length} bytes are left out")]
    Block {
        /// Offset of the block.
        offset: u64,
        /// Distance to the next block.
        length: u64,
    },
    /// A block's kind is unknown to this version.
    #[error("block of unknown kind {kind} at offset {offset:#x}: its content is left out")]
    Kind {
        /// Offset of the block.
        offset: u64,
        /// Its kind.
        kind: u32,
    },
    /// A module's description cannot be read.
    #[error("the description of unit {unit} is damaged ({error}) and left out")]
    Unit {
        /// The unit.
        unit: UnitId,
        /// What is wrong.
        error: UnitError,
    },
    /// There are counts of a unit without a description.
    #[error("unit {unit} has no description: its counts are left out (blocks: {blocks})")]
    NoUnit {
        /// The unit.
        unit: UnitId,
        /// Number of blocks with counts.
        blocks: u64,
    },
    /// The length of a thread's array differs from the description.
    #[error("{found} counters at offset {offset:#x}, but unit {unit} has {expected}: they are left out")]
    Words {
        /// Offset of the block.
        offset: u64,
        /// The unit.
        unit: UnitId,
        /// Number of counters in the block.
        found: u64,
        /// Number of counters according to the description.
        expected: u64,
    },
    /// A hash table belongs to no function of the unit that has hash tables.
    #[error(
        "hash table at offset {offset:#x} for function {function} of unit {unit}, which has no such function with \
         hash tables: it is left out"
    )]
    NoFunction {
        /// Offset of the block.
        offset: u64,
        /// The unit.
        unit: UnitId,
        /// The function's position.
        function: u64,
    },
    /// Counts for counters that the function does not have.
    #[error(
        "function {function}: {numbers} of its counts have numbers beyond its {counters} counters (first: \
         {first}) and are left out"
    )]
    Numbers {
        /// The function's name.
        function: String,
        /// Number of such counts.
        numbers: u64,
        /// The first such number.
        first: u64,
        /// Number of counters of the function.
        counters: u64,
    },
    /// A pair of a hash table has a count but no number.
    #[error("function {function}: {pairs} of its counts have lost their numbers and are left out")]
    Numberless {
        /// The function's name.
        function: String,
        /// Number of such pairs.
        pairs: u64,
    },
}

/// What a file without counts looks like, by its first bytes, and what to do with it.
pub(super) fn foreign(start: &[u8]) -> &'static str {
    const KINDS: &[(&[u8], &str)] = &[
        (b"\xfflprofi\x81", "it is an LLVM indexed profile (.profdata)"),
        (b"\x81rforpl\xff", "it is an LLVM raw profile (.profraw)"),
        (b"PERFILE2", "it is a perf.data file"),
        (
            b"\x7fELF",
            "it is a program or object file: run it and name the file that it writes",
        ),
        (b"\x1f\x8b", "it is compressed by gzip: decompress it first"),
        (b"\x28\xb5\x2f\xfd", "it is compressed by zstd: decompress it first"),
    ];
    if let Some((_, what)) = KINDS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return what;
    }
    if start.is_empty() {
        return "the file is empty: was the program killed at its start? run it again";
    }
    "it does not begin like one: name a file that an instrumented program or `pleach merge` wrote"
}
