//! Writes profiles, counts and other results atomically: a file appears under its name only when it is complete and on
//! disk. The code is separate from the packages that read these files, so that the compiler plugin contains no code
//! that writes.

use pleach_ball_larus::counts::error::CountError;
use pleach_ball_larus::counts::{Counts, write as counts_file};
use pleach_profile::Profile;
use pleach_profile::error::ProfileError;
use pleach_profile::write as profile_file;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Why a path cannot be replaced by a file.
enum Obstacle {
    /// There is something other than a file, for instance a directory.
    NotAFile(&'static str),
    /// The operating system refused.
    Io(io::Error),
}

/// Writes a profile to a file. Its functions are sorted.
///
/// The file appears under its name when it is complete and on disk. On failure, an existing file stays as it was and no
/// temporary file is left.
///
/// # Errors
/// Fails if the file cannot be written, or if the profile has values that cannot be stored.
pub fn write_profile(path: &Path, profile: &Profile) -> Result<(), ProfileError> {
    let target = resolve(path).map_err(|obstacle| match obstacle {
        Obstacle::NotAFile(what) => ProfileError::NotAFile {
            path: path.into(),
            what,
        },
        Obstacle::Io(source) => ProfileError::io(path, "resolve")(source),
    })?;
    let encoded = profile_file::encode(profile).map_err(|what| ProfileError::Unstorable {
        path: path.into(),
        what,
    })?;
    let write = |file: &mut File| encoded.parts().iter().try_for_each(|part| file.write_all(part));
    replace(&target, write).map_err(ProfileError::io(path, "write"))
}

/// Writes counts to a file, in one segment for each unit. Problems are not written.
///
/// The file appears under its name when it is complete and on disk. On failure, an existing file stays as it was and no
/// temporary file is left.
///
/// # Errors
/// Fails if the file cannot be written, or if a count belongs to a counter that its function does not have.
pub fn write_counts(path: &Path, counts: &Counts) -> Result<(), CountError> {
    counts_file::check(counts).map_err(|what| CountError::Unstorable {
        path: path.into(),
        what,
    })?;
    let io_error = |action| {
        move |source| CountError::Io {
            path: path.into(),
            action,
            source,
        }
    };
    let target = resolve(path).map_err(|obstacle| match obstacle {
        Obstacle::NotAFile(what) => CountError::NotAFile {
            path: path.into(),
            what,
        },
        Obstacle::Io(source) => io_error("resolve")(source),
    })?;
    replace(&target, |file| counts_file::encode(file, counts)).map_err(io_error("write"))
}

/// The file to replace. A symbolic link is followed, so that the link stays.
fn resolve(path: &Path) -> Result<PathBuf, Obstacle> {
    let Ok(metadata) = path.metadata() else {
        return Ok(path.into());
    };
    if metadata.is_dir() {
        return Err(Obstacle::NotAFile("a directory"));
    }
    if !metadata.is_file() {
        return Err(Obstacle::NotAFile("a device or pipe"));
    }
    path.canonicalize().map_err(Obstacle::Io)
}

/// Writes a file atomically: an existing file stays as it was until the new one is complete and on disk. Writes
/// directly to a device or pipe.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match resolve(path) {
        Ok(target) => replace(&target, |file| file.write_all(bytes)),
        Err(Obstacle::NotAFile(_)) => std::fs::write(path, bytes),
        Err(Obstacle::Io(error)) => Err(error),
    }
}

/// Checks that files can be created in a directory, before a long computation whose result goes there.
pub fn probe_writable(directory: &Path) -> io::Result<()> {
    temporary(directory).map(drop)
}

/// A file that is removed when it is dropped, with the usual permissions minus the umask.
fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    let permissions = Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .prefix(".pleach-")
        .permissions(permissions)
        .tempfile_in(directory)
}

/// Replaces `target` once the new content is complete and on disk. On failure, `target` stays as it was and no
/// temporary file is left.
fn replace(target: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = temporary(directory)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|e| e.error)?;
    // Makes the new name durable, too. Some file systems cannot do that; the content itself is already on disk.
    let _ = File::open(directory).and_then(|d| d.sync_all());
    Ok(())
}
