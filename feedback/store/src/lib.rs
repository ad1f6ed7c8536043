//! Writes profiles, counts and other results: wholly, or not at all. Apart from the packages that read them, so that
//! nothing in a compiler's process can write.

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

/// Why no file can take a path's place.
enum Obstacle {
    /// It is not a file, but this.
    NotAFile(&'static str),
    /// The system says no.
    Io(io::Error),
}

/// Writes a profile to a file, sorted, whatever the order of its functions in memory.
///
/// The file appears under its name when it is complete and on disk. On failure what was there before is untouched, and
/// nothing is left behind.
///
/// # Errors
/// The file cannot be written, or the profile holds what cannot be stored.
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
/// The file appears under its name when it is complete and on disk. On failure what was there before is untouched, and
/// nothing is left behind.
///
/// # Errors
/// The file cannot be written, or the counts are for numbers that their functions do not have.
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

/// The file to replace: what a symbolic link points at, not the link.
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

/// Writes a file wholly, or not at all: what was there before is untouched until all is on disk. What is no file (a device,
/// a pipe) is written to as it is.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match resolve(path) {
        Ok(target) => replace(&target, |file| file.write_all(bytes)),
        Err(Obstacle::NotAFile(_)) => std::fs::write(path, bytes),
        Err(Obstacle::Io(error)) => Err(error),
    }
}

/// Finds out whether files can be created in a directory, before work is done whose result goes there.
pub fn probe_writable(directory: &Path) -> io::Result<()> {
    temporary(directory).map(drop)
}

/// A file that is removed when it is dropped, with the usual permissions, less what the umask takes away.
fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    let permissions = Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .prefix(".pleach-")
        .permissions(permissions)
        .tempfile_in(directory)
}

/// Puts what is written in a file's place when it is complete and on disk. On failure what was there before is untouched,
/// and nothing is left behind.
fn replace(target: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = temporary(directory)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|e| e.error)?;
    // The new name must survive a crash too; not every file system can say so, and the content is safe by now.
    let _ = File::open(directory).and_then(|d| d.sync_all());
    Ok(())
}
