//! Errors of profile files, with advice.

use std::io;
use std::path::{Path, PathBuf};

/// Why a profile could not be read or written. Every message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
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
    #[error("{}: is {what}, not a profile: name a file that `pleach record` or `pleach merge` wrote", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What is at the path.
        what: &'static str,
    },
    /// The file has another format.
    #[error("{}: not a pleach profile: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it looks like, and what to do with it.
        what: &'static str,
    },
    /// Written by another version of pleach.
    #[error("{}: profile format {found}, but this pleach reads format {expected}: record again, or use the pleach that wrote it", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's format version.
        found: u32,
        /// The version that this build reads.
        expected: u32,
    },
    /// Written with the other byte order.
    #[error("{}: written with the other byte order: record again on a machine of this kind", path.display())]
    ByteOrder {
        /// The file.
        path: PathBuf,
    },
    /// The file's length differs from the one in its header.
    #[error("{}: {found} bytes, but {expected} were written: the file was cut off or appended to; copy or record it again", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Length of the file, in bytes.
        found: u64,
        /// Length according to the header, in bytes.
        expected: u64,
    },
    /// Content and checksum disagree, or the content is malformed.
    #[error("{}: damaged ({what}): copy or record it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which part, and how.
        what: String,
    },
    /// The profile in memory cannot be stored.
    #[error("{}: cannot write the profile: {what}", path.display())]
    Unstorable {
        /// The file that was to be written.
        path: PathBuf,
        /// What is wrong with the profile.
        what: String,
    },
}

impl ProfileError {
    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.into(),
            what: what.into(),
        }
    }

    /// The error of the operating system during `action`.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            path: path.into(),
            action,
            source,
        }
    }
}

/// What a file that is no profile looks like, by its first bytes, and what to do with it.
pub(super) fn foreign(start: &[u8]) -> &'static str {
    const KINDS: &[(&[u8], &str)] = &[
        (
            b"\xfflprofi\x81",
            "it is an LLVM indexed profile (.profdata): pass it to clang as -fprofile-use",
        ),
        (
            b"\x81iforpl\xff",
            "it is an LLVM indexed profile (.profdata): pass it to clang as -fprofile-use",
        ),
        (
            b"\x81rforpl\xff",
            "it is an LLVM raw profile (.profraw): merge it with llvm-profdata",
        ),
        (
            b"\x81Rforpl\xff",
            "it is an LLVM raw profile (.profraw): merge it with llvm-profdata",
        ),
        (
            b"\xfflprofr\x81",
            "it is an LLVM raw profile (.profraw): merge it with llvm-profdata",
        ),
        (
            b"\xfflprofR\x81",
            "it is an LLVM raw profile (.profraw): merge it with llvm-profdata",
        ),
        (
            b"PLEACHC1",
            "it holds exact counts: make a profile of them with `pleach import FILE -o app.pleach`",
        ),
        (b"PERFILE2", "it is a perf.data file: convert it with `pleach import`"),
        (b"2ELIFREP", "it is a perf.data file: convert it with `pleach import`"),
        (
            b"\x7fELF",
            "it is a program or object file: name the profile recorded from it",
        ),
        (b"!<arch>\n", "it is an archive: name a file that `pleach record` wrote"),
        (
            b"BC\xc0\xde",
            "it is LLVM bitcode: name a file that `pleach record` wrote",
        ),
        (b"adcg", "it is gcov data: it holds no branch vectors"),
        (b"\x1f\x8b", "it is compressed by gzip: decompress it first"),
        (b"\x28\xb5\x2f\xfd", "it is compressed by zstd: decompress it first"),
    ];
    if let Some((_, what)) = KINDS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return what;
    }
    if start.is_empty() {
        return "the file is empty: was recording interrupted? record again";
    }
    if start.iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e)) {
        return "it is a text file: perf script's output is converted with `pleach import`";
    }
    "it does not begin like one: name a file that `pleach record` or `pleach merge` wrote"
}
