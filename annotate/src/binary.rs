//! Opens an ELF file and reads what the address map needs.

use crate::descriptors;
use crate::manifest;
use crate::probe::{self, Address, Symbol};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind, elf};
use std::path::{Path, PathBuf};

/// Largest ratio of uncompressed to compressed size that zlib reaches. The decompressor allocates the size that the
/// header claims, so a larger claim is refused.
const MAX_COMPRESSION_RATIO: u64 = 1032;

/// Instruction sets that are understood.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Architecture {
    /// x86-64.
    X86_64,
    /// AArch64, little-endian.
    Aarch64,
}

/// The contents of an ELF file, and of its separate debug file, that the address map needs.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The file.
    pub path: PathBuf,
    /// GNU build-id.
    pub build_id: Option<Vec<u8>>,
    /// Function symbols, sorted by address.
    pub symbols: Vec<Symbol>,
    /// Base names of source files, one for each object file, in the order in which they were linked.
    pub files: Vec<String>,
    /// Executable segments.
    pub code: Vec<ExecutableSegment>,
    /// Contents of `.pleach_cfg`.
    pub manifest: Vec<u8>,
    /// Contents of `.pseudo_probe`.
    pub probes: Vec<u8>,
    /// Contents of `.pseudo_probe_desc`.
    pub probe_descriptors: Vec<u8>,
    /// Contents of `.llvm_bb_addr_map`, LLVM's basic-block address map (`-fbasic-block-address-map`).
    pub block_addresses: Vec<u8>,
    /// Instruction set of the code.
    pub architecture: Architecture,
    /// Whether this is a program and not a shared library. At run time another module may replace a library's global
    /// symbols.
    pub is_program: bool,
    /// The separate debug file that symbols were taken from.
    pub debug_file: Option<PathBuf>,
}

/// An executable segment.
#[derive(Clone, Debug)]
pub struct ExecutableSegment {
    /// Address of the first byte.
    pub address: Address,
    /// Offset of the first byte in the file.
    pub file_offset: u64,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Why a binary could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BinaryError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The file is no usable ELF file.
    #[error("{}: {what}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: String,
    },
}

impl Binary {
    /// Reads an ELF file for x86-64 or AArch64. Symbols and sections that it lacks are read from its separate debug file
    /// (`/usr/lib/debug/.build-id`, then the file that `.gnu_debuglink` names).
    ///
    /// # Errors
    /// Fails if the file cannot be read, is no ELF file for these processors, or is malformed.
    pub fn open(path: &Path) -> Result<Self, BinaryError> {
        let data = read(path)?;
        let (file, architecture) = parse(path, &data)?;
        let build_id = file.build_id().ok().flatten().map(<[u8]>::to_vec);
        let (symbols, files) = symbols(&file);
        let mut binary = Self {
            path: path.to_owned(),
            symbols,
            files,
            code: code_segments(path, &data)?,
            manifest: section(&file, manifest::SECTION),
            probes: section(&file, probe::SECTION),
            probe_descriptors: section(&file, descriptors::SECTION),
            block_addresses: section(&file, ".llvm_bb_addr_map"),
            build_id,
            architecture,
            is_program: is_program(&data),
            debug_file: None,
        };
        if binary.symbols.is_empty() || binary.manifest.is_empty() {
            binary.complete_from_debug_file(&file);
        }
        if binary.symbols.is_empty() && !binary.is_annotated() {
            // A stripped file still has dynamic symbols, which name its exported functions. They do not suffice for
            // probes: those of other functions would be lost, or taken for code of exported ones.
            (binary.symbols, binary.files) = collect_symbols(file.dynamic_symbols());
        }
        Ok(binary)
    }

    fn complete_from_debug_file(&mut self, file: &object::File<'_>) {
        for path in debug_file_candidates(&self.path, file) {
            let Ok(data) = read_file(&path) else { continue };
            let Ok(debug) = object::File::parse(&*data) else {
                continue;
            };
            if debug.build_id().ok().flatten().map(<[u8]>::to_vec) != self.build_id {
                continue;
            }
            if self.symbols.is_empty() {
                (self.symbols, self.files) = symbols(&debug);
            }
            if self.manifest.is_empty() {
                self.manifest = section(&debug, manifest::SECTION);
            }
            if self.probes.is_empty() {
                self.probes = section(&debug, probe::SECTION);
            }
            self.debug_file = Some(path);
            return;
        }
    }

    /// Whether the file was built with `pleach flags annotate`.
    pub fn is_annotated(&self) -> bool {
        !self.manifest.is_empty()
    }

    /// The address at which the loader maps a byte of the file, if it is executable.
    pub fn address_of_offset(&self, offset: u64) -> Option<Address> {
        let segment = self
            .code
            .iter()
            .find(|s| offset >= s.file_offset && offset - s.file_offset < s.bytes.len() as u64)?;
        Some(Address(segment.address.0 + (offset - segment.file_offset)))
    }

    /// The offset in the file of an address, if it is executable.
    pub fn offset_of_address(&self, address: Address) -> Option<u64> {
        let segment = self
            .code
            .iter()
            .find(|s| address >= s.address && address.0 - s.address.0 < s.bytes.len() as u64)?;
        Some(segment.file_offset + (address.0 - segment.address.0))
    }

    /// Code from an address to the end of its segment.
    pub fn code_at(&self, address: Address) -> Option<&[u8]> {
        self.code.iter().find_map(|s| {
            let start = address.0.checked_sub(s.address.0)?;
            s.bytes
                .get(usize::try_from(start).ok()?..)
                .filter(|code| !code.is_empty())
        })
    }

    /// Position in `symbols` of the function that an address lies in.
    pub fn symbol_at(&self, address: Address) -> Option<usize> {
        let after = self.symbols.partition_point(|s| s.address <= address);
        let index = after.checked_sub(1)?;
        let symbol = &self.symbols[index];
        (address.0 - symbol.address.0 < symbol.size.max(1)).then_some(index)
    }
}

/// Refuses anything but regular files: a recording may name any path, and reading a device or pipe may never end.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    std::fs::read(path)
}

fn read(path: &Path) -> Result<Vec<u8>, BinaryError> {
    read_file(path).map_err(|source| BinaryError::Read {
        path: path.to_owned(),
        source,
    })
}

fn unsupported(path: &Path, what: impl Into<String>) -> BinaryError {
    BinaryError::Unsupported {
        path: path.to_owned(),
        what: what.into(),
    }
}

fn parse<'d>(path: &Path, data: &'d [u8]) -> Result<(object::File<'d>, Architecture), BinaryError> {
    if !data.starts_with(&elf::ELFMAG) {
        return Err(unsupported(path, "not an ELF file"));
    }
    let file = object::File::parse(data).map_err(|e| unsupported(path, format!("malformed ELF file: {e}")))?;
    let architecture = match file.architecture() {
        object::Architecture::X86_64 => Architecture::X86_64,
        object::Architecture::Aarch64 if file.is_little_endian() => Architecture::Aarch64,
        other => {
            return Err(unsupported(
                path,
                format!("{other:?} code; only x86-64 and little-endian AArch64 are supported"),
            ));
        }
    };
    Ok((file, architecture))
}

/// A section's contents; empty if it is missing or malformed.
fn section(file: &object::File<'_>, name: &str) -> Vec<u8> {
    let data = file.section_by_name(name).and_then(|s| s.compressed_data().ok());
    data.filter(|data| data.uncompressed_size / MAX_COMPRESSION_RATIO <= data.data.len() as u64)
        .and_then(|data| data.decompress().ok())
        .map(|data| data.into_owned())
        .unwrap_or_default()
}

fn symbols(file: &object::File<'_>) -> (Vec<Symbol>, Vec<String>) {
    collect_symbols(file.symbols())
}

/// The symbols of functions, sorted by address, and the names of all file symbols.
fn collect_symbols<'d>(iter: impl Iterator<Item = impl ObjectSymbol<'d>>) -> (Vec<Symbol>, Vec<String>) {
    let (mut out, mut files) = (Vec::new(), Vec::new());
    let mut current_file = None;
    for symbol in iter {
        let Ok(name) = symbol.name() else { continue };
        match symbol.kind() {
            // A file symbol names the source of the local symbols that follow it, up to an empty file symbol.
            SymbolKind::File => {
                current_file = (!name.is_empty()).then_some(files.len() as u32);
                files.extend(current_file.map(|_| name.to_owned()));
            }
            SymbolKind::Text if symbol.is_definition() => out.push(Symbol {
                address: Address(symbol.address()),
                size: symbol.size(),
                name: name.to_owned(),
                file: current_file.filter(|_| symbol.is_local()),
                local: symbol.is_local(),
            }),
            _ => {}
        }
    }
    out.sort_by(|a, b| (a.address, a.size, &a.name).cmp(&(b.address, b.size, &b.name)));
    (out, files)
}

fn code_segments(path: &Path, data: &[u8]) -> Result<Vec<ExecutableSegment>, BinaryError> {
    let malformed = |e: object::Error| unsupported(path, format!("malformed ELF file: {e}"));
    let header = elf::FileHeader64::<object::LittleEndian>::parse(data).map_err(malformed)?;
    let endian = header.endian().map_err(malformed)?;
    let mut out: Vec<ExecutableSegment> = Vec::new();
    for segment in header.program_headers(endian, data).map_err(malformed)? {
        if segment.p_type(endian) == elf::PT_LOAD && segment.p_flags(endian) & elf::PF_X != elf::ProgramFlags(0) {
            let bytes = segment
                .data(endian, data)
                .map_err(|()| unsupported(path, "a segment lies outside the file"))?;
            // Segments are copied, so a malformed file with 65 000 overlapping ones could exhaust memory.
            let before: usize = out.iter().map(|segment| segment.bytes.len()).sum();
            if before + bytes.len() > data.len() {
                return Err(unsupported(path, "malformed ELF file: its executable segments overlap"));
            }
            out.push(ExecutableSegment {
                address: Address(segment.p_vaddr(endian)),
                file_offset: segment.p_offset(endian),
                bytes: bytes.to_vec(),
            });
        }
    }
    Ok(out)
}

/// A position-independent program is a shared object that names an interpreter.
fn is_program(data: &[u8]) -> bool {
    let Ok(header) = elf::FileHeader64::<object::LittleEndian>::parse(data) else {
        return false;
    };
    let Ok(endian) = header.endian() else { return false };
    let segments = header.program_headers(endian, data).unwrap_or_default();
    let has_interpreter = segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP);
    header.e_type(endian) == elf::ET_EXEC || has_interpreter
}

fn debug_file_candidates(path: &Path, file: &object::File<'_>) -> Vec<PathBuf> {
    let mut out = Vec::new();
    if let Ok(Some([first, rest @ ..])) = file.build_id() {
        let rest: String = rest.iter().map(|b| format!("{b:02x}")).collect();
        out.push(PathBuf::from(format!(
            "/usr/lib/debug/.build-id/{first:02x}/{rest}.debug"
        )));
    }
    if let Ok(Some((name, _))) = file.gnu_debuglink() {
        let name = String::from_utf8_lossy(name).into_owned();
        // The link must be the name of a file in the same directory, not a path.
        let is_name = Path::new(&name).file_name() == Some(name.as_ref());
        if let Some(dir) = path.parent().filter(|_| is_name) {
            out.push(dir.join(&name));
            out.push(dir.join(".debug").join(&name));
        }
    }
    out.retain(|candidate| candidate != path);
    out
}
