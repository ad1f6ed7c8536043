//! BOLT's profile.

use super::super::inputs::kept_vectors;
use super::super::output::plural;
use super::{Args, Export, program};
use anyhow::{Result, bail};
use pleach_export::fdata::Branches;

/// Branches of one binary.
pub fn export(args: &Args) -> Result<Export> {
    let vectors = kept_vectors(&args.profile)?;
    let (module, binary) = program::of(&vectors, args, "BOLT rewrites one file")?;
    if binary.symbols.is_empty() {
        bail!(
            "{}: no symbols: BOLT needs the file before it was stripped",
            binary.path.display()
        );
    }
    let branches = Branches::from_vectors(&vectors, module, &binary);
    if branches.executed.is_empty() {
        bail!(
            "{}: no taken branches of {}: name another file with --binary",
            args.profile.display(),
            binary.path.display()
        );
    }
    let summary = format!(
        "{} of {}",
        plural(branches.executed.len(), "distinct branch"),
        binary.path.display()
    );
    Ok(Export {
        bytes: branches.to_text(&binary).into_bytes(),
        summary,
    })
}
