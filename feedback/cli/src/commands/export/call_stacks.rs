//! Call stacks: for pprof and the Firefox Profiler.

use super::super::inputs::kept_vectors;
use super::super::output::plural;
use super::{Args, Export, FormatArg};
use anyhow::{Context, Result, bail};
use pleach_analysis::program::Program;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::sources::Sources;
use pleach_export::firefox::processed_profile;
use pleach_export::functions::functions;
use pleach_export::pprof;
use pleach_report::names::demangled;
use std::path::{Path, PathBuf};

/// Call stacks, rebuilt from the calls and returns of raw vectors.
pub fn export(args: &Args) -> Result<Export> {
    let vectors = kept_vectors(&args.profile)?;
    let program = Program::read(&vectors.modules, &args.files.finder()?);
    for problem in &program.problems {
        eprintln!("pleach: warning: {problem}");
    }
    if program.annotated().next().is_none() {
        bail!(
            "{}: call stacks need the annotated program that was recorded: compile it with $(pleach flags annotate), \
             or name it with --binary",
            args.profile.display()
        );
    }
    let sources = sources(&program)?;
    let file_of = |cfg: &Cfg| {
        let mut sources = sources.iter();
        sources.find_map(|sources| sources.file_of(&cfg.name, &cfg.source_file).map(Path::to_owned))
    };
    let functions = functions(&program, &|name| demangled(name).into_owned(), &file_of);
    let bytes = match args.format {
        FormatArg::Firefox => processed_profile(&program, &vectors, &functions)?.into_bytes(),
        _ => pprof::profile(&program, &vectors, &functions),
    };
    let summary = format!("call stacks of {}", plural(vectors.burst_count(), "burst"));
    Ok(Export { bytes, summary })
}

/// Source files of functions, where debug information tells.
fn sources(program: &Program) -> Result<Vec<Sources>> {
    let files = program.annotated().flat_map(|(_, map)| {
        let binary = &map.binary;
        std::iter::once(&binary.path).chain(&binary.debug_file)
    });
    files
        .map(|file: &PathBuf| Sources::read(file).with_context(|| format!("cannot read {}", file.display())))
        .collect()
}
