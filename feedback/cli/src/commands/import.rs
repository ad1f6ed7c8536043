//! `pleach import`: converts a recording of perf, or exact counts, to a profile.

use super::binaries::RecordedFiles;
use super::inputs::note_changed;
use super::merge::add_vectors;
use super::output::plural;
use super::profile_output::write_profile;
use super::progress::Progress;
use super::recorded::analysed;
use anyhow::{Context, Result, bail};
use pleach_analysis::exact_profile;
use pleach_analysis::time_bias::{Model, Weights};
use pleach_annotate::map::AddressMap;
use pleach_annotate::sources::Locations;
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::counts::file::CountFile;
use pleach_collector::perf::{Imported, PerfError, Report, import_watched};
use pleach_export::sample_profile::import::{Annotated, profile_of};
use pleach_export::sample_profile::{self, SampleProfile};
use pleach_fleet::folder::Folder;
use pleach_fleet::import as tables;
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use pleach_report::profile_text;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tempfile::NamedTempFile;

/// Convert a recording of `perf record -b`, or exact counts, to a profile.
///
/// Reads perf.data files and the output of `perf script -F ip,brstack`; for the latter, add --show-mmap-events there,
/// or name the binary with --binary. `-` is standard input. If the recorded program was compiled with $(pleach flags
/// annotate), `pleach flags use` takes the profile as it is. Otherwise its raw vectors are kept for `pleach export`,
/// but the compiler cannot use them.
///
/// Also reads a file of exact counts (.plcnt) from a program that was compiled with $(pleach flags instrument --anchor
/// early). This gives a profile without sampling error. It has no targets of indirect calls.
///
/// Also reads sample profiles as text, of llvm-profgen (of probes or lines) and AutoFDO, for an annotated binary of the
/// same sources; for counts of lines, it must have been compiled with -g1 -fdebug-info-for-profiling. They have no
/// paths. A thousand block entries count as one burst.
///
/// Also reads the text of a profile, as `pleach show --text` prints it, and directories of tables from `pleach export
/// --format parquet`: several runs in one directory become one profile, as `pleach merge` makes it.
///
///   pleach import perf.data -o app.pleach                        a recording of perf record -b
///   pleach import script.txt --binary ./app -o app.pleach        the output of perf script
///   pleach import default-123.plcnt -o app.pleach                exact counts
///   pleach import app.prof --binary ./app -o app.pleach          a sample profile
///   pleach import app.txt -o app.pleach                          the text of a profile
///   pleach import tables -o app.pleach                           a directory of Parquet tables
///
/// Exit status: 0 if the whole file was read; 1 if no profile was written; 3 if the recording is damaged, for instance
/// cut off, and the profile contains only the readable part.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The perf.data file or text, the file of exact counts, the sample profile, the text of a profile, or the directory
    /// of tables.
    file: PathBuf,
    #[command(flatten)]
    files: RecordedFiles,
    /// Keep the raw vectors in the profile.
    #[arg(long)]
    keep_vectors: bool,
    /// Correct the time bias of samples that were taken at an event of time (cycles, cpu-clock, …): weight branches by
    /// the cycles of the branch records. Samples taken at other events, such as taken branches, and records without
    /// cycles are left as they are.
    #[arg(long)]
    correct_time_bias: bool,
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
    /// The profile to write. A profile that is there is renamed FILE.old.
    #[arg(short, long, default_value = "default.pleach", value_name = "FILE")]
    output: PathBuf,
}

/// Exit status if only a part of the recording could be read.
const DAMAGED: u8 = 3;

/// Imports.
pub fn run(args: &Args) -> Result<ExitCode> {
    ensure_writable(&args.output)?;
    if args.file.is_dir() {
        return import_tables(args);
    }
    if CountFile::is_count_file(&args.file).unwrap_or(false) {
        return import_counts(args);
    }
    if let Some(text) = profile_text_of(&args.file)? {
        return import_text(args, &text);
    }
    if is_binary_sample_profile(&args.file) {
        bail!(
            "{}: a sample profile in LLVM's binary format: convert it with `llvm-profdata-22 merge --sample --text`",
            args.file.display()
        );
    }
    if begins_as(&args.file, sample_profile::is_sample_profile) {
        return import_samples(args);
    }
    let progress = Progress::new("reading", args.quiet);
    let watch = |done, of| progress.at(done, of);
    let Imported { vectors, report } =
        import_watched(&args.file, args.files.binary.first().map(PathBuf::as_path), &watch)?;
    drop(progress);
    if vectors.bursts.is_empty()
        && let Some(damage) = report.damage
    {
        return Err(PerfError::Damaged {
            path: args.file.clone(),
            damage,
        }
        .into());
    }
    if vectors.bursts.is_empty() {
        bail!(
            "{}: no sample has branches: nothing ran, or the machine has no branch records",
            args.file.display()
        );
    }
    // Printed even with --quiet, because it explains the exit status.
    let told = if args.quiet {
        usize::from(report.damage.is_some())
    } else {
        usize::MAX
    };
    for line in remarks(&args.file, &report).iter().take(told) {
        eprintln!("pleach: {line}");
    }
    let weights = match args.correct_time_bias {
        true => Weights::from_vectors(&vectors, &Model::default()),
        false => Weights::equal(),
    };
    if args.correct_time_bias && !weights.has_speeds() && !args.quiet {
        eprintln!(
            "pleach: note: no time bias was corrected: no sample of an event of time has the cycles of its branches"
        );
    }
    let profile = analysed(
        &vectors,
        &weights,
        &args.files.finder()?,
        &[],
        args.keep_vectors,
        args.quiet,
    )?;
    write_profile(&args.output, &profile)?;
    if !args.quiet {
        eprintln!(
            "pleach: {} in {}; wrote {}",
            plural(report.branches, "taken branch"),
            plural(report.vectors, "sample"),
            args.output.display()
        );
    }
    if report.damage.is_some() {
        return Ok(ExitCode::from(DAMAGED));
    }
    Ok(ExitCode::SUCCESS)
}

/// The text of a profile, if the file holds one.
fn profile_text_of(path: &Path) -> Result<Option<String>> {
    if !begins_as(path, profile_text::is_profile_text) {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(text))
}

/// Whether the beginning of a file is of some kind. An unreadable file is of none: it is reported when it is read.
fn begins_as(path: &Path, is_kind: impl Fn(&[u8]) -> bool) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| match file.metadata()?.is_file() {
        true => file.take(BEGINNING).read_to_end(&mut beginning),
        false => Ok(0),
    });
    read.is_ok() && is_kind(&beginning)
}

/// Bytes that tell of what kind a file is; names of C++ functions are long.
const BEGINNING: u64 = 16 << 10;

/// Whether a file begins with the magic number of LLVM's sample profiles: `SPROF42` and a format, as a number.
fn is_binary_sample_profile(path: &Path) -> bool {
    begins_as(path, |beginning| {
        let mut number = beginning.iter().take(10).scan(0, |shift, byte| {
            let part = u64::from(byte & 0x7f).checked_shl(*shift).unwrap_or(0);
            *shift += 7;
            Some((part, byte & 0x80 == 0))
        });
        let mut magic = 0;
        // ULEB128 in the binary format; eight bytes in the extensible one.
        for (part, is_last) in number.by_ref() {
            magic |= part;
            if is_last {
                break;
            }
        }
        let fixed = beginning.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        [magic, fixed]
            .iter()
            .any(|magic| magic.to_be_bytes().starts_with(b"SPROF42"))
    })
}

/// Reads a sample profile.
fn import_samples(args: &Args) -> Result<ExitCode> {
    let name = args.file.display();
    if args.files.binary.is_empty() {
        bail!("{name}: a sample profile, which does not name its binary: name the annotated program with --binary");
    }
    let text = std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {name}"))?;
    let samples = SampleProfile::from_text(&text).with_context(|| name.to_string())?;
    let mut binaries = Vec::new();
    for path in &args.files.binary {
        binaries.push(Annotated {
            map: AddressMap::read(path)?,
            locations: Locations::read(path).with_context(|| format!("cannot read {}", path.display()))?,
        });
    }
    let (profile, used) = profile_of(&samples, &binaries)
        .context("the binaries are annotated at different anchors: compile all of them with the same --anchor")?;
    let left_out = [
        (&used.unknown, "not in the binary"),
        (
            &used.changed,
            "with probes of another graph: compile the binary from the profile's sources",
        ),
        (
            &used.without_lines,
            "without lines in the binary: compile it with -g1 -fdebug-info-for-profiling from the profile's sources",
        ),
    ];
    if used.functions == 0 {
        let most = left_out.iter().max_by_key(|(functions, _)| functions.len());
        bail!(
            "{name}: none of its functions can be used: {}",
            most.map(|(functions, why)| format!("{} {why}", plural(functions.len(), "function")))
                .unwrap_or_default()
        );
    }
    write_checked(args, &profile)?;
    if !args.quiet {
        for (functions, why) in left_out.iter().filter(|(functions, _)| !functions.is_empty()) {
            eprintln!("pleach: note: {} {why}", plural(functions.len(), "function"));
        }
        eprintln!(
            "pleach: sample profile of {}; wrote {}",
            plural(used.functions, "function"),
            args.output.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the text of a profile back.
fn import_text(args: &Args, text: &str) -> Result<ExitCode> {
    let profile = profile_text::from_text(text).with_context(|| args.file.display().to_string())?;
    write_checked(args, &profile)?;
    if !args.quiet {
        let functions = plural(profile.functions.len(), "function");
        eprintln!("pleach: {functions}; wrote {}", args.output.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads tables, and merges their runs.
fn import_tables(args: &Args) -> Result<ExitCode> {
    let progress = Progress::counted("reading", "runs", args.quiet);
    let mut merged = tables::import(&Folder::new(&args.file), &|done, of| progress.at(done, of))?;
    drop(progress);
    match merged.report.profiles {
        1 => merged.profile.vectors = merged.vectors.pop(),
        _ => add_vectors(&mut merged),
    }
    write_checked(args, &merged.profile)?;
    note_changed(&merged.report);
    if !args.quiet {
        let runs = plural(merged.report.profiles, "run");
        let functions = plural(merged.report.functions, "function");
        eprintln!("pleach: {functions} in {runs}; wrote {}", args.output.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a profile that was put together elsewhere. Parts that do not agree are found by reading: a file that cannot be
/// read is not left.
fn write_checked(args: &Args, profile: &Profile) -> Result<()> {
    let trial = NamedTempFile::new().context("cannot make a temporary file")?;
    let read =
        pleach_store::write_profile(trial.path(), profile).and_then(|()| ProfileFile::open(trial.path())?.read_all());
    read.with_context(|| format!("{}: its parts do not agree", args.file.display()))?;
    write_profile(&args.output, profile)
}

/// Converts exact counts.
fn import_counts(args: &Args) -> Result<ExitCode> {
    let counts = CountFile::open(&args.file)?;
    let exact = ExactProfile::from_counts(&counts);
    let problems = counts.problems.iter().map(ToString::to_string);
    for problem in problems.chain(exact.problems.iter().map(ToString::to_string)) {
        eprintln!("pleach: warning: {}: {problem}", args.file.display());
    }
    let profile = exact_profile::profile_of(&exact).with_context(|| args.file.display().to_string())?;
    write_profile(&args.output, &profile)?;
    if !args.quiet {
        let executed = exact.functions.iter().filter(|f| f.is_executed()).count();
        eprintln!(
            "pleach: exact counts of {}; wrote {}",
            plural(executed, "executed function"),
            args.output.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks before a long operation that its result can be written.
pub(super) fn ensure_writable(output: &Path) -> Result<()> {
    if output.is_dir() {
        bail!("cannot write {}: it is a directory", output.display());
    }
    if output.metadata().is_ok_and(|found| !found.is_file()) {
        // A device or pipe is written directly, without a temporary file.
        return Ok(());
    }
    let dir = output.parent().filter(|dir| !dir.as_os_str().is_empty());
    pleach_store::probe_writable(dir.unwrap_or(Path::new(".")))
        .with_context(|| format!("cannot write {}", output.display()))
}

/// Remarks on an import, one line each.
fn remarks(path: &Path, report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let path = path.display();
    if let Some(damage) = &report.damage {
        let kept = report.vectors;
        lines.push(format!(
            "warning: {path}: {damage}; the {kept} samples up to there are used: record again if you need the rest"
        ));
    }
    if let Some(first) = &report.first_malformed {
        let count = report.malformed;
        lines.push(format!(
            "warning: {path}: left out: {}; first: {first}",
            plural(count, "malformed record")
        ));
    }
    if report.lost > 0 {
        let lost = report.lost;
        lines.push(format!(
            "note: {path}: the kernel lost {}: try a lower rate (perf record -F)",
            plural(lost, "sample")
        ));
    }
    if report.without_branches * 2 > report.samples {
        let (without, all) = (report.without_branches, report.samples);
        lines.push(format!("warning: {path}: {without} of {all} samples have no branches"));
    }
    let left_out = [
        (report.duplicates, "recorded twice by the processor"),
        (report.wrong_path, "fetched but not executed"),
    ];
    for (count, why) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        let branches = plural(count, "branch");
        lines.push(format!("note: {path}: left out: {branches} {why}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_collector::perf::{Damage, Format};

    #[test]
    fn remarks_name_the_file_and_what_to_do() {
        let damage = |at, what: &str, format| {
            Some(Damage {
                at,
                what: what.to_owned(),
                format,
            })
        };
        let report = Report {
            samples: 10,
            vectors: 4,
            without_branches: 6,
            duplicates: 3,
            wrong_path: 2,
            lost: 1,
            malformed: 5,
            first_malformed: damage(9, "a line that is not a sample", Format::PerfScript),
            damage: damage(77, "the file ends in a record", Format::PerfData),
            ..Report::default()
        };
        insta::assert_snapshot!(remarks(Path::new("a/perf.data"), &report).join("\n"), @r"
        warning: a/perf.data: the file ends in a record at byte 77; the 4 samples up to there are used: record again if you need the rest
        warning: a/perf.data: left out: 5 malformed records; first: a line that is not a sample in line 9
        note: a/perf.data: the kernel lost 1 sample: try a lower rate (perf record -F)
        warning: a/perf.data: 6 of 10 samples have no branches
        note: a/perf.data: left out: 3 branches recorded twice by the processor
        note: a/perf.data: left out: 2 branches fetched but not executed
        ");
        assert!(remarks(Path::new("x"), &Report::default()).is_empty());
    }
}
