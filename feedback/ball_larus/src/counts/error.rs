//! What can be wrong with count files, and what follows from it.

use super::unit::{UnitError, UnitId};
use std::io;
use std::path::PathBuf;

/// Why a count file could not be read or written at all. Every message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountError {
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
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
        /// What was named.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A profile of samples.
    #[error(
        "{}: is a sampled profile, not a count file: `pleach show` prints it, `pleach flags use` optimises with it",
        path.display()
    )]
    Profile {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something else.
    #[error("{}: not a count file: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it looks like, and what to do with that.
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

/// A part of a count file that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct CountProblem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, and what is lost.
    pub what: Problem,
}

/// What is wrong with a part of a count file, and what is lost by it. Offsets and lengths are in bytes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file's header is not as it was written.
    #[error("its header is damaged; nothing else is lost")]
    Header,
    /// The file ends too early.
    #[error(
        "cut off: {missing} bytes of the segment at offset {offset:#x} are missing, and whatever came after it: \
         the counts there are left out"
    )]
    Cut {
        /// Where the segment begins.
        offset: u64,
        /// How much of it is missing.
        missing: u64,
    },
    /// There is something between segments.
    #[error("no segment begins at offset {offset:#x}: the counts in {length} bytes from there are left out")]
    NoSegment {
        /// Where one should begin.
        offset: u64,
        /// How far it is to the next.
        length: u64,
    },
    /// A segment's header makes no sense.
    #[error("the segment at offset {offset:#x} {what}: its counts are read as far as they go")]
    Segment {
        /// Where it begins.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A block's header makes no sense.
    #[error("damaged block at offset {offset:#x}: the counts in {length} bytes from there are left out")]
    Block {
        /// Where it begins.
        offset: u64,
        /// How far it is to the next.
        length: u64,
    },
    /// A block holds nothing that this version knows.
    #[error("block of unknown kind {kind} at offset {offset:#x}: what it holds is left out")]
    Kind {
        /// Where it begins.
        offset: u64,
        /// Its kind.
        kind: u32,
    },
    /// A module's description cannot be read.
    #[error("the description of unit {unit} is damaged ({error}) and left out")]
    Unit {
        /// Whose description it should be.
        unit: UnitId,
        /// What is wrong.
        error: UnitError,
    },
    /// There are counts of a module without description.
    #[error("unit {unit} has no description: its counts are left out (blocks: {blocks})")]
    NoUnit {
        /// The unit.
        unit: UnitId,
        /// How many blocks of counts there are.
        blocks: u64,
    },
    /// A thread's array does not fit the description.
    #[error("{found} counters at offset {offset:#x}, but unit {unit} has {expected}: they are left out")]
    Words {
        /// Where the block begins.
        offset: u64,
        /// Whose counters they are.
        unit: UnitId,
        /// How many there are.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// A hash table is not for one of the module's hash-counted functions.
    #[error(
        "hash table at offset {offset:#x} for function {function} of unit {unit}, which counts none of \
         that number in hash tables: it is left out"
    )]
    NoFunction {
        /// Where the block begins.
        offset: u64,
        /// The unit.
        unit: UnitId,
        /// The function's position.
        function: u64,
    },
    /// Counts for numbers that the function's counters do not have.
    #[error(
        "function {function}: {numbers} of its counts have numbers beyond its {counters} counters (first: \
         {first}) and are left out"
    )]
    Numbers {
        /// The function's name.
        function: String,
        /// How many there are.
        numbers: u64,
        /// The first of them.
        first: u64,
        /// How many counters the function has.
        counters: u64,
    },
    /// A pair of a hash table has a count but no number.
    #[error("function {function}: {pairs} of its counts have lost their numbers and are left out")]
    Numberless {
        /// The function's name.
        function: String,
        /// How many there are.
        pairs: u64,
    },
}

/// What a file that does not hold counts looks like, by its first bytes.
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
