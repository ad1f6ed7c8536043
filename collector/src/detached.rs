//! Recordings without a recorder: of programs that a service manager or a container engine starts, and of those whose
//! recorder was killed.
//!
//! The folder of such a recording holds the shards of all its processes, the page that they share
//! ([`pleach_wire::account`]), and [`SIGNATURE`]. Breakpoints need a recorder, so there are none. What a profile has can
//! be taken out of it ([`rotation`]).

#![allow(unsafe_code, reason = "system calls")]

mod rotation;

use crate::engines::error::{RecordError, io};
use crate::engines::options::RecordOptions;
use crate::engines::preload::account::RunAccount;
use crate::engines::preload::shard_reader::ShardReader;
use crate::engines::preload::{calibrate, find_libraries, settings};
use crate::engines::run_loop::{Recording, Runs};
use crate::engines::running::has_ended;
use crate::engines::session::Collected;
use crate::stats::{Stats, Unsampled};
use crate::sys::open_regular;
use crate::vector::Engine;
use pleach_wire::coverage;
use pleach_wire::settings::Settings;
use pleach_wire::shard;
use rotation::Rotation;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// Marker file of a recording directory: engine name and recorder's process id, 0 if none.
const SIGNATURE: &str = "recording";
/// The beginning of the names of recorders' directories.
const PREFIX: &str = "pleach-";

/// Limits of a recording without a recorder.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all shards together; sampling pauses when they are reached.
    pub max_bytes: u64,
    /// Seccomp filters in force when a process starts; one with more is not sampled.
    pub seccomp_filters: u64,
}

/// Begins a recording in a folder, which is made. Returns the environment of the processes to be recorded. Their user
/// must be able to write to the folder and its files.
///
/// # Errors
/// The sampler does not exist, the folder cannot be made, or it has a recording already.
pub fn begin(
    folder: &Path,
    options: &RecordOptions,
    limits: Limits,
) -> Result<Vec<(&'static str, OsString)>, RecordError> {
    let preload = find_libraries(&options.preload)?;
    let what = || format!("cannot begin a recording in {}", folder.display());
    fs::create_dir_all(folder).map_err(io(what()))?;
    let folder = folder.canonicalize().map_err(io(what()))?;
    RunAccount::begin(&folder, None).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => RecordError::Begun(folder.clone()),
        _ => io(what())(error),
    })?;
    sign_for(&folder, options.engine, 0).map_err(io(what()))?;
    let settings = Settings {
        seccomp_filters: limits.seccomp_filters,
        max_bytes: Some(limits.max_bytes),
        ..settings(options, calibrate::costs(&preload, false))
    };
    Ok(vec![
        ("LD_PRELOAD", preload.into_os_string()),
        (shard::DIRECTORY_VARIABLE, folder.into_os_string()),
        (shard::SETTINGS_VARIABLE, settings.to_text().into()),
    ])
}

/// A directory among temporary files for a recording of this process; deleted when dropped. Its name contains the
/// process id, so that the files of a killed recorder are found. It is locked while the recorder lives: in another
/// process namespace, no process has that id.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    _lock: File,
}

impl TemporaryFolder {
    /// Makes one.
    pub(crate) fn new() -> std::io::Result<Self> {
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir()?;
        let lock = File::open(folder.path())?;
        // A file system without locks: the process id has to do.
        let _ = lock.try_lock_shared();
        Ok(Self { folder, _lock: lock })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether a living recorder has locked a folder.
fn is_locked(folder: &Path) -> bool {
    let locked = File::open(folder).map(|folder| folder.try_lock());
    matches!(locked, Ok(Err(TryLockError::WouldBlock)))
}

/// The recorder's process id, by the name of its temporary directory.
fn recorder_of(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Marks a folder as this process's recording.
pub(crate) fn sign(folder: &Path, engine: Engine) -> std::io::Result<()> {
    sign_for(folder, engine, std::process::id())
}

fn sign_for(folder: &Path, engine: Engine, recorder: u32) -> std::io::Result<()> {
    // A new file: in a folder that another user made, there might be a link to another.
    let mut file = File::create_new(folder.join(SIGNATURE))?;
    file.write_all(format!("{} {recorder}\n", engine.name()).as_bytes())
}

/// Whether a folder is marked. The mark is empty where the recorder was killed while it wrote it, before the command
/// began.
fn is_signed(folder: &Path) -> bool {
    fs::metadata(folder.join(SIGNATURE)).is_ok_and(|mark| mark.len() > 0)
}

/// The engine of a recording, and its recorder.
fn signature(folder: &Path) -> std::io::Result<(Engine, u32)> {
    let text = std::io::read_to_string(open_regular(folder, SIGNATURE.as_bytes(), false)?)?;
    let (engine, recorder) = text.trim().split_once(' ').unwrap_or_default();
    let engine = [Engine::RunAhead, Engine::Step]
        .into_iter()
        .find(|known| known.name() == engine);
    engine
        .zip(recorder.parse().ok())
        .ok_or_else(|| std::io::Error::other("another version of pleach made it"))
}

/// Reads what was sampled so far and was not taken. Processes that run go on.
///
/// # Errors
/// The folder is none of a recording, or cannot be read.
pub fn collect(folder: &Path) -> Result<Recording, RecordError> {
    Ok(Collection::open(folder, false)?.recording)
}

/// Reads what a recorder that was killed has left in a folder: samples, and what breakpoints were hit.
///
/// # Errors
/// The folder is none of a recording, or cannot be read.
pub fn recover(folder: &Path) -> Result<Recording, RecordError> {
    let mut recording = collect(folder)?;
    if let Some(plans) = plans_of(folder).filter(|plans| plans.exists()) {
        let remarks = crate::coverage::add_left(&plans, &mut recording.vectors)
            .map_err(io(format!("cannot read {}", plans.display())))?;
        recording.remarks.extend(remarks);
    }
    Ok(recording)
}

/// What was sampled so far and was not taken.
#[derive(Debug)]
pub struct Collection {
    /// The recording.
    pub recording: Recording,
    folder: PathBuf,
    before: Rotation,
    after: Rotation,
    _lock: File,
}

impl Collection {
    /// Reads what was sampled so far and was not taken. Processes that run go on. `may_take`: [`Self::take`] may follow;
    /// no other collection may read the folder meanwhile.
    ///
    /// # Errors
    /// The folder is none of a recording, or cannot be read, or another collection is reading it.
    pub fn open(folder: &Path, may_take: bool) -> Result<Self, RecordError> {
        let what = || format!("cannot read a recording in {}", folder.display());
        let (engine, _) = signature(folder).map_err(|error| match error.kind() {
            ErrorKind::NotFound => RecordError::NoRecording(folder.to_owned()),
            _ => io(what())(error),
        })?;
        let lock = rotation::lock(folder, may_take)?;
        let before = Rotation::read(folder).map_err(io(what()))?;
        // Sampling from outside has none.
        let account = match RunAccount::open(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened.map_err(io(what()))?),
        };
        let mut reader = ShardReader::new(None, 0);
        reader.begin_after(before.shards());
        reader.run(folder, || ()).map_err(io(what()))?;
        let since = |before| account.as_ref().map(|account| account.unsampled_since(before));
        let after = Rotation::new(since(Unsampled::default()).unwrap_or_default(), reader.taken());
        let unsampled = since(before.unsampled).unwrap_or_default();
        let (mut vectors, found, unreclaimed) = reader.finish();
        let mut stats = Stats::from_vectors(&vectors, engine, found);
        stats.add_unsampled(&unsampled);
        vectors.processes.extend(unsampled.as_process());
        let collected = Collected {
            vectors,
            stats,
            remarks: Vec::new(),
            unreclaimed,
        };
        Ok(Self {
            recording: Recording::new(Runs::one(), None, collected),
            folder: folder.to_owned(),
            before,
            after,
            _lock: lock,
        })
    }

    /// Takes what was read out of the folder: the next collection begins where this one ended, and the space is free.
    ///
    /// # Errors
    /// The folder cannot be written, or its file system cannot free blocks.
    pub fn take(self) -> Result<(), RecordError> {
        self.after.commit(&self.folder, &self.before)
    }
}

/// Deletes a recording that is left over, and its breakpoints' plans.
///
/// # Errors
/// The folder cannot be deleted.
pub fn delete(folder: &Path) -> std::io::Result<()> {
    if let Some(plans) = plans_of(folder) {
        fs::remove_dir_all(plans)?;
    }
    fs::remove_dir_all(folder)
}

/// The folder of the breakpoints' plans of a recording, if a recorder made it, beside the recording's own.
fn plans_of(folder: &Path) -> Option<PathBuf> {
    let plans = fs::read_link(folder.join(OsStr::from_bytes(coverage::FOLDER.to_bytes()))).ok()?;
    let is_ours = plans.parent() == folder.parent()
        && plans
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    is_ours.then_some(plans)
}

/// This user's recordings among temporary files whose recorders were killed, oldest first.
pub fn left_over(temporary: &Path) -> Vec<PathBuf> {
    let is_left = |folder: &Path| signature(folder).is_ok_and(|(_, recorder)| is_dead(recorder)) && !is_locked(folder);
    let mut found: Vec<_> = own_folders(temporary).filter(|(_, folder)| is_left(folder)).collect();
    found.sort();
    found.into_iter().map(|(_, folder)| folder).collect()
}

/// Deletes what killed recorders of this user have left that holds no samples: plans of breakpoints, and folders of runs
/// that had not begun.
///
/// # Errors
/// A folder cannot be deleted.
pub fn delete_remains(temporary: &Path) -> std::io::Result<()> {
    for (_, folder) in own_folders(temporary) {
        let recorder = folder.file_name().and_then(recorder_of);
        if recorder.is_some_and(is_dead) && !is_signed(&folder) && !is_locked(&folder) {
            fs::remove_dir_all(folder)?;
        }
    }
    Ok(())
}

/// Folders that recorders of this user made, and when they were changed.
fn own_folders(temporary: &Path) -> impl Iterator<Item = (SystemTime, PathBuf)> {
    // SAFETY: no arguments.
    let user = unsafe { libc::geteuid() };
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()))
        .filter_map(|entry| Some((entry.metadata().ok()?, entry.path())))
        .filter(move |(metadata, _)| metadata.uid() == user && metadata.is_dir())
        .filter_map(|(metadata, folder)| Some((metadata.modified().ok()?, folder)))
}

/// Whether a recorder was there and is no more.
fn is_dead(recorder: u32) -> bool {
    recorder != 0 && has_ended(recorder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_a_dead_recorder_is_left_over() {
        let temporary = tempfile::tempdir().unwrap();
        // No process has the largest number.
        for (name, recorder) in [
            ("pleach-a", i32::MAX as u32),
            ("pleach-b", std::process::id()),
            ("pleach-c", 0),
        ] {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).unwrap();
            sign_for(&folder, Engine::RunAhead, recorder).unwrap();
        }
        fs::create_dir(temporary.path().join("pleach-d")).unwrap();
        assert_eq!(left_over(temporary.path()), [temporary.path().join("pleach-a")]);
    }

    #[test]
    fn a_folder_that_is_locked_is_of_a_living_recorder() {
        let temporary = tempfile::tempdir().unwrap();
        let dead = i32::MAX as u32;
        let folders = [format!("pleach-{dead}-run"), format!("pleach-{dead}-plans")].map(|n| temporary.path().join(n));
        folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
        sign_for(&folders[0], Engine::RunAhead, dead).unwrap();
        let locks = folders.clone().map(|folder| File::open(folder).unwrap());
        locks.iter().for_each(|lock| lock.try_lock_shared().unwrap());
        delete_remains(temporary.path()).unwrap();
        assert!(left_over(temporary.path()).is_empty() && folders[1].exists());
        drop(locks);
        assert_eq!(left_over(temporary.path()), folders[..1]);
        delete_remains(temporary.path()).unwrap();
        assert!(!folders[1].exists());
    }

    #[test]
    fn links_and_pipes_in_a_folder_are_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let (folder, other) = (temporary.path().join("folder"), temporary.path().join("other"));
        fs::create_dir(&folder).unwrap();
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, folder.join(SIGNATURE)).unwrap();
        assert!(sign_for(&folder, Engine::RunAhead, 0).is_err());
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        std::os::unix::fs::symlink(&other, folder.join("a.shard")).unwrap();
        let opened = open_regular(&folder, b"a.shard", true);
        assert_eq!(opened.unwrap_err().to_string(), "a.shard is a link");
        assert!(open_regular(&folder, b"../other", false).is_err());
        assert!(open_regular(temporary.path(), b"folder", false).is_err());
        assert!(open_regular(temporary.path(), b"other", true).is_ok());
    }

    #[test]
    fn remains_without_samples_are_deleted() {
        let temporary = tempfile::tempdir().unwrap();
        let dead = i32::MAX as u32;
        let own = std::process::id();
        let names = [
            format!("pleach-{dead}-plans"),
            format!("pleach-{own}-plans"),
            format!("pleach-{dead}-run"),
            "pleach-other".to_owned(),
        ];
        let folders = names.map(|name| temporary.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        sign_for(&folders[2], Engine::RunAhead, dead).unwrap();
        delete_remains(temporary.path()).unwrap();
        assert_eq!(
            folders.map(|folder| folder.exists()),
            [false, true, true, true],
            "a living recorder, samples, and what is not a recorder's stay"
        );
    }

    #[test]
    fn two_collections_do_not_take_the_same() {
        let folder = tempfile::tempdir().unwrap();
        sign_for(folder.path(), Engine::RunAhead, 0).unwrap();
        let one = Collection::open(folder.path(), true).unwrap();
        let refused = |may_take| {
            matches!(
                Collection::open(folder.path(), may_take),
                Err(RecordError::Collected(_))
            )
        };
        assert!(refused(true) && refused(false));
        one.take().unwrap();
        let both = [(); 2].map(|()| Collection::open(folder.path(), false).unwrap());
        assert!(refused(true));
        drop(both);
        assert!(!refused(true));
    }

    #[test]
    fn what_never_began_is_deleted() {
        let temporary = tempfile::tempdir().unwrap();
        let dead = i32::MAX as u32;
        let of = |name: &str| temporary.path().join(format!("{PREFIX}{dead}-{name}"));
        for name in ["begun", "empty", "unsigned"] {
            fs::create_dir(of(name)).unwrap();
        }
        sign_for(&of("begun"), Engine::RunAhead, dead).unwrap();
        fs::write(of("empty").join(SIGNATURE), "").unwrap();
        delete_remains(temporary.path()).unwrap();
        assert_eq!(left_over(temporary.path()), [of("begun")]);
        assert!(!of("empty").exists() && !of("unsigned").exists());
    }

    #[test]
    fn a_signature_of_another_version_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "run-ahead", "magic 7", "run-ahead x"] {
            fs::write(folder.path().join(SIGNATURE), text).unwrap();
            assert!(signature(folder.path()).is_err(), "{text}");
        }
        fs::remove_file(folder.path().join(SIGNATURE)).unwrap();
        sign_for(folder.path(), Engine::Step, 7).unwrap();
        assert_eq!(signature(folder.path()).unwrap(), (Engine::Step, 7));
    }
}
