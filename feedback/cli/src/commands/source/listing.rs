//! Source files beside counts: what `pleach source` and `pleach coverage --text` have in common.

use super::Places;
use anyhow::{Result, bail};
use pleach_profile::Profile;
use pleach_report::lines::SourceFile;
use pleach_report::listing::Style;
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
}

impl Listing<'_> {
    /// The listing, with a legend.
    pub fn to_text(&self, profile: &Profile, places: &Places) -> Result<String> {
        let mut out = String::from(self.style.legend());
        if self.functions.is_empty() {
            let lines = places.lines(profile, |_| true)?;
            for (path, file) in lines.files.iter().filter(|(_, file)| self.is_listed(file)) {
                self.add(path, file, None, &mut out);
            }
        }
        for function in self.functions {
            if !profile.functions.iter().any(|f| f.name == *function) {
                bail!("the profile has no function {function}: `pleach coverage` lists those that were executed");
            }
            let lines = places.lines(profile, |name| name == function)?;
            for (path, file) in &lines.files {
                self.add(path, file, Some(AROUND), &mut out);
            }
        }
        Ok(out)
    }

    /// Whether a whole file is listed: coverage is of all files, counts are of those with executions.
    fn is_listed(&self, file: &SourceFile) -> bool {
        self.style == Style::Counts || file.lines.values().any(|line| line.count > 0)
    }

    fn add(&self, path: &Path, file: &SourceFile, around: Option<u32>, out: &mut String) {
        let (found, text) = self.read(path);
        let _ = writeln!(out, "\n{}:", found.display());
        if text.is_none() {
            *out += "  (not there: --source-dir says where it is)\n";
        }
        *out += &file.listing(self.style, text.as_deref(), around);
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
