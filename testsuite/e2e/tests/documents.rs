//! Keeps the documents honest: the README stays short, links lead somewhere, and files that ARCHITECTURE.md names
//! exist.

use std::fs;
use std::path::{Path, PathBuf};

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

/// The subcommands that a program's `enum Command` has, as its command line spells them.
fn subcommands(main: &str) -> Vec<String> {
    let body = main.split_once("enum Command {").expect("an enum Command").1;
    let variants = body.lines().take_while(|line| *line != "}").filter_map(|line| {
        let name = line
            .strip_prefix("    ")
            .filter(|rest| rest.starts_with(char::is_uppercase))?;
        name.split(['(', ' ', ',']).next()
    });
    let kebab = |name: &str| -> String {
        let letters = name.char_indices();
        let parts = letters.map(|(at, c)| match c.is_uppercase() && at > 0 {
            true => format!("-{}", c.to_ascii_lowercase()),
            false => c.to_ascii_lowercase().to_string(),
        });
        parts.collect()
    };
    variants.map(kebab).collect()
}

/// All Rust code below a folder.
fn code(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => code(&path, found),
            path if path.extension().is_some_and(|extension| extension == "rs") => *found += &read(&path),
            _ => {}
        }
    }
}

#[test]
fn commands_of_the_papers_page_exist() {
    let root = root();
    // With the file of the subcommands, and the folders of the options.
    let harness = "testsuite/bench/harness/src";
    let programs = [
        ("pleach", "feedback/cli/src/main.rs", ["feedback/cli/src", ""]),
        (
            "pleach-papers",
            "testsuite/papers/src/main.rs",
            ["testsuite/papers/src", harness],
        ),
        (
            "pleach-bench",
            "testsuite/bench/pleach-bench/src/args.rs",
            ["testsuite/bench/pleach-bench/src", harness],
        ),
    ];
    let text = read(&root.join("testsuite/papers/COVERAGE.md"));
    let mut checked = 0;
    for command in prose(&text).flat_map(|line| line.split('`').skip(1).step_by(2)) {
        let mut words = command.split_whitespace();
        let name = words.next().unwrap_or_default();
        let Some((_, main, folders)) = programs.iter().find(|(program, ..)| *program == name) else {
            assert!(command.contains('/'), "`{command}` is no command");
            continue;
        };
        let verb = words.next().expect("a subcommand");
        let known = subcommands(&read(&root.join(main)));
        assert!(known.iter().any(|known| known == verb), "`{command}`: {known:?}");
        let mut source = String::new();
        let folders = folders.iter().filter(|folder| !folder.is_empty());
        folders.for_each(|folder| code(&root.join(folder), &mut source));
        for option in words.filter_map(|word| word.strip_prefix("--")) {
            let field = format!("{}:", option.replace('-', "_"));
            let is_known = source.contains(&field) || source.contains(&format!("long = \"{option}\""));
            assert!(is_known, "`{command}`: no --{option}");
        }
        checked += 1;
    }
    assert!(checked > 25, "only {checked} commands");
    // Every row has a command or a reason.
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("| here |"));
    for row in rows {
        let here = row
            .trim_end_matches('|')
            .rsplit_once(" | ")
            .map_or("", |(_, here)| here);
        assert!(here.contains('`') || here.contains("does not apply: "), "{row}");
    }
}
