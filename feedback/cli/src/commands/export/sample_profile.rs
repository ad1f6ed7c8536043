//! clang's sample profile.

use super::super::binaries::named_or_recorded;
use super::super::inputs::sampled;
use super::super::output::plural;
use super::{Args, Export};
use anyhow::{Context, Result, bail};
use pleach_analysis::instances::instance_profiles;
use pleach_analysis::program::Program;
use pleach_analysis::time_bias::Weights;
use pleach_annotate::id::FunctionGuid;
use pleach_annotate::map::AddressMap;
use pleach_annotate::sources::Locations;
use pleach_annotate::symbol_names::read_symbol_names;
use pleach_collector::vector::VectorSet;
use pleach_export::sample_profile::{FlatCounts, InlinedCounts, SampleProfile, collect};
use pleach_profile::{Anchor, Profile};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// What builds the debug information that places are found in.
const REMEDY: &str = "build it with -g1 -fdebug-info-for-profiling beside $(pleach flags annotate)";

/// Inferred counts by place: of inline instances where there are raw vectors, else of functions.
pub fn export(args: &Args) -> Result<Export> {
    let profile = sampled(std::slice::from_ref(&args.profile))?;
    if profile.anchor != Anchor::Early {
        bail!(
            "{}: clang looks counts up before it inlines functions, and these are later ones: annotate without \
             --anchor late, and record again",
            args.profile.display()
        );
    }
    let mut samples = SampleProfile::default();
    let kind = match &profile.vectors {
        Some(bytes) if !args.flat => {
            let vectors =
                VectorSet::from_bytes(bytes).with_context(|| format!("{}: raw vectors", args.profile.display()))?;
            add_instances(args, &vectors, &mut samples)?;
            "with inline stacks"
        }
        _ => {
            add_functions(args, &profile, &mut samples)?;
            "without inline stacks"
        }
    };
    let sampled = samples
        .functions
        .values()
        .filter(|function| function.total() > 0)
        .count();
    if sampled == 0 {
        bail!(
            "{}: no counts of functions with source lines: {REMEDY}",
            args.profile.display()
        );
    }
    Ok(Export {
        bytes: samples.to_text().into_bytes(),
        summary: format!("counts of {} {kind}", plural(sampled, "function")),
    })
}

/// From raw vectors.
fn add_instances(args: &Args, vectors: &VectorSet, samples: &mut SampleProfile) -> Result<()> {
    let program = Program::read(&vectors.modules, &args.files.finder()?);
    for problem in &program.problems {
        eprintln!("pleach: warning: {problem}");
    }
    let profiles = instance_profiles(&program, vectors, &Weights::equal());
    for (module, map) in program.annotated() {
        let counts = InlinedCounts {
            profiles: &profiles,
            module,
        };
        collect(samples, map, &locations(map)?, &counts, &names(map));
    }
    if program.annotated().next().is_none() {
        bail!(no_binary(args));
    }
    Ok(())
}

/// From a profile's counts of functions.
fn add_functions(args: &Args, profile: &Profile, samples: &mut SampleProfile) -> Result<()> {
    let binaries = named_or_recorded(&args.files.binary, &args.files.root, profile);
    for path in &binaries {
        let map = AddressMap::read(path)?;
        let counts = FlatCounts::new(profile, &map);
        collect(samples, &map, &locations(&map)?, &counts, &names(&map));
    }
    if binaries.is_empty() {
        bail!(no_binary(args));
    }
    Ok(())
}

fn no_binary(args: &Args) -> String {
    format!(
        "{}: counts get their source lines from the annotated program that was recorded, and it is not there: name it \
         with --binary",
        args.profile.display()
    )
}

/// The places of a binary's instructions, from its own and its separate debug information.
fn locations(map: &AddressMap) -> Result<Vec<Locations>> {
    let binary = &map.binary;
    let mut found = Vec::new();
    for file in std::iter::once(&binary.path).chain(&binary.debug_file) {
        let locations = Locations::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        found.extend((!locations.is_empty()).then_some(locations));
    }
    let path = binary.path.display();
    if found.is_empty() {
        bail!("{path}: no debug information: {REMEDY}");
    }
    if !found.iter().any(Locations::has_declarations) {
        bail!("{path}: its debug information does not say where functions begin: {REMEDY}");
    }
    Ok(found)
}

/// Names of functions that a binary calls.
fn names(map: &AddressMap) -> FxHashMap<FunctionGuid, Rc<str>> {
    let symbols = read_symbol_names(&map.binary.path).unwrap_or_default();
    let symbols = symbols.into_iter().map(|(guid, name)| (guid, name.into()));
    let graphs = map.functions.iter();
    symbols
        .chain(graphs.map(|function| (function.cfg.id.guid, function.cfg.name.as_str().into())))
        .collect()
}
