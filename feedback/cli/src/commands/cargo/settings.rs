//! What the environment says about cargo's profiles. Cargo names crates by it, and functions by their crates.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The file of the settings, in the folder of annotated builds.
const FILE: &str = "pleach-settings";

/// The settings of this process's environment: a variable a line, in order.
fn present() -> String {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        name.starts_with("CARGO_PROFILE_")
            .then(|| format!("{name}={}\n", value.display()))
    });
    let mut lines: Vec<String> = variables.collect();
    lines.sort();
    lines.concat()
}

/// Keeps the settings of an annotated build in its folder.
pub fn write(folder: &Path) -> Result<()> {
    let file = folder.join(FILE);
    fs::write(&file, present()).with_context(|| format!("cannot write {}", file.display()))
}

/// Says that crates have other names than in the annotated build, if settings differ.
pub fn warn_of_others(annotated: &Path) {
    let now = present();
    let Ok(then) = fs::read_to_string(annotated.join(FILE)) else {
        return;
    };
    let differing = then
        .lines()
        .filter(|line| !now.lines().any(|other| other == *line))
        .chain(now.lines().filter(|line| !then.lines().any(|other| other == *line)));
    let names: BTreeSet<&str> = differing.filter_map(|line| Some(line.split_once('=')?.0)).collect();
    if !names.is_empty() {
        let names: Vec<&str> = names.into_iter().collect();
        eprintln!(
            "pleach: {} {} another value than when the program was annotated: cargo gives crates other names by it, and \
             most of the profile will not fit; set the same for `annotate`, `record` and `use`",
            names.join(", "),
            if names.len() == 1 { "has" } else { "have" }
        );
    }
}
