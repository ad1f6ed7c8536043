//! Executions and coverage by source line, for scripts.

use super::frequency::Frequency;
use super::lines::{Line, SourceFile};
use super::names::demangled;
use pleach_profile::Covered;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Serialize)]
struct FileJson {
    path: String,
    functions: Vec<FunctionJson>,
    lines: Vec<LineJson>,
}

#[derive(Serialize)]
struct FunctionJson {
    function: String,
    /// Linkage name, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    linkage_name: Option<String>,
    /// First and last lines on which its blocks begin.
    first_line: u32,
    last_line: u32,
    /// That of its entry.
    frequency: Frequency,
    covered: Covered,
}

#[derive(Serialize)]
struct LineJson {
    line: u32,
    frequency: Frequency,
    covered: Covered,
    /// Blocks that begin on it, and those of them that are neither proved nor predicted to have been executed.
    blocks: u32,
    uncovered_blocks: u32,
}

/// An array of files, each with its functions and its lines on which a block begins.
///
/// # Errors
/// None that is known: all keys are strings.
pub fn source_json(files: &[(PathBuf, SourceFile)]) -> serde_json::Result<String> {
    let line = |(&line, known): (&u32, &Line)| LineJson {
        line,
        frequency: known.frequency,
        covered: known.covered,
        blocks: known.blocks,
        uncovered_blocks: known.uncovered,
    };
    let function = |known: &super::lines::Function| {
        let function = demangled(&known.name).into_owned();
        FunctionJson {
            linkage_name: (function != known.name).then(|| known.name.clone()),
            function,
            first_line: known.extent.0,
            last_line: known.extent.1,
            frequency: known.frequency,
            covered: known.covered,
        }
    };
    let files: Vec<FileJson> = files
        .iter()
        .map(|(path, file)| FileJson {
            path: path.display().to_string(),
            functions: file.functions.iter().map(function).collect(),
            lines: file.lines.iter().map(line).collect(),
        })
        .collect();
    Ok(serde_json::to_string_pretty(&files)? + "\n")
}
