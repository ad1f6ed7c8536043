//! clang's sample profile, by the probes of stock clang.

use super::super::inputs::kept_vectors;
use super::super::output::plural;
use super::{Args, Export, program};
use anyhow::{Context, Result, bail};
use pleach_annotate::{descriptors, probe};
use pleach_export::sample_profile::count_probes;

/// Counts of the probes of one binary.
pub fn export(args: &Args) -> Result<Export> {
    let vectors = kept_vectors(&args.profile)?;
    let (module, binary) = program::of(&vectors, args, "a profile by probes is of one file")?;
    let path = binary.path.display();
    if binary.is_annotated() {
        bail!(
            "{path}: its probes are pleach's, which stock clang does not know: build it with -fpseudo-probe-for-profiling, \
             without $(pleach flags annotate), and record again"
        );
    }
    if binary.probes.is_empty() || binary.probe_descriptors.is_empty() {
        bail!("{path}: no probes: build it with -fpseudo-probe-for-profiling, and record again");
    }
    let forest = probe::decode(&binary.probes, &binary.symbols).with_context(|| path.to_string())?;
    let descriptors = descriptors::decode(&binary.probe_descriptors).with_context(|| path.to_string())?;
    let samples = count_probes(&vectors, module, &binary, &forest, &descriptors);
    let sampled = samples.functions.values().filter(|function| function.total() > 0);
    let sampled = sampled.count();
    if sampled == 0 {
        bail!(
            "{}: no samples of functions of {path}: name another file with --binary",
            args.profile.display()
        );
    }
    Ok(Export {
        bytes: samples.to_text().into_bytes(),
        summary: format!("probes of {} of {path}", plural(sampled, "function")),
    })
}
