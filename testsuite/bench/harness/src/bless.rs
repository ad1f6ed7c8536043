//! Writing checksums into recipes, when an input or a driver was changed on purpose.

use crate::bench::Bench;
use crate::workload::{InputKind, Workload};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use toml_edit::{DocumentMut, Item, value};

/// Writes the checksum of one of a workload's inputs; formatting and comments stay.
pub fn bless_input(workload: &Workload, kind: InputKind, checksum: &str) -> Result<()> {
    edit(&workload.dir.join("workload.toml"), |document| {
        document
            .get_mut("inputs")
            .and_then(|inputs| inputs.get_mut(kind.name()))
            .and_then(|input| input.get_mut("checksum"))
            .map(|item| set(item, checksum))
    })
}

/// Brings the checksums in `inputs.toml` up to date and returns the names of those that changed.
pub fn bless_made_inputs(bench: &Bench) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for input in bench.inputs().iter() {
        let checksum = input.current_checksum(bench.packages())?;
        if checksum == input.checksum {
            continue;
        }
        edit(&bench.workloads_dir().join("inputs.toml"), |document| {
            let inputs = document.get_mut("input")?.as_array_of_tables_mut()?;
            let table = inputs
                .iter_mut()
                .find(|table| table.get("name").and_then(Item::as_str) == Some(&input.name))?;
            table.get_mut("checksum").map(|item| set(item, &checksum))
        })?;
        changed.push(input.name.clone());
    }
    Ok(changed)
}

fn set(item: &mut Item, checksum: &str) {
    let decor = item.as_value().map(|old| old.decor().clone());
    *item = value(checksum);
    if let (Some(new), Some(decor)) = (item.as_value_mut(), decor) {
        *new.decor_mut() = decor;
    }
}

fn edit(path: &Path, change: impl FnOnce(&mut DocumentMut) -> Option<()>) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut document: DocumentMut = text.parse().with_context(|| format!("in {}", path.display()))?;
    change(&mut document).with_context(|| format!("{} has no such checksum", path.display()))?;
    fs::write(path, document.to_string()).with_context(|| format!("cannot write {}", path.display()))
}
