//! Sizes of code.

use anyhow::{Context, Result};
use object::{Object, ObjectSection, SectionFlags};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Bytes of machine code in a linked file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TextSize {
    /// The section `.text`.
    pub text: u64,
    /// All executable sections: also `.plt`, `.init` and cold code that was split off. BOLT keeps the old code
    /// beside the new: functions without a profile still run there.
    pub executable: u64,
    /// Sections that are loaded at all.
    pub loaded: u64,
}

/// A digest of the machine code of an ELF file: two with the same digest run alike.
///
/// # Errors
/// The file cannot be read, or is no ELF file.
pub fn code_digest(path: &Path) -> Result<u64> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(&*bytes).with_context(|| format!("in {}", path.display()))?;
    let mut hasher = Xxh3::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            continue;
        };
        if sh_flags.contains(object::elf::SHF_EXECINSTR) {
            hasher.update(&section.address().to_le_bytes());
            hasher.update(section.data().with_context(|| format!("in {}", path.display()))?);
        }
    }
    Ok(hasher.digest())
}

/// Sums the sections of an ELF file.
pub fn text_size(path: &Path) -> Result<TextSize> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(&*bytes).with_context(|| format!("in {}", path.display()))?;
    let mut size = TextSize::default();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            continue;
        };
        if sh_flags.contains(object::elf::SHF_ALLOC) {
            size.loaded += section.size();
        }
        if sh_flags.contains(object::elf::SHF_EXECINSTR) {
            size.executable += section.size();
            if section.name() == Ok(".text") {
                size.text += section.size();
            }
        }
    }
    Ok(size)
}
