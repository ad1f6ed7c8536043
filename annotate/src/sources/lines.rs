//! The machine code of source lines, from DWARF line tables.

use super::{Dwarf, Unit, folder_of, path_of, with_dwarf};
use crate::probe::Address;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Calls `visit` with each range of code in a file's line tables: its source file, its line and its addresses.
/// Malformed parts are left out, because the result is only shown to people.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn visit_lines(path: &Path, visit: &mut dyn FnMut(&Path, u32, Range<Address>)) -> std::io::Result<()> {
    with_dwarf(path, |dwarf| {
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            visit_unit(dwarf, &dwarf.unit(header)?, visit)?;
        }
        Ok(())
    })
}

fn visit_unit(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    visit: &mut dyn FnMut(&Path, u32, Range<Address>),
) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else {
        return Ok(());
    };
    let folder = folder_of(unit);
    let mut paths: HashMap<u64, Option<PathBuf>> = HashMap::new();
    let mut rows = program.rows();
    let mut last: Option<(u64, u32, Address)> = None;
    while let Some((_, row)) = rows.next_row()? {
        let end = Address(row.address());
        if let Some((file, line, start)) = last.take().filter(|(_, _, start)| *start < end) {
            let path = paths.entry(file).or_insert_with(|| path_of(dwarf, unit, file, &folder));
            if let Some(path) = path {
                visit(path, line, start..end);
            }
        }
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        last = match line {
            Some(line) if !row.end_sequence() => Some((row.file_index(), line, end)),
            _ => None,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::visit_lines;
    use std::path::Path;

    #[test]
    fn code_of_this_file_is_found() {
        let mut lines = Vec::new();
        let program = std::env::current_exe().unwrap();
        let here = line!();
        visit_lines(&program, &mut |file, line, addresses| {
            assert!(addresses.start < addresses.end);
            if file.ends_with("annotate/src/sources/lines.rs") {
                lines.push(line);
            }
        })
        .unwrap();
        // Release builds are without debug information.
        if cfg!(debug_assertions) {
            assert!(lines.contains(&here) && lines.contains(&(here + 3)), "{lines:?}");
        }
        assert!(visit_lines(Path::new("/none"), &mut |_, _, _| ()).is_err());
    }
}
