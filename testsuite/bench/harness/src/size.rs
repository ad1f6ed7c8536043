//! Sizes of code.

use anyhow::{Context, Result};
use object::{Object, ObjectSection, SectionFlags};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

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
