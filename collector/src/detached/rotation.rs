//! Taking out of a recording what was collected, so that a service can be recorded for weeks.
//!
//! The blocks of the frames that were taken are freed, except of those that identify a process, and its mappings: what
//! the process writes later refers to them. [`FILE`] says what was taken. It is written before blocks are freed, so a
//! collector that is killed leaves nothing that would be counted again; but it is written after the profile, so one
//! that is killed between the two has taken nothing.

use super::SIGNATURE;
use crate::convert::Taken;
use crate::engines::error::{RecordError, io};
use crate::engines::preload::account::RunAccount;
use crate::engines::preload::shard_reader;
use crate::stats::Unsampled;
use crate::sys::open_regular;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{BufReader, Error, ErrorKind, Result, Write};
use std::path::Path;

/// The file that says what was taken of a recording.
const FILE: &str = "taken";

/// What collections took of a recording.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Rotation {
    /// Reports of the unsampled processes.
    pub(super) unsampled: Unsampled,
    /// By the names of shards.
    shards: HashMap<String, Taken>,
}

impl Rotation {
    /// What earlier collections took.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        match open_regular(folder, FILE.as_bytes(), false) {
            Ok(file) => serde_json::from_reader(BufReader::new(file)).map_err(Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn new(unsampled: Unsampled, shards: &HashMap<Vec<u8>, Taken>) -> Self {
        let name = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
        let shards = shards.iter().map(|(key, taken)| (name(key), taken.clone())).collect();
        Self { unsampled, shards }
    }

    /// By the names of shards.
    pub(super) fn shards(&self) -> HashMap<Vec<u8>, Taken> {
        let shards = self.shards.iter();
        shards
            .map(|(name, taken)| (name.clone().into_bytes(), taken.clone()))
            .collect()
    }

    /// Takes what `self` has beyond `before` out of the recording.
    ///
    /// # Errors
    /// A file cannot be written, or the file system cannot free blocks.
    pub(super) fn commit(&self, folder: &Path, before: &Self) -> std::result::Result<(), RecordError> {
        let what = || format!("cannot note in {} what the profile has taken", folder.display());
        let text = serde_json::to_vec(self).map_err(|error| io(what())(Error::other(error)))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(io(what()))?;
        file.write_all(&text).map_err(io(what()))?;
        file.persist(folder.join(FILE))
            .map_err(|error| io(what())(error.error))?;
        let mut freed = 0;
        for (name, taken) in &self.shards {
            if before.shards.get(name) != Some(taken) {
                let what = || {
                    format!(
                        "the profile is written and its samples are taken, but the space of {} cannot be freed: begin a new \
                         recording, on a file system that can free blocks within files, before this one is full",
                        folder.join(name).display()
                    )
                };
                let already = before.shards.get(name).map_or(0, |before| before.bytes);
                freed += shard_reader::free(folder, name.as_bytes(), already..taken.bytes).map_err(io(what()))?;
            }
        }
        match RunAccount::subtract_written(folder, freed) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(io(what())(error)),
            _ => Ok(()),
        }
    }
}

/// Keeps two collections from taking the same samples. `exclusive`: this one may take some.
pub(super) fn lock(folder: &Path, exclusive: bool) -> std::result::Result<File, RecordError> {
    let what = || format!("cannot open the recording in {}", folder.display());
    let file = open_regular(folder, SIGNATURE.as_bytes(), false).map_err(io(what()))?;
    let locked = if exclusive {
        file.try_lock()
    } else {
        file.try_lock_shared()
    };
    if matches!(locked, Err(TryLockError::WouldBlock)) {
        return Err(RecordError::Collected(folder.to_owned()));
    }
    Ok(file)
}
