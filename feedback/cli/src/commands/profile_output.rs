//! The profile that a command writes, and the one that it replaces.

use anyhow::{Context, Result};
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use std::path::Path;

/// Writes a profile. One that is there is kept, as `FILE.old`.
pub fn write_profile(output: &Path, profile: &Profile) -> Result<()> {
    keep_old(output)?;
    Ok(pleach_store::write_profile(output, profile)?)
}

/// Gives an existing profile a second name, `FILE.old`, under which it stays when `FILE` is replaced. `FILE` is there at
/// every moment. Anything else than a profile is replaced without, as every output is.
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
        keep_old(&output).expect("no profile");
        assert!(output.exists() && !old.exists());
        pleach_store::write_profile(&output, &Profile::default()).expect("written");
        for _ in 0..2 {
            keep_old(&output).expect("kept");
            assert!(ProfileFile::open(&output).is_ok() && ProfileFile::open(&old).is_ok());
        }
    }
}
