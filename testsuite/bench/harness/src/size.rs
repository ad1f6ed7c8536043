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

/// Calls `visit` with each loaded section of an ELF file, and whether it is executable.
fn for_loaded_sections(path: &Path, mut visit: impl FnMut(&object::Section<'_, '_>, bool) -> Result<()>) -> Result<()> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(&*bytes).with_context(|| format!("in {}", path.display()))?;
    for section in file.sections() {
        if let SectionFlags::Elf { sh_flags, .. } = section.flags()
            && sh_flags.contains(object::elf::SHF_ALLOC)
        {
            visit(&section, sh_flags.contains(object::elf::SHF_EXECINSTR))?;
        }
    }
    Ok(())
}

/// A digest of the machine code of an ELF file: two with the same digest run alike.
///
/// # Errors
/// The file cannot be read, or is no ELF file.
pub fn code_digest(path: &Path) -> Result<u64> {
    let mut hasher = Xxh3::new();
    for_loaded_sections(path, |section, is_executable| {
        if is_executable {
            hasher.update(&section.address().to_le_bytes());
            hasher.update(section.data().with_context(|| format!("in {}", path.display()))?);
        }
        Ok(())
    })?;
    Ok(hasher.digest())
}

/// Sums the sections of an ELF file.
pub fn text_size(path: &Path) -> Result<TextSize> {
    let mut size = TextSize::default();
    for_loaded_sections(path, |section, is_executable| {
        size.loaded += section.size();
        if is_executable {
            size.executable += section.size();
            if section.name() == Ok(".text") {
                size.text += section.size();
            }
        }
        Ok(())
    })?;
    Ok(size)
}
