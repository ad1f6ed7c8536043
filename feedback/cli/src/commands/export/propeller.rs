//! Propeller's profile.

use super::super::inputs::kept_vectors;
use super::super::output::plural;
use super::{Args, program};
use anyhow::{Context, Result, bail};
use pleach_export::propeller::Propeller;
use pleach_store::write_bytes;
use std::process::ExitCode;

/// Files in the directory, as Propeller's own tool names them.
const CLUSTERS: &str = "cc_profile.txt";
const ORDER: &str = "ld_profile.txt";

/// Writes both files.
pub fn export(args: &Args) -> Result<ExitCode> {
    let vectors = kept_vectors(&args.profile)?;
    let (module, binary) = program::of(&vectors, args, "Propeller is about one file")?;
    let path = binary.path.display();
    if binary.block_addresses.is_empty() {
        bail!("{path}: no basic-block address map: build it with -fbasic-block-address-map, and record it again");
    }
    let found = Propeller::from_vectors(&vectors, module, &binary).with_context(|| path.to_string())?;
    if found.functions == 0 {
        bail!(
            "{}: nothing of {path} was sampled: name another file with --binary",
            args.profile.display()
        );
    }
    let folder = &args.output;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in [(CLUSTERS, &found.clusters), (ORDER, &found.order)] {
        let file = folder.join(name);
        write_bytes(&file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if !args.quiet {
        eprintln!(
            "pleach: {} in {} of {path}; wrote {CLUSTERS} and {ORDER} to {}",
            plural(found.blocks, "executed block"),
            plural(found.functions, "function"),
            folder.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}
