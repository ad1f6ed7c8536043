//! The profile that a command writes, and the one that it replaces.

use anyhow::{Context, Result, bail};
use pleach_profile::Profile;
use pleach_profile::file::{ProfileFile, is_profile};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Writes a profile. One that is there is kept, as `FILE.old`.
///
/// # Errors
/// Something else is there, or the file cannot be written.
pub fn write_profile(output: &Path, profile: &Profile) -> Result<()> {
    ensure_replaceable(output)?;
    keep_old(output)?;
    Ok(pleach_store::write_profile(output, profile)?)
}

/// Fails if a file is there that is neither a profile nor empty: a mistaken name must not cost the user a program or a
/// source.
///
/// # Errors
/// There is such a file.
pub fn ensure_replaceable(output: &Path) -> Result<()> {
    let mut beginning = Vec::new();
    let read = |file: File| file.take(8).read_to_end(&mut beginning);
    let is_file = output.metadata().is_ok_and(|found| found.is_file());
    if is_file && File::open(output).and_then(read).is_ok() && !beginning.is_empty() && !is_profile(&beginning) {
        bail!(
            "{} exists and is no profile, so it is not replaced: name another file, or remove it",
            output.display()
        );
    }
    Ok(())
}

/// Gives an existing profile a second name, `FILE.old`, under which it stays when `FILE` is replaced. `FILE` is there at
/// every moment.
pub fn keep_old(output: &Path) -> Result<()> {
    if ProfileFile::open(output).is_err() {
        return Ok(());
    }
    let mut old = output.as_os_str().to_owned();
    old.push(".old");
    let old = Path::new(&old);
    let kept = match old.symlink_metadata() {
        Ok(_) => std::fs::remove_file(old),
        Err(_) => Ok(()),
    };
    kept.and_then(|()| {
        // Some file systems have no second names.
        std::fs::hard_link(output.canonicalize()?, old).or_else(|_| std::fs::copy(output, old).map(drop))
    })
    .with_context(|| format!("cannot keep {} as {}", output.display(), old.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_is_there_gets_a_second_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let [output, old] = ["a.pleach", "a.pleach.old"].map(|name| folder.path().join(name));
        keep_old(&output).expect("nothing is there");
        std::fs::write(&output, "notes").expect("written");
        assert!(write_profile(&output, &Profile::default()).is_err());
        assert_eq!(std::fs::read_to_string(&output).expect("there"), "notes");
        std::fs::write(&output, "").expect("written");
        write_profile(&output, &Profile::default()).expect("an empty file is replaced");
        assert!(!old.exists());
        pleach_store::write_profile(&output, &Profile::default()).expect("written");
        for _ in 0..2 {
            keep_old(&output).expect("kept");
            assert!(ProfileFile::open(&output).is_ok() && ProfileFile::open(&old).is_ok());
        }
    }
}
