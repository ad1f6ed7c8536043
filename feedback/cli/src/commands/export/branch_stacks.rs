//! perf.data, and text of `perf script`.

use super::super::inputs::kept_vectors;
use super::super::output::plural;
use super::{Args, Export, FormatArg};
use anyhow::{Result, bail};
use pleach_collector::perf::export::{ExportOptions, perf_data, perf_script, stacks};

/// Default depth of a branch stack: that of Intel's processors.
const DEPTH: u32 = 32;
/// A burst may represent many equal ones; with more stacks than this, files have hundreds of gigabytes.
const MAX_STACKS: u64 = 1 << 28;

/// Branch stacks.
pub fn export(args: &Args) -> Result<Export> {
    let name = args.profile.display();
    let vectors = kept_vectors(&args.profile)?;
    let options = ExportOptions {
        depth: args.depth.unwrap_or(DEPTH) as usize,
    };
    let stacks = stacks(&vectors, options);
    if stacks > MAX_STACKS {
        bail!("{name} would become {stacks} branch stacks, more than any tool reads: export with a larger --depth")
    }
    let (bytes, exported) = match args.format {
        FormatArg::Perfscript => perf_script(&vectors, options),
        _ => perf_data(&vectors, options),
    };
    if exported.stacks == 0 {
        // Tools treat a perf.data file without samples as an unfinished one.
        bail!("{name} holds no taken branches of a mapped file: there is nothing to export")
    }
    if !args.quiet {
        if exported.unmapped > 0 {
            eprintln!(
                "pleach: warning: left out: {} to or from unmapped addresses",
                plural(exported.unmapped, "branch")
            );
        }
        if exported.period > 1 {
            eprintln!(
                "pleach: compressed recording: each branch stack represents {}",
                exported.period
            );
        }
    }
    let summary = format!(
        "{} in {}",
        plural(exported.branches, "taken branch"),
        plural(exported.stacks, "branch stack")
    );
    Ok(Export { bytes, summary })
}
