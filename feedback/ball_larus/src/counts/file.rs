//! Finds the blocks of a count file. A damaged part does not affect the others.

use super::error::{CountError, CountProblem, Problem, foreign};
use super::layout::{
    BLOCK_HEADER, BlockHeader, BlockKind, FileBlock, MAGIC, MAX_PAGE, PAGE, SEGMENT_HEADER, SEGMENT_MAGIC,
    SegmentHeader, VERSION,
};
use super::{Counts, sum};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The first bytes of a sampled profile.
const PROFILE_MAGIC: &[u8] = b"\x89PLEACH\n";

/// A count file.
#[derive(Debug)]
pub struct CountFile;

impl CountFile {
    /// Reads all counts of a file. The program may have been killed while it wrote the file, or may still be running.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is no count file of this version. Damaged parts become
    /// [`Counts::problems`]. A file without counts is valid.
    pub fn open(path: impl AsRef<Path>) -> Result<Counts, CountError> {
        let path = path.as_ref();
        let bytes = contents(path)?;
        if !bytes.starts_with(MAGIC) {
            return Err(other(path, &bytes));
        }
        let (blocks, problems) = blocks(path, &bytes)?;
        let (units, more) = sum::units(&bytes, &blocks);
        let problem = |what| CountProblem {
            path: path.into(),
            what,
        };
        Ok(Counts {
            units,
            problems: problems.into_iter().chain(more).map(problem).collect(),
        })
    }

    /// Whether a file begins with the magic number of count files.
    pub fn is_count_file(path: impl AsRef<Path>) -> io::Result<bool> {
        let mut start = Vec::new();
        File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut start)?;
        Ok(start == MAGIC)
    }
}

/// Reads the file instead of mapping it, because a running program may still be changing it.
fn contents(path: &Path) -> Result<Vec<u8>, CountError> {
    let io = |action| {
        move |source| CountError::Io {
            path: path.into(),
            action,
            source,
        }
    };
    // Checked before opening, which would block on a pipe without a writer.
    let metadata = path.metadata().map_err(io("open"))?;
    if !metadata.is_file() {
        return Err(CountError::NotAFile {
            path: path.into(),
            what: if metadata.is_dir() {
                "a directory"
            } else {
                "a device or pipe"
            },
        });
    }
    fs::read(path).map_err(io("read"))
}

fn other(path: &Path, bytes: &[u8]) -> CountError {
    if bytes.starts_with(PROFILE_MAGIC) {
        return CountError::Profile { path: path.into() };
    }
    CountError::Foreign {
        path: path.into(),
        what: foreign(bytes),
    }
}

/// All whole blocks of a file, in file order, and the parts that could not be read.
fn blocks(path: &Path, bytes: &[u8]) -> Result<(Vec<FileBlock>, Vec<Problem>), CountError> {
    let mut reader = BlockReader {
        bytes,
        blocks: Vec::new(),
        problems: Vec::new(),
    };
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    // A program that was killed at its start may have written less than a whole header.
    if let Some(found) = word(8).filter(|&found| found != VERSION) {
        return Err(CountError::Version {
            path: path.into(),
            found,
            expected: VERSION,
        });
    }
    let length = word(12).map(|length| length as usize);
    let length = length.filter(|length| [PAGE, MAX_PAGE].contains(length));
    if length.is_none() {
        reader.problems.push(Problem::Header);
    }
    let mut at = length.unwrap_or(PAGE);
    while at < bytes.len() {
        at = match SegmentHeader::decode(&bytes[at..]) {
            Some(header) => reader.segment(at, header),
            None => reader.skip(at),
        };
    }
    Ok((reader.blocks, reader.problems))
}

struct BlockReader<'f> {
    bytes: &'f [u8],
    blocks: Vec<FileBlock>,
    problems: Vec<Problem>,
}

impl BlockReader<'_> {
    /// Offset of the first segment between `from` and `end`.
    fn next_segment(&self, from: usize, end: usize) -> Option<usize> {
        let mut pages = (from.next_multiple_of(PAGE)..end).step_by(PAGE);
        pages.find(|&at| self.bytes[at..].starts_with(SEGMENT_MAGIC))
    }

    /// Skips bytes that are no segment. Returns the offset of the next segment or of the end.
    fn skip(&mut self, at: usize) -> usize {
        let next = self.next_segment(at + 1, self.bytes.len()).unwrap_or(self.bytes.len());
        // Zeros are space that the program appended but did not use.
        if self.bytes[at..next].iter().any(|&byte| byte != 0) {
            self.problems.push(Problem::NoSegment {
                offset: at as u64,
                length: (next - at) as u64,
            });
        }
        next
    }

    /// Reads a segment. Returns the offset at which the next one should begin.
    fn segment(&mut self, at: usize, header: SegmentHeader) -> usize {
        let wrong = |what| Problem::Segment {
            offset: at as u64,
            what,
        };
        let length = usize::try_from(header.length).ok();
        let claimed_end = length
            .filter(|&length| length >= PAGE && length.is_multiple_of(PAGE))
            .and_then(|length| at.checked_add(length));
        let end = match claimed_end {
            Some(end) => end.min(self.bytes.len()),
            None => {
                self.problems.push(wrong("has an impossible length"));
                self.next_segment(at + 1, self.bytes.len()).unwrap_or(self.bytes.len())
            }
        };
        let mut used_end = at + SEGMENT_HEADER;
        if header.used < SEGMENT_HEADER as u64 || claimed_end.is_some() && header.used > header.length {
            self.problems.push(wrong("has an impossible number of bytes in use"));
        } else {
            used_end = at.saturating_add(usize::try_from(header.used).unwrap_or(usize::MAX));
        }
        // The program extends the file before it writes the length, so missing bytes were cut off.
        let missing = claimed_end.unwrap_or(0).saturating_sub(self.bytes.len()) as u64;
        let is_cut = missing != 0;
        if is_cut {
            let offset = at as u64;
            self.problems.push(Problem::Cut { offset, missing });
        }
        let last = self.segment_blocks(at + SEGMENT_HEADER, end, used_end, is_cut);
        // Only zeros follow the blocks. Another segment there means that the length is wrong.
        match self.next_segment(last.max(at + 1), end) {
            Some(next) => {
                self.problems.push(wrong("is shorter than it says"));
                next
            }
            None => end,
        }
    }

    /// Reads the blocks of a segment and returns the offset of their end. A block beyond `used_end` counts only if it
    /// is whole.
    fn segment_blocks(&mut self, mut at: usize, end: usize, used_end: usize, is_cut: bool) -> usize {
        while at + BLOCK_HEADER <= end {
            let in_use = at < used_end;
            let header = BlockHeader::decode(&self.bytes[at..]).filter(BlockHeader::is_consistent);
            let after = header.and_then(|h| at.checked_add(usize::try_from(h.length).ok()?));
            match (header, after) {
                (Some(header), Some(after)) if after <= end => {
                    match BlockKind::from_u32(header.kind) {
                        Some(_) => self.blocks.push(FileBlock {
                            offset: at,
                            header,
                            in_use,
                        }),
                        None if !in_use => break,
                        None => self.problems.push(Problem::Kind {
                            offset: at as u64,
                            kind: header.kind,
                        }),
                    }
                    at = after;
                }
                // The segment's problem was already reported.
                (Some(_), _) if is_cut => return end,
                _ if in_use => at = self.skip_block(at, end.min(used_end)),
                _ => break,
            }
        }
        at
    }

    /// Skips a block without a usable header. Returns the offset of the next one.
    fn skip_block(&mut self, at: usize, end: usize) -> usize {
        let is_block = |&at: &usize| {
            BlockHeader::decode(&self.bytes[at..end]).is_some_and(|header| {
                let fits = header.length <= (end - at) as u64;
                fits && BlockKind::from_u32(header.kind).is_some() && header.is_consistent()
            })
        };
        let next = (at + BLOCK_HEADER..end).step_by(BLOCK_HEADER).find(is_block);
        let next = next.unwrap_or(end);
        self.problems.push(Problem::Block {
            offset: at as u64,
            length: (next - at) as u64,
        });
        next
    }
}
