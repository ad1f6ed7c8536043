//! Runs the commands of the tutorial, one after the other, and compares what they print with what it shows. Numbers,
//! the widths of columns and the rows of tables differ from run to run; `[…]` stands for any text. `BLESS=1` writes the
//! output into the tutorial.

use crate::support::{built, output, program, scratch};
use pleach_harness::Bench;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Any text, in an expected line; in a line of its own, any lines.
const ANYTHING: &str = "[…]";

/// A part of the tutorial.
#[derive(Debug, PartialEq)]
enum Part {
    /// Prose, and code that is not run.
    Text(String),
    /// A script that prints nothing.
    Script(String),
    /// A command, and what it prints.
    Command { command: String, expected: String },
    /// The beginning or end of a block.
    Fence(String),
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut language = None::<String>;
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.strip_prefix("```") {
            language = match language {
                None => Some(name.trim().to_owned()),
                Some(_) => None,
            };
            parts.push(Part::Fence(line.to_owned()));
            continue;
        }
        match (language.as_deref(), parts.last_mut()) {
            (Some("console"), _) if line.starts_with("$ ") => parts.push(Part::Command {
                command: line[2..].to_owned(),
                expected: String::new(),
            }),
            (Some("console"), Some(Part::Command { expected, .. })) => *expected += line,
            (Some("sh"), Some(Part::Script(script))) => *script += line,
            (Some("sh"), _) => parts.push(Part::Script(line.to_owned())),
            (_, Some(Part::Text(text))) => *text += line,
            _ => parts.push(Part::Text(line.to_owned())),
        }
    }
    parts
}

fn joined(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) | Part::Script(text) | Part::Fence(text) => text.clone(),
        Part::Command { command, expected } => format!("$ {command}{expected}"),
    };
    parts.iter().map(text).collect()
}

/// A line without what differs from run to run.
fn stable(line: &str) -> String {
    let plain = line.replace(['─', '█', '▏', '▎', '▍', '▌', '▋', '▊', '▉'], "");
    let words = plain.split_whitespace().map(|word| {
        let is_number = word.chars().any(|c| c.is_ascii_digit()) || "<≥–".contains(word);
        if is_number { "#" } else { word }
    });
    let mut words: Vec<&str> = words.collect();
    words.dedup_by(|a, b| *a == "#" && *b == "#");
    words.join(" ")
}

/// Lines without the rows of tables, which follow a rule and end with an empty line.
fn without_rows(text: &str) -> Vec<&str> {
    let mut in_table = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        in_table &= !line.is_empty();
        if !in_table {
            kept.push(line);
        }
        in_table |= line.starts_with('─');
    }
    kept
}

fn fits(expected: &str, line: &str) -> bool {
    match expected.split_once(ANYTHING) {
        Some((before, after)) => {
            let (before, after, line) = (stable(before), stable(after), stable(line));
            line.len() >= before.len() + after.len() && line.starts_with(&before) && line.ends_with(&after)
        }
        None => stable(expected) == stable(line),
    }
}

/// Whether a command printed what the tutorial shows.
fn shows(expected: &[&str], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&first, rest)), _) if first.trim() == ANYTHING => {
            (0..=printed.len()).any(|from| shows(rest, &printed[from..]))
        }
        (Some((first, expected)), Some((line, printed))) => fits(first, line) && shows(expected, printed),
        _ => false,
    }
}

fn run(script: &str, folder: &Path) -> String {
    let path = std::env::var("PATH").expect("a path");
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("exec 2>&1; {script}")])
        .current_dir(folder);
    command.env("PATH", format!("{}:{path}", built().display()));
    let output = output(&mut command);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script} failed:\n{printed}");
    printed
}

/// Lua's sources, as the tutorial has them. The package that they come from lacks the main program.
fn unpack(folder: &Path) {
    let bench = Bench::open(None).expect("workloads");
    let lua = bench.select(&["lua".to_owned()]).expect("a workload")[0];
    let sources = bench.sources(lua).expect("sources");
    let interpreter = sources
        .iter()
        .find(|path| path.ends_with("lvm.c"))
        .expect("Lua's interpreter");
    fs::create_dir(folder.join("src")).expect("a folder");
    let files = fs::read_dir(interpreter.parent().expect("its folder")).expect("readable");
    let files = files.map(|entry| entry.expect("readable").path());
    for file in files.chain([program("tutorial/lua.c")]) {
        let is_source = file
            .extension()
            .is_some_and(|extension| extension == "c" || extension == "h");
        if is_source {
            fs::copy(&file, folder.join("src").join(file.file_name().expect("a name"))).expect("copied");
        }
    }
}

#[test]
fn the_tutorial_is_true() {
    let document = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../feedback/cli/TUTORIAL.md");
    let text = fs::read_to_string(&document).expect("the tutorial");
    let dir = scratch();
    unpack(dir.path());
    let bless = std::env::var_os("BLESS").is_some();
    let mut all = parts(&text);
    let mut differences = Vec::new();
    for part in &mut all {
        match part {
            Part::Script(script) => assert_eq!(run(script, dir.path()), "", "{script}"),
            Part::Command { command, expected } => {
                let printed = run(command, dir.path());
                if bless {
                    *expected = printed;
                    continue;
                }
                if !shows(&without_rows(expected), &without_rows(&printed)) {
                    differences.push(format!("$ {command}{printed}\nbut the tutorial shows\n{expected}"));
                }
            }
            Part::Text(_) | Part::Fence(_) => {}
        }
    }
    if bless {
        fs::write(&document, joined(&all)).expect("written");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(dir.path().join("lua.html").is_file());
}

#[test]
fn numbers_may_differ_and_words_may_not() {
    let shows = |expected: &str, printed: &str| shows(&without_rows(expected), &without_rows(printed));
    assert!(shows("a 12 % b\n", "a   7.5 %  b\n"));
    assert!(!shows("a 12 % b\n", "a 12 % c\n"));
    assert!(shows("a\n[…]\nz\n", "a\nb\nc\nz\n"));
    assert!(!shows("a\n[…]\nz\n", "a\nb\nc\n"));
    assert!(shows("supports […] splitting\n", "supports x, y splitting\n"));
    assert!(!shows("supports […] splitting\n", "supports x, y\n"));
    let table = |column: &str, row: &str| format!("a  {column}\n─────\n1  {row}\n\nend\n");
    assert!(shows(&table("b", "x"), &table("b", "y")));
    assert!(!shows(&table("b", "x"), &table("c", "x")));
}

#[test]
fn a_document_is_the_sum_of_its_parts() {
    let text = "Text.\n\n```sh\none\ntwo\n```\n\n```console\n$ a\nb\n$ c\n```\n\n```\nnot run\n```\nEnd.\n";
    let parts = parts(text);
    assert_eq!(joined(&parts), text);
    assert!(parts.contains(&Part::Script("one\ntwo\n".to_owned())));
    assert!(parts.contains(&Part::Command {
        command: "a\n".to_owned(),
        expected: "b\n".to_owned()
    }));
}
