//! Source files beside counts: what `pleach source` and `pleach coverage --text` have in common.

use super::Places;
use crate::commands::output::plural;
use anyhow::{Result, bail};
use pleach_profile::Profile;
use pleach_report::lines::SourceFile;
use pleach_report::listing::{Extent, Style};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Lines shown before and after a function's.
const AROUND: u32 = 3;

/// What to list.
pub struct Listing<'a> {
    /// How it looks.
    pub style: Style,
    /// Linkage names of functions to list, each by itself; empty for whole files.
    pub functions: &'a [String],
    /// Directories to look for sources in, by file name.
    pub source_dirs: &'a [PathBuf],
    /// Whole files, functions that were not executed included.
    pub all: bool,
    /// Headers of the system and of the compiler, too.
    pub system: bool,
}

impl Listing<'_> {
    /// The listing, with a legend.
    pub fn to_text(&self, profile: &Profile, places: &Places) -> Result<String> {
        let mut out = String::from(self.style.legend());
        if self.functions.is_empty() {
            let lines = places.lines(profile, |_| true)?;
            let extent = if self.all {
                Extent::All
            } else {
                Extent::ExecutedFunctions(AROUND)
            };
            let listed = lines.files.iter().filter(|(_, file)| self.all || is_executed(file));
            let (system, own): (Vec<_>, Vec<_>) = listed.partition(|(path, _)| !self.system && is_system(path));
            for (path, file) in own {
                self.add(path, file, extent, &mut out);
            }
            if !system.is_empty() {
                let files = plural(system.len(), "file");
                eprintln!("pleach: note: {files} of the system and the compiler left out: --system shows them");
            }
        }
        for function in self.functions {
            if !profile.functions.iter().any(|f| f.name == *function) {
                bail!("the profile has no function {function}: `pleach coverage` lists those that were executed");
            }
            let lines = places.lines(profile, |name| name == function)?;
            for (path, file) in &lines.files {
                self.add(path, file, Extent::Blocks(AROUND), &mut out);
            }
        }
        Ok(out)
    }

    fn add(&self, path: &Path, file: &SourceFile, extent: Extent, out: &mut String) {
        let (found, text) = self.read(path);
        let _ = writeln!(out, "\n{}:", found.display());
        if text.is_none() {
            *out += "  (not there: --source-dir says where it is)\n";
        }
        *out += &file.listing(self.style, text.as_deref(), extent);
    }

    /// The source file at its compiled path, or with the same name in another directory.
    fn read(&self, path: &Path) -> (PathBuf, Option<String>) {
        let elsewhere = self.source_dirs.iter();
        let elsewhere = elsewhere.filter_map(|folder| Some(folder.join(path.file_name()?)));
        for candidate in std::iter::once(path.to_owned()).chain(elsewhere) {
            if let Ok(bytes) = std::fs::read(&candidate) {
                return (candidate, Some(String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        (path.to_owned(), None)
    }
}

fn is_executed(file: &SourceFile) -> bool {
    file.functions.iter().any(|function| function.is_executed)
}

/// Whether a file is a header of the system, of the compiler or of a language's own library.
fn is_system(path: &Path) -> bool {
    const FOLDERS: [&str; 5] = ["/usr/include", "/usr/lib", "/usr/lib64", "/usr/local/include", "/rustc"];
    FOLDERS.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_system() {
        let is = |path: &str| is_system(Path::new(path));
        assert!(is("/usr/include/stdio.h") && is("/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/vector"));
        assert!(!is("/usr/src/app/main.c") && !is("/home/me/main.c") && !is("main.c"));
    }
}
