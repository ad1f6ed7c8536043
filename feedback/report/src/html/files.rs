//! Coverage by source file, and the text of sources.

use super::rows::{States, state, states};
use super::{Functions, PageInputs, detail};
use crate::lines::SourceFile;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Bytes of source text in a page: some 5 MB of them take 1 MB of the page.
const MAX_TEXT: usize = 10 << 20;

/// Source files with functions of the profile.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Files {
    /// By path.
    pub files: Vec<File>,
    /// Number of functions whose source file is unknown.
    pub unknown: usize,
    /// By position of the function: the position of its file.
    #[serde(skip)]
    pub of_function: Vec<Option<usize>>,
}

/// A source file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct File {
    /// Its path in debug information; without that, the name of the compiled file.
    pub path: String,
    /// Blocks of its functions.
    pub blocks: States,
    /// Lines on which a block begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<States>,
    /// Each such line: number, executions, state, how that is known, whether some of its blocks are not executed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<(u32, u64, usize, pleach_profile::Covered, bool)>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why there is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<&'static str>,
}

impl Files {
    pub(super) fn new(functions: &Functions<'_>, inputs: &PageInputs<'_>) -> Self {
        let path = |at: usize| {
            let graph = functions.all[at].graph?;
            let known = (inputs.file_of)(graph);
            let compiled = || (!graph.source_file.is_empty()).then(|| PathBuf::from(&graph.source_file));
            known.or_else(compiled)
        };
        let mut paths: Vec<Option<PathBuf>> = (0..functions.all.len()).map(path).collect();
        complete(&mut paths);
        let mut by_path: BTreeMap<&Path, (States, bool)> = BTreeMap::new();
        let mut detailed = 0;
        for (function, path) in functions.all.iter().zip(&paths) {
            let is_detailed = detailed < inputs.detailed && detail::has_detail(function);
            detailed += usize::from(is_detailed);
            let Some(path) = path else { continue };
            let (blocks, wanted) = by_path.entry(path).or_default();
            blocks
                .iter_mut()
                .zip(states(function))
                .for_each(|(sum, part)| *sum += part);
            *wanted |= is_detailed;
        }
        let positions: BTreeMap<&Path, usize> = by_path.keys().enumerate().map(|(at, &path)| (path, at)).collect();
        let of_function: Vec<Option<usize>> = paths
            .iter()
            .map(|path| positions.get(path.as_deref()?).copied())
            .collect();
        let mut room = MAX_TEXT;
        let files = by_path.iter().map(|(&path, &(blocks, wanted))| {
            let mut file = File {
                path: path.display().to_string(),
                blocks,
                lines: None,
                counts: Vec::new(),
                text: None,
                missing: None,
            };
            if let Some(lines) = inputs.lines.and_then(|all| all.files.get(path)) {
                file.add_lines(lines, functions.executions);
                file.add_text(path, wanted, inputs, &mut room);
            } else {
                file.missing =
                    Some("no debug information for it was given: build with -g and name the program with --binary");
            }
            file
        });
        Self {
            files: files.collect(),
            unknown: of_function.iter().filter(|file| file.is_none()).count(),
            of_function,
        }
    }
}

/// Files are known by whole paths, or as compilers were told. The latter get the whole path that ends so, if it is the
/// only one.
fn complete(paths: &mut [Option<PathBuf>]) {
    let whole: BTreeSet<PathBuf> = paths
        .iter()
        .flatten()
        .filter(|path| path.is_absolute())
        .cloned()
        .collect();
    for path in paths.iter_mut().flatten().filter(|path| path.is_relative()) {
        let mut ending = whole.iter().filter(|whole| whole.ends_with(&*path));
        if let (Some(only), None) = (ending.next(), ending.next()) {
            only.clone_into(path);
        }
    }
}

impl File {
    fn add_lines(&mut self, lines: &SourceFile, executions: f64) {
        let mut states = States::default();
        for (&number, line) in &lines.lines {
            let state = state(line.covered);
            states[state] += 1;
            let partly = line.covered.is_executed() && line.uncovered > 0;
            let count = (line.frequency.share * executions).round() as u64;
            self.counts.push((number, count, state, line.covered, partly));
        }
        self.lines = Some(states);
    }

    fn add_text(&mut self, path: &Path, wanted: bool, inputs: &PageInputs<'_>, room: &mut usize) {
        if !wanted {
            self.missing = Some("none of its functions is shown in detail: --top shows more");
            return;
        }
        match (inputs.text_of)(path) {
            None => self.missing = Some("the file is not there: --source-dir says where it is"),
            Some(text) if text.len() > *room => self.missing = Some("left out to keep the page small"),
            Some(text) => {
                *room -= text.len();
                self.text = Some(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_get_the_only_whole_path_that_ends_so() {
        let path = |text: &str| Some(PathBuf::from(text));
        let mut paths = [
            path("/app/src/a.c"),
            path("src/a.c"),
            path("a.c"),
            path("/app/src/util.h"),
            path("/lib/src/util.h"),
            path("util.h"),
            None,
        ];
        complete(&mut paths);
        let completed = ["/app/src/a.c"; 3].map(path);
        assert_eq!(paths[..3], completed);
        assert_eq!((&paths[5], &paths[6]), (&path("util.h"), &None), "two files end so");
    }
}
