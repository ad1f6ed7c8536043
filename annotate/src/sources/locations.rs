//! Where instructions are in their functions, as sample profiles name places: by line offset and discriminator.
//!
//! A *line offset* is the distance from the line on which the function is declared, so that edits above a function do
//! not matter. *Discriminators* tell blocks on one line apart. Both come from LLVM's `-fdebug-info-for-profiling`.

use super::{Dwarf, Slice, Unit, folder_of, path_of, with_dwarf};
use crate::probe::Address;
use gimli::{AttributeValue, ColumnType, DebuggingInformationEntry, constants};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A place in a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourcePlace {
    /// Line, from the function's own; modulo 2¹⁶, as LLVM has it.
    pub line_offset: u32,
    /// LLVM's base discriminator; 0 if there is none.
    pub discriminator: u32,
}

/// A function on an inline stack.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceFrame {
    /// Linkage name.
    pub function: Rc<str>,
    /// The instruction; of a function that another one is inlined into, the call. `None` if its line or discriminator
    /// is unknown.
    pub place: Option<SourcePlace>,
}

/// A position in source text that an instruction is of, and the function there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextPosition {
    /// Linkage name.
    pub function: Rc<str>,
    /// The source file.
    pub file: Rc<Path>,
    /// From 1.
    pub line: u32,
    /// In bytes, from 1; 0 if unknown.
    pub column: u32,
}

/// The places of a file's instructions.
#[derive(Clone, Debug, Default)]
pub struct Locations {
    files: Files,
    /// Rows of line tables, sorted by address.
    rows: Vec<Row>,
    /// Emitted functions' code, sorted by address, with positions in `scopes`.
    functions: Vec<(Range<u64>, usize)>,
    scopes: Vec<Scope>,
}

#[derive(Clone, Debug)]
struct Row {
    addresses: Range<u64>,
    position: Position,
}

/// A position as DWARF has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Position {
    /// Position in [`Files::all`].
    file: Option<u32>,
    line: u32,
    column: u32,
    discriminator: u32,
}

/// A function, or an inlined one.
#[derive(Clone, Debug)]
struct Scope {
    function: Rc<str>,
    /// The line of its declaration.
    line: Option<u32>,
    /// The place of the call in the function around it.
    call: Position,
    code: Vec<Range<u64>>,
    /// Positions of the functions that are inlined into it.
    inlined: Vec<usize>,
}

/// What a definition or declaration says of a function.
#[derive(Clone, Default)]
struct Declared {
    name: Option<Rc<str>>,
    line: Option<u32>,
    /// Offset in `.debug_info` of the declaration that has the rest.
    origin: Option<usize>,
}

impl Locations {
    /// Reads a file's debug information. Malformed parts are left out.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        let mut locations = Self::default();
        with_dwarf(path, |dwarf| locations.add(dwarf))?;
        locations.rows.sort_by_key(|row| row.addresses.start);
        locations.functions.sort_by_key(|(addresses, _)| addresses.start);
        Ok(locations)
    }

    /// Whether there are neither lines nor functions: the file was built without `-g`.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.functions.is_empty()
    }

    /// Whether any emitted function has the line of its declaration. `-gline-tables-only` alone leaves them out.
    pub fn has_declarations(&self) -> bool {
        self.scopes.iter().any(|scope| scope.line.is_some())
    }

    /// The inline stack of an instruction, the emitted function first. `None` if its function is unknown.
    pub fn stack_at(&self, address: Address) -> Option<Vec<SourceFrame>> {
        let scopes = self.scopes_at(address.0)?;
        Some(scopes.map(|(scope, position)| scope.frame(position)).collect())
    }

    /// The positions of an instruction and of the calls that it was inlined by, that in the emitted function first. Empty
    /// if its function is unknown; without those whose file or line is unknown.
    pub fn text_at(&self, address: Address) -> Vec<TextPosition> {
        let scopes = self.scopes_at(address.0).into_iter().flatten();
        let known = scopes.filter_map(|(scope, position)| {
            let position = position.filter(|position| position.line > 0)?;
            Some(TextPosition {
                function: scope.function.clone(),
                file: self.files.all.get(position.file? as usize)?.clone(),
                line: position.line,
                column: position.column,
            })
        });
        known.collect()
    }

    /// The source file of an instruction, also where debug information has lines only (`-g1`). Of inlined code it is that
    /// of the inlined function.
    pub fn file_at(&self, address: Address) -> Option<&Path> {
        let position = self.position_at(address.0)?;
        Some(self.files.all.get(position.file? as usize)?)
    }

    /// Functions, emitted and inlined ones, each with the source file of its first own instruction, if it has any.
    pub fn function_files(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.scopes.iter().filter_map(|scope| {
            let own = scope.code.iter().find_map(|code| self.own_code(scope, code))?;
            let position = self.position_at(own).filter(|position| position.line > 0)?;
            let file = self.files.all.get(position.file? as usize)?;
            Some((&*scope.function, &**file))
        })
    }

    /// The first address that is of no function that is inlined into this one.
    fn own_code(&self, scope: &Scope, code: &Range<u64>) -> Option<u64> {
        let mut at = code.start;
        while let Some(inner) = self.inlined_at(scope, at) {
            at = inner.code.iter().find(|code| code.contains(&at))?.end;
        }
        code.contains(&at).then_some(at)
    }

    /// The inline stack of an instruction, each function with the position in it.
    fn scopes_at(&self, at: u64) -> Option<impl Iterator<Item = (&Scope, Option<Position>)>> {
        let after = self.functions.partition_point(|(addresses, _)| addresses.start <= at);
        let (_, root) = self.functions[..after]
            .last()
            .filter(|(addresses, _)| addresses.contains(&at))?;
        let scopes = std::iter::successors(Some(&self.scopes[*root]), move |scope| self.inlined_at(scope, at));
        let position = move |scope| match self.inlined_at(scope, at) {
            Some(inner) => Some(inner.call),
            None => self.position_at(at),
        };
        Some(scopes.map(move |scope| (scope, position(scope))))
    }

    /// The function that is inlined into another one here.
    fn inlined_at(&self, scope: &Scope, at: u64) -> Option<&Scope> {
        let mut inlined = scope.inlined.iter().map(|&inner| &self.scopes[inner]);
        inlined.find(|inner| inner.code.iter().any(|code| code.contains(&at)))
    }

    fn position_at(&self, address: u64) -> Option<Position> {
        let after = self.rows.partition_point(|row| row.addresses.start <= address);
        let row = self.rows[..after]
            .last()
            .filter(|row| row.addresses.contains(&address))?;
        Some(row.position)
    }

    fn add(&mut self, dwarf: &Dwarf<'_>) -> gimli::Result<()> {
        let mut declared = FxHashMap::default();
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            declare(dwarf, &unit, &mut declared)?;
            units.push(unit);
        }
        for unit in &units {
            let mut unit = UnitFiles::new(dwarf, unit);
            self.add_rows(&mut unit)?;
            self.add_functions(&mut unit, &declared)?;
        }
        Ok(())
    }

    fn add_rows(&mut self, files: &mut UnitFiles<'_>) -> gimli::Result<()> {
        let Some(program) = files.unit.line_program.clone() else {
            return Ok(());
        };
        let mut rows = program.rows();
        let mut last: Option<(u64, Position)> = None;
        while let Some((_, row)) = rows.next_row()? {
            if let Some((start, position)) = last.take().filter(|(start, _)| *start < row.address()) {
                let addresses = start..row.address();
                self.rows.push(Row { addresses, position });
            }
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            last = line.filter(|_| !row.end_sequence()).map(|line| {
                let position = Position {
                    file: files.number(row.file_index(), &mut self.files),
                    line,
                    column: match row.column() {
                        ColumnType::LeftEdge => 0,
                        ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
                    },
                    discriminator: row.discriminator() as u32,
                };
                (row.address(), position)
            });
        }
        Ok(())
    }

    fn add_functions(&mut self, files: &mut UnitFiles<'_>, declared: &FxHashMap<usize, Declared>) -> gimli::Result<()> {
        let (dwarf, unit) = (files.dwarf, files.unit);
        // The scopes around the present entry, with their depths.
        let mut around: Vec<(isize, usize)> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            let is_inlined = entry.tag() == constants::DW_TAG_inlined_subroutine;
            if !is_inlined && entry.tag() != constants::DW_TAG_subprogram {
                continue;
            }
            let Some(offset) = offset_of(unit, entry) else { continue };
            let own = match is_inlined {
                true => Declared {
                    origin: origin_of(unit, entry),
                    ..Declared::default()
                },
                false => declared.get(&offset).cloned().unwrap_or_default(),
            };
            let (Some(function), line) = resolve(own, declared) else {
                continue;
            };
            let mut code = Vec::new();
            let mut ranges = dwarf.die_ranges(unit, entry)?;
            while let Some(range) = ranges.next()? {
                code.extend((range.begin < range.end).then_some(range.begin..range.end));
            }
            // Declarations, and what all instances of an inlined function have in common.
            if code.is_empty() {
                continue;
            }
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let file = match entry.attr_value(constants::DW_AT_call_file) {
                Some(AttributeValue::FileIndex(index)) => files.number(index, &mut self.files),
                _ => None,
            };
            let scope = self.scopes.len();
            match around.last().filter(|_| is_inlined) {
                Some(&(_, outer)) => self.scopes[outer].inlined.push(scope),
                None if is_inlined => continue,
                None => self.functions.extend(code.iter().map(|code| (code.clone(), scope))),
            }
            self.scopes.push(Scope {
                function,
                line,
                call: Position {
                    file,
                    column: number(constants::DW_AT_call_column).unwrap_or(0) as u32,
                    line: number(constants::DW_AT_call_line).unwrap_or(0) as u32,
                    discriminator: number(constants::DW_AT_GNU_discriminator).unwrap_or(0) as u32,
                },
                code,
                inlined: Vec::new(),
            });
            around.push((depth, scope));
        }
        Ok(())
    }
}

/// Source files, each once.
#[derive(Clone, Debug, Default)]
struct Files {
    all: Vec<Rc<Path>>,
    numbers: FxHashMap<Rc<Path>, u32>,
}

impl Files {
    fn number(&mut self, path: PathBuf) -> u32 {
        let path: Rc<Path> = path.into();
        *self.numbers.entry(path.clone()).or_insert_with(|| {
            self.all.push(path);
            self.all.len() as u32 - 1
        })
    }
}

/// The files of a unit.
struct UnitFiles<'d> {
    dwarf: &'d Dwarf<'d>,
    unit: &'d Unit<'d>,
    folder: String,
    numbers: FxHashMap<u64, Option<u32>>,
}

impl<'d> UnitFiles<'d> {
    fn new(dwarf: &'d Dwarf<'d>, unit: &'d Unit<'d>) -> Self {
        Self {
            dwarf,
            unit,
            folder: folder_of(unit),
            numbers: FxHashMap::default(),
        }
    }

    /// Position in [`Files::all`] of the file with this index in the unit.
    fn number(&mut self, index: u64, files: &mut Files) -> Option<u32> {
        *self.numbers.entry(index).or_insert_with(|| {
            let path = path_of(self.dwarf, self.unit, index, &self.folder)?;
            Some(files.number(path))
        })
    }
}

impl Scope {
    fn frame(&self, position: Option<Position>) -> SourceFrame {
        SourceFrame {
            function: self.function.clone(),
            place: position.and_then(|position| position.in_function(self.line?)),
        }
    }
}

impl Position {
    /// The place in a function that is declared on a line. Line 0 means that the compiler does not know.
    fn in_function(self, declared: u32) -> Option<SourcePlace> {
        let line = (self.line > 0).then_some(self.line)?;
        Some(SourcePlace {
            line_offset: line.wrapping_sub(declared) & 0xffff,
            discriminator: base_discriminator(self.discriminator)?,
        })
    }
}

/// The base discriminator of an encoded one. Calls have a probe's identifier there, and the base discriminator beside
/// it if both are small; `None` if it is lost.
///
/// LLVM's `DILocation::getBaseDiscriminatorFromDiscriminator` and `PseudoProbeDwarfDiscriminator`.
fn base_discriminator(encoded: u32) -> Option<u32> {
    const PROBE: u32 = 7;
    const HAS_BASE: u32 = 1 << 28;
    if encoded & PROBE == PROBE {
        return (encoded & HAS_BASE != 0).then_some(encoded >> 16 & 7);
    }
    // Bit 0: the component is zero. Bit 6: it has 12 bits in two parts, not 5.
    Some(match encoded {
        _ if encoded & 1 != 0 => 0,
        _ if encoded & 0x40 != 0 => encoded >> 1 & 0x1f | encoded >> 2 & 0xfe0,
        _ => encoded >> 1 & 0x1f,
    })
}

/// Name and line of all functions of a unit, by offset in `.debug_info`.
fn declare(dwarf: &Dwarf<'_>, unit: &Unit<'_>, declared: &mut FxHashMap<usize, Declared>) -> gimli::Result<()> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        let Some(offset) = offset_of(unit, entry).filter(|_| entry.tag() == constants::DW_TAG_subprogram) else {
            continue;
        };
        let string = |name| dwarf.attr_string(unit, entry.attr_value(name)?).ok();
        let name = string(constants::DW_AT_linkage_name).or_else(|| string(constants::DW_AT_name));
        let line = entry
            .attr_value(constants::DW_AT_decl_line)
            .and_then(|line| line.udata_value());
        let function = Declared {
            name: name.map(|name| name.to_string_lossy().into()),
            line: line.and_then(|line| u32::try_from(line).ok()),
            origin: origin_of(unit, entry),
        };
        declared.insert(offset, function);
    }
    Ok(())
}

/// What a function is called, and where it is declared.
fn resolve(mut at: Declared, declared: &FxHashMap<usize, Declared>) -> (Option<Rc<str>>, Option<u32>) {
    let (mut name, mut line) = (at.name.take(), at.line);
    // A malformed file may have a cycle; a definition of an inlined method refers to its declaration, and so on.
    for _ in 0..4 {
        let Some(next) = at.origin.and_then(|origin| declared.get(&origin)) else {
            break;
        };
        name = name.or_else(|| next.name.clone());
        line = line.or(next.line);
        at.origin = next.origin;
    }
    (name, line)
}

fn offset_of(unit: &Unit<'_>, entry: &DebuggingInformationEntry<Slice<'_>>) -> Option<usize> {
    Some(entry.offset().to_debug_info_offset(&unit.header)?.0)
}

/// Offset in `.debug_info` of the entry that an entry is an instance of.
fn origin_of(unit: &Unit<'_>, entry: &DebuggingInformationEntry<Slice<'_>>) -> Option<usize> {
    let origin = entry.attr_value(constants::DW_AT_abstract_origin);
    match origin.or_else(|| entry.attr_value(constants::DW_AT_specification))? {
        AttributeValue::UnitRef(offset) => Some(offset.to_debug_info_offset(&unit.header)?.0),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discriminators_are_llvms() {
        // `DILocation::encodeDiscriminator(base, …)`: 0, 1, 2, 31; 32 needs the long form.
        let encoded = [0, 1 << 1, 2 << 1, 31 << 1, 0x40 | 1 << 7];
        assert_eq!(encoded.map(base_discriminator), [0, 1, 2, 31, 32].map(Some));
        // A duplication factor after a base discriminator that is zero.
        assert_eq!(base_discriminator(1 | 4 << 2), Some(0));
        // `packProbeData(5, DirectCall, 0, 100, 3)`, and the same without a base discriminator.
        let packed = 5 << 3 | 100 << 19 | 2 << 26 | 7;
        assert_eq!(base_discriminator(packed | 1 << 28 | 3 << 16), Some(3));
        assert_eq!(base_discriminator(packed), None);
    }

    #[test]
    fn lines_count_from_the_declaration() {
        let position = |line| Position {
            line,
            discriminator: 4,
            ..Position::default()
        };
        let place = |line_offset| SourcePlace {
            line_offset,
            discriminator: 2,
        };
        assert_eq!(position(12).in_function(10), Some(place(2)));
        // A macro's or an included file's line before the function's.
        assert_eq!(position(9).in_function(10), Some(place(0xffff)));
        assert_eq!(position(0).in_function(10), None);
    }
}
