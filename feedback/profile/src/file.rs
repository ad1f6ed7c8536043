//! Reads profile files. A file is mapped into memory, so that a compiler reads only the records of its own functions.
//!
//! This is the only way to read a profile, and it checks everything that a reader may rely on: checksums and lengths of
//! sections, the order of the index, and, in the decoders of `record`, that all lists of a function fit its number of
//! blocks. Whether the counts fit a graph is known by its hash: [`ProfileFile::lookup`] returns counts only for the
//! same graph.

#![allow(unsafe_code, reason = "a profile is mapped")]

use super::data::{FunctionProfile, Profile, Provenance};
use super::error::{ProfileError, foreign};
use super::events::{self, EventProfile};
use super::layout::{ENTRY, Header, HeaderError, IndexEntry, MAGIC, Section, VERSION, record_checksum, source_hash};
use super::record;
use super::summary::ProfileSummary;
use memmap2::Mmap;
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_annotate::manifest::Anchor;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Whether a file that begins with these bytes is a profile, of any version, or what is left of one.
pub fn is_profile(beginning: &[u8]) -> bool {
    let known = beginning.len().min(MAGIC.len());
    known > 0 && beginning[..known] == MAGIC[..known]
}

/// Identity of a profile file's whole content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProfileDigest(pub u64);

impl fmt::Display for ProfileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Result of looking a function up in a profile.
#[derive(Clone, PartialEq, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all lookups find the function, and only one result exists at a time"
)]
pub enum Lookup {
    /// The profile has counts for this graph.
    Found(FunctionProfile),
    /// The profile has counts for other graphs only: the function changed since it was recorded.
    Stale {
        /// The first graph that the profile has.
        profile_hash: CfgHash,
    },
    /// The profile does not have the function.
    Absent,
}

/// An entry of the index: a record that need not be read to know this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordKey {
    /// The function.
    pub id: FunctionId,
    /// Its graph.
    pub cfg_hash: CfgHash,
    /// The file that the function was in, if the record has its graph.
    pub source: Option<SourceHash>,
    /// Position in the index.
    position: usize,
}

/// Identifies a source file by its name, without its folder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SourceHash(u32);

impl SourceHash {
    /// Of a file's name, without its folder.
    pub fn of_name(name: &str) -> Self {
        Self(source_hash(name))
    }
}

/// An open profile file. Header and index were checked when it was opened; records and the other sections are checked
/// when they are read.
#[derive(Debug)]
pub struct ProfileFile {
    path: PathBuf,
    map: Mmap,
    header: Header,
    digest: ProfileDigest,
}

impl ProfileFile {
    /// Opens a profile. Reads header and index, but no records.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is no profile of this version, or has a damaged header or index.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let map = map(path)?;
        let header = Header::decode(&map).map_err(|error| explain(path, &map, error))?;
        let file = Self {
            digest: ProfileDigest(xxh3_64(&map[..header.index.offset as usize])),
            path: path.into(),
            map,
            header,
        };
        file.check_length()?;
        file.checked(file.header.index, "index")?;
        file.check_order()?;
        Ok(file)
    }

    /// The path that was given to [`ProfileFile::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The anchor that the counts refer to.
    pub fn anchor(&self) -> Anchor {
        self.header.anchor
    }

    /// Factor from sampled to estimated executions.
    pub fn scale(&self) -> f64 {
        self.header.scale
    }

    /// Sampled block entries behind all functions.
    pub fn samples(&self) -> u64 {
        self.header.samples
    }

    /// Estimated executions of all paths of all functions: the whole that a path's share refers to.
    pub fn path_flow(&self) -> f64 {
        self.header.path_flow
    }

    /// The summary of all block counts.
    pub fn summary(&self) -> &ProfileSummary {
        &self.header.summary
    }

    /// Identity of the whole content: two files with the same digest hold the same profile.
    pub fn digest(&self) -> ProfileDigest {
        self.digest
    }

    /// Number of records: one for each function and graph.
    pub fn len(&self) -> usize {
        self.index().len() / ENTRY
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks up a function with this graph.
    ///
    /// The hash of a local function's module changes when any function is added to the source file, and functions
    /// become local or cease to be. A function that is not found with its module is therefore looked up by name and
    /// graph, and found if exactly one function of the profile has both.
    ///
    /// # Errors
    /// Fails if the function's record is damaged.
    pub fn lookup(&self, id: FunctionId, cfg_hash: CfgHash) -> Result<Lookup, ProfileError> {
        Ok(match self.entry_of(id, cfg_hash) {
            Ok(entry) => Lookup::Found(self.read(&entry)?),
            Err(Some(profile_hash)) => Lookup::Stale { profile_hash },
            Err(None) => Lookup::Absent,
        })
    }

    /// The entry that [`Self::lookup`] finds; else the first graph of the function that the profile has.
    fn entry_of(&self, id: FunctionId, cfg_hash: CfgHash) -> Result<IndexEntry, Option<CfgHash>> {
        let mut other = None;
        for entry in self.entries_from(id).take_while(|entry| entry.id == id) {
            if entry.cfg_hash == cfg_hash {
                return Ok(entry);
            }
            other.get_or_insert(entry.cfg_hash);
        }
        match other {
            Some(_) => Err(other),
            None => self.elsewhere(id, cfg_hash).ok_or(None),
        }
    }

    fn entries_from(&self, id: FunctionId) -> impl Iterator<Item = IndexEntry> {
        (self.first_of(id)..self.len()).map(|at| self.entry(at))
    }

    fn elsewhere(&self, id: FunctionId, cfg_hash: CfgHash) -> Option<IndexEntry> {
        let same = self.named(id.guid).filter(|(_, entry)| entry.cfg_hash == cfg_hash);
        let mut same = same.map(|(_, entry)| entry);
        let found = same.next()?;
        same.next().is_none().then_some(found)
    }

    /// The entries of all functions with this name, with their positions.
    fn named(&self, guid: FunctionGuid) -> impl Iterator<Item = (usize, IndexEntry)> {
        let first = self.first_of(FunctionId {
            guid,
            module: ModuleHash(0),
        });
        (first..self.len())
            .map(|at| (at, self.entry(at)))
            .take_while(move |(_, entry)| entry.id.guid == guid)
    }

    /// Whether [`Self::lookup`] finds counts for this graph.
    pub fn has(&self, id: FunctionId, cfg_hash: CfgHash) -> bool {
        self.entry_of(id, cfg_hash).is_ok()
    }

    /// The records of all functions with this name, whatever their modules and graphs.
    pub fn keys_of(&self, guid: FunctionGuid) -> impl Iterator<Item = RecordKey> {
        self.named(guid).map(|(position, entry)| key(position, &entry))
    }

    /// All records.
    pub fn keys(&self) -> impl Iterator<Item = RecordKey> {
        (0..self.len()).map(|position| key(position, &self.entry(position)))
    }

    /// Reads a record of this file.
    ///
    /// # Errors
    /// Fails if the record is damaged.
    pub fn record(&self, key: RecordKey) -> Result<FunctionProfile, ProfileError> {
        self.read(&self.entry(key.position))
    }

    /// All records, by identifier.
    pub fn functions(&self) -> impl Iterator<Item = Result<FunctionProfile, ProfileError>> {
        (0..self.len()).map(|at| self.read(&self.entry(at)))
    }

    /// Where the profile comes from.
    pub fn provenance(&self) -> Result<Provenance, ProfileError> {
        let bytes = self.checked(self.header.provenance, "provenance")?;
        serde_json::from_slice(bytes).map_err(|e| ProfileError::damaged(&self.path, format!("provenance: {e}")))
    }

    /// Paths that lead to events.
    ///
    /// # Errors
    /// The section is damaged.
    pub fn events(&self) -> Result<Vec<EventProfile>, ProfileError> {
        if self.header.events.length == 0 {
            return Ok(Vec::new());
        }
        let bytes = self.checked(self.header.events, "events")?;
        events::decode(bytes).map_err(|what| ProfileError::damaged(&self.path, format!("events: {what}")))
    }

    /// Whether the raw vectors were kept.
    pub fn has_vectors(&self) -> bool {
        self.header.has_vectors
    }

    /// The raw vectors, as a vector file of the collector, if they were kept.
    pub fn vectors(&self) -> Result<Option<&[u8]>, ProfileError> {
        let bytes = self.checked(self.header.vectors, "vectors")?;
        Ok(self.header.has_vectors.then_some(bytes))
    }

    /// Reads the whole profile into memory.
    pub fn read_all(&self) -> Result<Profile, ProfileError> {
        Ok(Profile {
            provenance: self.provenance()?,
            scale: self.scale(),
            anchor: self.anchor(),
            functions: self.functions().collect::<Result<_, _>>()?,
            events: self.events()?,
            vectors: self.vectors()?.map(<[u8]>::to_vec),
        })
    }

    fn check_length(&self) -> Result<(), ProfileError> {
        let (found, expected) = (self.map.len() as u64, self.header.file_length());
        if found == expected {
            return Ok(());
        }
        Err(ProfileError::Length {
            path: self.path.clone(),
            found,
            expected,
        })
    }

    /// Checks the order of the index, which binary search relies on.
    fn check_order(&self) -> Result<(), ProfileError> {
        let mut entries = (0..self.len()).map(|at| self.entry(at).key());
        let Some(mut last) = entries.next() else { return Ok(()) };
        for key in entries {
            if key <= last {
                return Err(ProfileError::damaged(&self.path, "index: not sorted"));
            }
            last = key;
        }
        Ok(())
    }

    fn section(&self, section: Section) -> &[u8] {
        // `open` checked the bounds.
        let start = section.offset as usize;
        self.map.get(start..start + section.length as usize).unwrap_or_default()
    }

    fn checked(&self, section: Section, name: &str) -> Result<&[u8], ProfileError> {
        let bytes = self.section(section);
        if xxh3_64(bytes) == section.checksum {
            return Ok(bytes);
        }
        Err(ProfileError::damaged(&self.path, format!("{name}: wrong checksum")))
    }

    fn index(&self) -> &[u8] {
        self.section(self.header.index)
    }

    /// The entry at a position of the index.
    pub(super) fn entry(&self, at: usize) -> IndexEntry {
        IndexEntry::decode(&self.index()[at * ENTRY..(at + 1) * ENTRY])
    }

    /// Position of a function's first record, or of the record after it if there is none.
    pub(super) fn first_of(&self, id: FunctionId) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle).id < id {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Reads a record, with its graph as it is stored: empty if it is not kept.
    pub(super) fn record_but_graph(&self, at: usize) -> Result<(FunctionProfile, &[u8]), ProfileError> {
        let entry = self.entry(at);
        let content = self.content(&entry)?;
        record::decode_but_graph(entry.id, entry.cfg_hash, content).map_err(|what| self.damaged(&entry, what))
    }

    /// An entry's error.
    pub(super) fn damaged(&self, entry: &IndexEntry, what: &str) -> ProfileError {
        ProfileError::damaged(&self.path, format!("record of function {}: {what}", entry.id))
    }

    fn read(&self, entry: &IndexEntry) -> Result<FunctionProfile, ProfileError> {
        let content = self.content(entry)?;
        record::decode(entry.id, entry.cfg_hash, content).map_err(|what| self.damaged(entry, what))
    }

    /// The bytes of a record.
    fn content(&self, entry: &IndexEntry) -> Result<&[u8], ProfileError> {
        let damaged = |what: &str| self.damaged(entry, what);
        let records = self.section(self.header.records);
        let range = usize::try_from(entry.offset)
            .ok()
            .and_then(|o| Some(o..o.checked_add(entry.length as usize)?));
        let record = range
            .and_then(|r| records.get(r))
            .ok_or_else(|| damaged("out of bounds"))?;
        if record_checksum(entry.id, entry.cfg_hash, record) != entry.checksum {
            return Err(damaged("wrong checksum"));
        }
        Ok(record)
    }
}

fn key(position: usize, entry: &IndexEntry) -> RecordKey {
    RecordKey {
        id: entry.id,
        cfg_hash: entry.cfg_hash,
        source: (entry.source != 0).then_some(SourceHash(entry.source)),
        position,
    }
}

fn map(path: &Path) -> Result<Mmap, ProfileError> {
    let metadata = path.metadata().map_err(ProfileError::io(path, "open"))?;
    // Checked before opening, which would block on a pipe without a writer.
    if metadata.is_dir() {
        return Err(ProfileError::NotAFile {
            path: path.into(),
            what: "a directory",
        });
    }
    if !metadata.is_file() {
        return Err(ProfileError::NotAFile {
            path: path.into(),
            what: "a device or pipe",
        });
    }
    let file = File::open(path).map_err(ProfileError::io(path, "open"))?;
    if metadata.len() == 0 {
        return Err(ProfileError::Foreign {
            path: path.into(),
            what: foreign(&[]),
        });
    }
    // SAFETY: the map is read-only, and `pleach-store` replaces profiles by renaming a new file; nothing of pleach
    // changes or truncates one in place. Another program that does so breaks the contract of `Mmap::map`.
    unsafe { Mmap::map(&file) }.map_err(ProfileError::io(path, "map"))
}

fn explain(path: &Path, file: &[u8], error: HeaderError) -> ProfileError {
    let path = path.to_path_buf();
    match error {
        HeaderError::Magic => ProfileError::Foreign {
            path,
            what: foreign(&file[..file.len().min(64)]),
        },
        HeaderError::Truncated => ProfileError::damaged(&path, format!("cut off after {} bytes", file.len())),
        HeaderError::Version(found) => ProfileError::Version {
            path,
            found,
            expected: VERSION,
        },
        HeaderError::ByteOrder => ProfileError::ByteOrder { path },
        HeaderError::Damaged(what) => ProfileError::damaged(&path, what),
    }
}

#[cfg(test)]
mod tests;
