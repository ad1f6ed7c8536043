//! Source files beside counts: what `pleach source` and `pleach coverage --text` have in common.

use super::Places;
use crate::commands::output::plural;
use anyhow::{Result, bail};
use pleach_profile::Profile;
use pleach_report::lines::SourceFile;
use pleach_report::listing::{Extent, Style};
use pleach_report::source_json::source_json;
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
        let extent = match (self.functions, self.all) {
            ([], true) => Extent::All,
            ([], false) => Extent::ExecutedFunctions(AROUND),
            _ => Extent::Blocks(AROUND),
        };
        for (path, file) in self.chosen(profile, places)? {
            self.add(&path, &file, extent, &mut out);
        }
        Ok(out)
    }

    /// The same files for scripts, with all lines on which a block begins.
    pub fn to_json(&self, profile: &Profile, places: &Places) -> Result<String> {
        Ok(source_json(&self.chosen(profile, places)?)?)
    }

    /// The files that are listed, those of each named function by themselves.
    fn chosen(&self, profile: &Profile, places: &Places) -> Result<Vec<(PathBuf, SourceFile)>> {
        let mut chosen = Vec::new();
        if self.functions.is_empty() {
            let files = places.lines(profile, |_| true)?.files.into_iter();
            let listed = files.filter(|(_, file)| self.all || is_executed(file)).collect();
            self.choose(listed, &mut chosen);
        }
        for function in self.functions {
            if !profile.functions.iter().any(|f| f.name == *function) {
                bail!("the profile has no function {function}: `pleach coverage` lists those that were executed");
            }
            let files = places.lines(profile, |name| name == function)?.files;
            if files.keys().all(|path| is_system(path)) {
                // It is the system's own.
                chosen.extend(files);
            } else {
                self.choose(files.into_iter().collect(), &mut chosen);
            }
        }
        Ok(chosen)
    }

    /// Adds files, without those of the system if these are not wanted.
    fn choose(&self, files: Vec<(PathBuf, SourceFile)>, chosen: &mut Vec<(PathBuf, SourceFile)>) {
        let is_left_out = |path: &Path| !self.system && is_system(path);
        let (system, own): (Vec<_>, Vec<_>) = files.into_iter().partition(|(path, _)| is_left_out(path));
        chosen.extend(own);
        if !system.is_empty() {
            let files = plural(system.len(), "file");
            eprintln!("pleach: note: {files} of the system and the compiler left out: --system shows them");
        }
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
