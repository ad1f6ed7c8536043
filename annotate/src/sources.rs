//! Which source file defines a function, the code of source lines, and the places of instructions in functions, from
//! DWARF.

mod lines;
mod locations;

pub use lines::visit_lines;
pub use locations::{Locations, SourceFrame, SourcePlace, TextPosition};

use gimli::{AttributeValue, DwAt, EndianSlice, LittleEndian, UnitOffset, constants};
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

type Slice<'d> = EndianSlice<'d, LittleEndian>;
type Unit<'d> = gimli::Unit<Slice<'d>>;
type Dwarf<'d> = gimli::Dwarf<Slice<'d>>;

/// The defining source file of each function, by linkage name. Empty if the binary was built without `-g`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sources {
    /// Local functions may share a name, so a name has a list of definitions.
    functions: HashMap<String, Vec<Definition>>,
    /// Files of the declarations of constructors and destructors, which all of their variants share. Of inlined ones,
    /// nothing else may be left. Declarations of other functions may be in any file that calls them.
    declared: HashMap<String, PathBuf>,
}

/// Where a function is defined.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Definition {
    /// The file that was compiled.
    unit: PathBuf,
    /// The file with the function's code: the same, or a header.
    file: PathBuf,
    /// Whether the debug information names that file. `-g1` leaves it out.
    is_declared: bool,
}

impl Sources {
    /// Reads a file's debug information. Malformed parts are left out, because the result is only shown to people.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        let mut sources = Self::default();
        with_dwarf(path, |dwarf| sources.add(dwarf))?;
        if sources
            .functions
            .values()
            .flatten()
            .any(|definition| !definition.is_declared)
        {
            sources.set_files(&Locations::read(path)?);
        }
        Ok(sources)
    }

    /// Takes files that are not declared from the lines of functions' code.
    fn set_files(&mut self, locations: &Locations) {
        let mut found: HashMap<&str, Option<&Path>> = HashMap::new();
        for (function, file) in locations.function_files() {
            let known = found.entry(function).or_insert(Some(file));
            // Local functions of one name in several files: not known which is which.
            *known = known.filter(|&known| known == file);
        }
        for (function, definitions) in &mut self.functions {
            if let Some(&Some(file)) = found.get(function.as_str()) {
                for definition in definitions.iter_mut().filter(|definition| !definition.is_declared) {
                    definition.file = file.to_owned();
                }
            }
        }
    }

    /// Whether no function's file is known.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The file that defines a function. `compiled` is the name of the compiled file, without its directory; it selects
    /// among local functions of the same name.
    pub fn file_of(&self, function: &str, compiled: &str) -> Option<&Path> {
        let Some(candidates) = self.functions.get(function) else {
            return self.declared.get(&unified_name(function)?).map(PathBuf::as_path);
        };
        let matches = |d: &&Definition| d.unit.file_name().is_some_and(|name| name == compiled);
        let found = candidates.iter().find(matches).or(candidates.first());
        found.map(|definition| definition.file.as_path())
    }

    /// The file that defines the only function of a name.
    pub fn only_file_of(&self, function: &str) -> Option<&Path> {
        let [definition] = &self.functions.get(function)?[..] else {
            return None;
        };
        Some(&definition.file)
    }

    fn add(&mut self, dwarf: &Dwarf<'_>) -> gimli::Result<()> {
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            self.add_unit(dwarf, &unit)?;
        }
        Ok(())
    }

    fn add_unit(&mut self, dwarf: &Dwarf<'_>, unit: &Unit<'_>) -> gimli::Result<()> {
        let text = |slice: Slice<'_>| slice.to_string_lossy().into_owned();
        let folder = folder_of(unit);
        let compiled = plain(&Path::new(&folder).join(unit.name.map(text).unwrap_or_default()));
        // Declarations: a definition refers to its declaration and has no name of its own, nor a file if it is the same.
        let mut known: HashMap<UnitOffset, (String, Option<PathBuf>)> = HashMap::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() != constants::DW_TAG_subprogram {
                continue;
            }
            let string = |name: DwAt| {
                let value = entry.attr_value(name)?;
                dwarf.attr_string(unit, value).ok().map(text)
            };
            let declared = match entry.attr_value(constants::DW_AT_specification) {
                Some(AttributeValue::UnitRef(offset)) => known.get(&offset).cloned(),
                _ => None,
            };
            let own = string(constants::DW_AT_linkage_name).or_else(|| string(constants::DW_AT_name));
            let own_file = match entry.attr_value(constants::DW_AT_decl_file) {
                Some(AttributeValue::FileIndex(index)) => path_of(dwarf, unit, index, &folder),
                _ => None,
            };
            let (name, file) = match declared {
                Some((name, file)) => (own.unwrap_or(name), own_file.or(file)),
                None => match own {
                    Some(name) => (name, own_file),
                    None => continue,
                },
            };
            known.insert(entry.offset(), (name.clone(), file.clone()));
            if entry.attr_value(constants::DW_AT_declaration).is_some() {
                if let Some(file) = file.filter(|_| is_unified(&name)) {
                    self.declared.entry(name).or_insert(file);
                }
                continue;
            }
            self.functions.entry(name).or_default().push(Definition {
                unit: compiled.clone(),
                is_declared: file.is_some(),
                file: file.unwrap_or_else(|| compiled.clone()),
            });
        }
        Ok(())
    }
}

/// Whether a name is of all variants of a constructor or destructor.
fn is_unified(linkage: &str) -> bool {
    linkage.starts_with("_Z") && (linkage.contains("C4E") || linkage.contains("D4E"))
}

/// The name that a constructor or destructor is declared by, for all of its variants: `_ZN1aC4Ev` for `_ZN1aC2Ev`.
fn unified_name(linkage: &str) -> Option<String> {
    let bytes = linkage.as_bytes();
    let is_variant = |at: &usize| matches!(&bytes[*at..], [b'C' | b'D', b'0'..=b'3' | b'5', b'E', ..]);
    let at = (0..bytes.len())
        .rev()
        .find(is_variant)
        .filter(|_| linkage.starts_with("_Z"))?;
    Some(format!("{}4{}", &linkage[..=at], &linkage[at + 2..]))
}

/// Calls `visit` with a file's debug information. What was visited before a malformed unit is kept.
fn with_dwarf(path: &Path, visit: impl FnOnce(&Dwarf<'_>) -> gimli::Result<()>) -> std::io::Result<()> {
    let data = std::fs::read(path)?;
    if let Ok(file) = object::File::parse(&*data) {
        let section = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
            let section = file.section_by_name(id.name());
            Ok(section.and_then(|s| s.uncompressed_data().ok()).unwrap_or_default())
        };
        if let Ok(sections) = gimli::DwarfSections::load(section) {
            let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
            let _ = visit(&dwarf);
        }
    }
    Ok(())
}

/// The directory that a unit was compiled in.
fn folder_of(unit: &Unit<'_>) -> String {
    let folder = unit.comp_dir.map(|slice| slice.to_string_lossy().into_owned());
    folder.unwrap_or_default()
}

fn path_of(dwarf: &Dwarf<'_>, unit: &Unit<'_>, index: u64, folder: &str) -> Option<PathBuf> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let text = |value| {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    let mut path = PathBuf::from(folder);
    if let Some(directory) = file.directory(header) {
        path.push(text(directory)?);
    }
    path.push(text(file.path_name())?);
    Some(plain(&path))
}

/// A path without `.` and `..` between folders, so that a file has one name however it was found.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        let is_below = matches!(out.components().next_back(), Some(Component::Normal(_)));
        match component {
            Component::CurDir => {}
            Component::ParentDir if is_below => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{is_unified, plain, unified_name};
    use std::path::{Path, PathBuf};

    #[test]
    fn a_file_has_one_name() {
        let plain = |path: &str| plain(Path::new(path));
        assert_eq!(plain("/app/build/../src/./a.c"), PathBuf::from("/app/src/a.c"));
        assert_eq!(plain("../../a.c"), PathBuf::from("../../a.c"));
        assert_eq!(plain("./a.c"), PathBuf::from("a.c"));
    }

    #[test]
    fn variants_of_constructors_are_declared_once() {
        let unified = |name| unified_name(name);
        assert_eq!(
            unified("_ZNSt15__new_allocatorIiED2Ev").as_deref(),
            Some("_ZNSt15__new_allocatorIiED4Ev")
        );
        assert_eq!(unified("_ZN1AC1Ei").as_deref(), Some("_ZN1AC4Ei"));
        assert!(is_unified("_ZN1AC4Ei") && !is_unified("_ZN1AC1Ei") && !is_unified("mix"));
        assert_eq!(unified("C1E"), None);
        assert_eq!(unified("main"), None);
    }
}
