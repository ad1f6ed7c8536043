//! Keeps the documents honest: the README stays short, links lead somewhere, and files that ARCHITECTURE.md names
//! exist.

use crate::support::built;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MAX_README_LINES: usize = 150;
const MAX_COLUMNS: usize = 120;
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "testsuite/RESULTS.md",
    "feedback/cli/GUIDE.md",
    "feedback/cli/TUTORIAL.md",
    "feedback/ALGORITHMS.md",
    "feedback/ARCHITECTURE.md",
];

/// The repository, wherever in it this package is.
fn root() -> PathBuf {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = folders.find(|folder| folder.join("README.md").is_file() && folder.join("annotate").is_dir());
    root.expect("this package is inside the repository").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All documents of the repository, without what builds leave.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if name != "target" && !name.as_encoded_bytes().starts_with(b".") {
                documents(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines of a document outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The targets of `[…](target)`, outside of code.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in prose(text) {
        // The text between backticks is code: every second part.
        for part in line.split('`').step_by(2) {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(targets.map(|(target, _)| target));
        }
    }
    found
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let letters = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() })
            .collect()
    };
    headings.map(letters).collect()
}

#[test]
fn the_readme_is_short() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(
        lines <= MAX_README_LINES,
        "README.md has {lines} lines, more than {MAX_README_LINES}"
    );
}

#[test]
fn lines_are_short() {
    let mut long = Vec::new();
    for document in DOCUMENTS {
        let text = read(&root().join(document));
        let all = document == "README.md";
        // Rows of tables and output of programs cannot be broken; the README has none that is too long.
        let lines: Vec<&str> = if all {
            text.lines().collect()
        } else {
            prose(&text).collect()
        };
        let is_long = |line: &&&str| line.chars().count() > MAX_COLUMNS && (all || !line.starts_with('|'));
        long.extend(lines.iter().filter(is_long).map(|line| format!("{document}: {line}")));
    }
    assert!(
        long.is_empty(),
        "longer than {MAX_COLUMNS} columns:\n{}",
        long.join("\n")
    );
}

#[test]
fn links_lead_somewhere() {
    let mut found = Vec::new();
    documents(&root(), &mut found);
    let mut dead = Vec::new();
    for document in found {
        for link in links(&read(&document)) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => document.clone(),
                _ => document.parent().unwrap().join(file),
            };
            let leads = target.exists() && (anchor.is_empty() || anchors(&read(&target)).iter().any(|a| a == anchor));
            if !leads {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn files_of_the_architecture_exist() {
    let root = root();
    let text = read(&root.join("feedback/ARCHITECTURE.md"));
    let code = prose(&text).flat_map(|line| line.split('`').skip(1).step_by(2));
    let named: Vec<&str> = code.filter(|code| code.contains('/')).collect();
    assert!(named.len() > 50, "only {} files are named", named.len());
    let missing: Vec<&str> = named.into_iter().filter(|file| !root.join(file).exists()).collect();
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

/// A command's `--help`, if there is such a command.
fn help(name: &str, verbs: &[&str]) -> Option<String> {
    let shown = Command::new(built().join(name)).args(verbs).arg("--help").output();
    let shown = shown.unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    shown.status.success().then_some(text)
}

#[test]
fn commands_of_the_papers_page_exist() {
    let text = read(&root().join("testsuite/papers/COVERAGE.md"));
    let mut checked = 0;
    for command in prose(&text).flat_map(|line| line.split('`').skip(1).step_by(2)) {
        let words: Vec<&str> = command.split_whitespace().collect();
        if !["pleach", "pleach-papers", "pleach-bench"].contains(&words[0]) {
            assert!(command.contains('/'), "`{command}` is no command");
            continue;
        }
        // `flags` has subcommands of its own.
        let verbs = 1 + usize::from(words.get(1) == Some(&"flags"));
        let verbs = words.get(1..=verbs).expect("a subcommand");
        let help = help(words[0], verbs).unwrap_or_else(|| panic!("`{command}`: no such command"));
        for option in words.iter().filter(|word| word.starts_with("--")) {
            let is_known = help.split([' ', '\n', ',', '=', '[', '`']).any(|word| word == *option);
            assert!(is_known, "`{command}`: no {option} in\n{help}");
        }
        checked += 1;
    }
    assert!(checked > 25, "only {checked} commands");
    // Every row has a command or a reason.
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("| here |"));
    for row in rows {
        let here = row.split('|').nth(2).unwrap_or_default();
        assert!(here.contains('`') || here.contains("does not apply: "), "{row}");
    }
}
