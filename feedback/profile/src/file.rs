//! Reads profile files: mapped into memory, so that a compiler touches only the records of its own functions.

use super::error::{ProfileError, foreign};
use super::layout::{ENTRY, Entry, Header, HeaderError, Section, VERSION, record_checksum};
use super::summary::Summary;
use super::{Anchor, FunctionProfile, Profile, Provenance, record};
use memmap2::Mmap;
use pleach_annotate::id::{CfgHash, FunctionId, ModuleHash};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Identity of a profile file's whole content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProfileDigest(pub u64);

impl fmt::Display for ProfileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a profile has to say about a function.
#[derive(Clone, PartialEq, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of that variant, and there is one at a time"
)]
pub enum Lookup {
    /// Counts for this very graph.
    Found(FunctionProfile),
    /// Counts for another graph only: the function changed since it was recorded.
    Stale {
        /// The graph that the profile knows (the first of several).
        profile_hash: CfgHash,
    },
    /// The profile does not know the function.
    Absent,
}

/// An open profile file. Header and index are known to be undamaged; records and the other sections are checked when
/// they are read.
#[derive(Debug)]
pub struct ProfileFile {
    path: PathBuf,
    map: Mmap,
    header: Header,
    digest: ProfileDigest,
}

impl ProfileFile {
    /// Opens a profile. Reads header and index, but no records.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let map = map(path)?;
        let header = Header::decode(&map).map_err(|error| explain(path, &map, error))?;
        let file = Self {
            digest: ProfileDigest(xxh3_64(&map[..super::layout::HEADER])),
            path: path.into(),
            map,
            header,
        };
        file.check_length()?;
        file.checked(file.header.index, "index")?;
        file.check_order()?;
        Ok(file)
    }

    /// The file's name, as it was opened.
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

    /// Estimated executions of all paths of all functions: what a path's share is of.
    pub fn path_flow(&self) -> f64 {
        self.header.path_flow
    }

    /// Numbers about the whole profile.
    pub fn summary(&self) -> &Summary {
        &self.header.summary
    }

    /// Identity of the whole content: two files with the same digest hold the same profile.
    pub fn digest(&self) -> ProfileDigest {
        self.digest
    }

    /// Number of records: functions, each with each of its graphs.
    pub fn len(&self) -> usize {
        self.index().len() / ENTRY
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the profile says about a function with this graph.
    ///
    /// A local function whose module is not known is looked for by name and graph: its module's hash changes with any
    /// function that is added to the file. It is taken where one local function of the profile has both.
    pub fn lookup(&self, id: FunctionId, cfg_hash: CfgHash) -> Result<Lookup, ProfileError> {
        let mut other = None;
        for entry in self.entries_from(id).take_while(|entry| entry.id == id) {
            if entry.cfg_hash == cfg_hash {
                return Ok(Lookup::Found(self.read(&entry)?));
            }
            other.get_or_insert(entry.cfg_hash);
        }
        if let Some(profile_hash) = other {
            return Ok(Lookup::Stale { profile_hash });
        }
        match self.local_elsewhere(id, cfg_hash) {
            Some(entry) => Ok(Lookup::Found(self.read(&entry)?)),
            None => Ok(Lookup::Absent),
        }
    }

    fn entries_from(&self, id: FunctionId) -> impl Iterator<Item = Entry> {
        (self.first_of(id)..self.len()).map(|at| self.entry(at))
    }

    fn local_elsewhere(&self, id: FunctionId, cfg_hash: CfgHash) -> Option<Entry> {
        if id.module == ModuleHash(0) {
            return None;
        }
        let first_local = FunctionId {
            guid: id.guid,
            module: ModuleHash(1),
        };
        let mut same = self
            .entries_from(first_local)
            .take_while(|entry| entry.id.guid == id.guid)
            .filter(|entry| entry.cfg_hash == cfg_hash);
        let found = same.next()?;
        same.next().is_none().then_some(found)
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

    /// The raw vectors, where they were kept: a file of the collector.
    pub fn vectors(&self) -> Result<Option<&[u8]>, ProfileError> {
        let bytes = self.checked(self.header.vectors, "vectors")?;
        Ok(self.header.has_vectors.then_some(bytes))
    }

    /// The whole profile in memory.
    pub fn read_all(&self) -> Result<Profile, ProfileError> {
        Ok(Profile {
            provenance: self.provenance()?,
            scale: self.scale(),
            anchor: self.anchor(),
            functions: self.functions().collect::<Result<_, _>>()?,
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

    /// Binary search needs the order, whoever wrote the file.
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
        // Bounds were checked when the file was opened.
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

    fn entry(&self, at: usize) -> Entry {
        Entry::decode(&self.index()[at * ENTRY..(at + 1) * ENTRY])
    }

    /// The first record of a function, or where it would be.
    fn first_of(&self, id: FunctionId) -> usize {
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

    fn read(&self, entry: &Entry) -> Result<FunctionProfile, ProfileError> {
        let damaged =
            |what: &str| ProfileError::damaged(&self.path, format!("record of function {}: {what}", entry.id));
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
        record::decode(entry.id, entry.cfg_hash, record).map_err(damaged)
    }
}

fn map(path: &Path) -> Result<Mmap, ProfileError> {
    let metadata = path.metadata().map_err(ProfileError::io(path, "open"))?;
    // Before opening: that would block on a pipe nobody writes to.
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
    // SAFETY: the map is read-only, and profiles are replaced by renaming (see `write`), never changed in place.
    unsafe { Mmap::map(&file) }.map_err(ProfileError::io(path, "map"))
}

fn explain(path: &Path, file: &[u8], error: HeaderError) -> ProfileError {
    let path = path.to_path_buf();
    match error {
        HeaderError::Magic => ProfileError::Foreign {
            path,
            what: foreign(&file[..file.len().min(64)]),
        },
        HeaderError::Truncated => ProfileError::Length {
            path,
            found: file.len() as u64,
            expected: super::layout::HEADER as u64,
        },
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
