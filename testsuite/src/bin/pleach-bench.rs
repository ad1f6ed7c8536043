//! `pleach-bench`: fetches, builds, checks and measures the workloads.

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use pleach_testsuite::bench::workloads_dir;
use pleach_testsuite::bless::{bless_input, bless_made_inputs};
use pleach_testsuite::compare::{self, Options};
use pleach_testsuite::size::text_size;
use pleach_testsuite::table::Cell;
use pleach_testsuite::variant::{Pleach, Recording, split_words};
use pleach_testsuite::workload::load_all;
use pleach_testsuite::{Bench, InputKind, Simulation, Table, Variant, progress};
use std::path::PathBuf;

#[derive(Parser)]
#[command(version, about = "Real programs to measure pleach on")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Where builds and inputs are kept [default: pleach-bench in cargo's target folder]
    #[arg(long, global = true, env = "PLEACH_BENCH_DIR")]
    work_dir: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Say which workloads there are
    List,
    /// Download the sources
    Fetch {
        /// Write the checksums of the inputs made from them into inputs.toml
        #[arg(long)]
        bless: bool,
    },
    /// Build workloads with clang
    Build(Build),
    /// Build a workload and run it on one of its inputs
    Run {
        #[command(flatten)]
        build: Build,
        /// train, ref, count, short or other
        #[arg(short, long, default_value = "ref")]
        input: InputKind,
        /// Run under cachegrind, and print what it counts
        #[arg(long)]
        counts: bool,
    },
    /// Run all inputs at -O2 and compare checksums with the committed ones
    Check {
        #[command(flatten)]
        which: Which,
        /// Write the checksums into the recipes instead
        #[arg(long)]
        bless: bool,
    },
    /// Compare variants with plain -O2: instructions, size, compile time, run time
    Compare {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        measure: Measure,
    },
}

#[derive(Args)]
struct Which {
    /// Only this workload; may be repeated
    #[arg(short, long = "workload", value_name = "NAME")]
    workloads: Vec<String>,
}

#[derive(Args)]
struct Build {
    #[command(flatten)]
    which: Which,
    /// Compiler flags, split as a shell would
    #[arg(long, default_value = "-O2", allow_hyphen_values = true)]
    cflags: String,
    /// Linker flags, split as a shell would
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    ldflags: String,
    /// A name for the build
    #[arg(long, default_value = "custom")]
    label: String,
}

#[derive(Args)]
struct Measure {
    /// Pairs of timed runs; 0 leaves timing out
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// The input that is timed
    #[arg(long, default_value = "ref")]
    time_on: InputKind,
    /// The input that is counted
    #[arg(long, default_value = "count")]
    count_on: InputKind,
    /// Leave cachegrind out
    #[arg(long)]
    no_counts: bool,
    /// Let cachegrind simulate caches and branches too
    #[arg(long)]
    model: bool,
    /// Variants to compare with plain -O2; may be repeated
    #[arg(long = "with", value_name = "VARIANT", value_enum, default_values_t = [VariantName::IrPgo, VariantName::Annotated, VariantName::Pleach])]
    variants: Vec<VariantName>,
    /// Options of `pleach record` for the training run
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "--overhead 1000%",
        allow_hyphen_values = true
    )]
    record: String,
    /// Options of `pleach flags annotate` and `pleach flags use` alike
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    flags: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VariantName {
    /// clang's -fprofile-use, from exact counts
    IrPgo,
    /// clang's -fprofile-generate
    Instrumented,
    /// clang's own pseudo-probes
    ClangProbes,
    /// `pleach flags annotate`
    Annotated,
    /// `pleach flags use`, from a recording of the training input
    Pleach,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let open = || Bench::open(cli.work_dir.as_deref());
    let table = match &cli.command {
        Command::List => list()?,
        Command::Fetch { bless } => fetch(&open()?, *bless)?,
        Command::Build(build) => build_all(&open()?, build)?,
        Command::Run { build, input, counts } => run(&open()?, build, *input, *counts)?,
        Command::Check { which, bless } => check(&open()?, which, *bless)?,
        Command::Compare { which, measure } => compare_variants(&open()?, which, measure)?,
    };
    if cli.json {
        println!("{}", serde_json::to_string_pretty(&table.to_json())?);
    } else {
        println!("{table}");
    }
    Ok(())
}

fn list() -> Result<Table> {
    let mut table = Table::new([
        ("name", "name"),
        ("like", "like"),
        ("licence", "licence"),
        ("description", ""),
    ]);
    for workload in load_all(&workloads_dir())? {
        table.push([workload.name, workload.like, workload.licence, workload.description].map(Cell::from));
    }
    Ok(table)
}

fn fetch(bench: &Bench, bless: bool) -> Result<Table> {
    if bless {
        for name in bless_made_inputs(bench)? {
            eprintln!("inputs.toml: new checksum of {name}");
        }
    }
    let mut table = Table::new([("package", "package"), ("folder", "folder")]);
    for (name, folder) in bench.packages().iter() {
        table.push([name.into(), folder.display().to_string().into()]);
    }
    Ok(table)
}

fn variant(build: &Build) -> Result<Variant> {
    // The variant adds its own `-O2` in front; a level among these flags comes later and counts.
    Ok(Variant::Flags {
        label: build.label.clone(),
        cflags: pleach_testsuite::variant::split_words(&build.cflags)?,
        ldflags: pleach_testsuite::variant::split_words(&build.ldflags)?,
    })
}

fn build_all(bench: &Bench, build: &Build) -> Result<Table> {
    let variant = variant(build)?;
    let workloads = bench.select(&build.which.workloads)?;
    let bar = progress::bar(workloads.len(), "building");
    let mut table = Table::new([
        ("workload", "workload"),
        ("text", "text"),
        ("compile_cpu", "compile CPU-s"),
        ("link_cpu", "link CPU-s"),
        ("binary", "binary"),
    ]);
    for workload in workloads {
        bar.set_message(workload.name.clone());
        let binary = variant.produce(bench, workload)?;
        table.push([
            workload.name.as_str().into(),
            text_size(&binary.path)?.executable.into(),
            Cell::Number(binary.report.compile_cpu(), 2),
            Cell::Number(binary.report.link.cpu, 2),
            binary.path.display().to_string().into(),
        ]);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(table)
}

fn run(bench: &Bench, build: &Build, input: InputKind, counts: bool) -> Result<Table> {
    let variant = variant(build)?;
    let mut table = Table::new([
        ("workload", "workload"),
        ("input", "input"),
        ("wall", "wall s"),
        ("cpu", "CPU s"),
        ("peak_memory", "peak bytes"),
        ("checksum", "checksum"),
        ("ok", "ok"),
        ("instructions", "instructions"),
    ]);
    for workload in bench.select(&build.which.workloads)? {
        let binary = variant.produce(bench, workload)?;
        let result = bench.run(&binary, input)?;
        let counted = counts
            .then(|| bench.counts(&binary, input, Simulation::InstructionsOnly))
            .transpose()?;
        table.push([
            workload.name.as_str().into(),
            input.name().into(),
            Cell::Number(result.usage.wall, 3),
            Cell::Number(result.usage.cpu, 3),
            result.usage.peak_memory.into(),
            result.checksum.into(),
            if result.checksum_ok { "yes" } else { "NO" }.into(),
            counted.map(|counts| counts.instructions).into(),
        ]);
    }
    Ok(table)
}

fn check(bench: &Bench, which: &Which, bless: bool) -> Result<Table> {
    let workloads = bench.select(&which.workloads)?;
    let bar = progress::bar(workloads.len() * InputKind::ALL.len(), "checking");
    let mut columns = vec![("workload", "workload".to_owned())];
    columns.extend(InputKind::ALL.map(|kind| (kind.name(), format!("{kind}, CPU s"))));
    let mut table = Table::new(columns);
    let mut wrong = Vec::new();
    for workload in workloads {
        let binary = Variant::O2.produce(bench, workload)?;
        let mut cells = vec![Cell::from(workload.name.as_str())];
        for kind in InputKind::ALL {
            bar.set_message(format!("{} {kind}", workload.name));
            let result = bench.run(&binary, kind)?;
            cells.push(Cell::Number(result.usage.cpu, 2));
            if !result.checksum_ok && bless {
                bless_input(workload, kind, &result.checksum)?;
            } else if !result.checksum_ok {
                wrong.push(format!("{} {kind}: {}", workload.name, result.checksum));
            }
            bar.inc(1);
        }
        table.push(cells);
    }
    bar.finish_and_clear();
    ensure!(
        wrong.is_empty(),
        "checksums differ from the committed ones:\n{}",
        wrong.join("\n")
    );
    Ok(table)
}

fn compare_variants(bench: &Bench, which: &Which, measure: &Measure) -> Result<Table> {
    let pleach = Pleach {
        command: pleach_command()?,
        options: split_words(&measure.flags)?,
    };
    let recording = Recording {
        options: split_words(&measure.record)?,
    };
    let variants: Vec<Variant> = measure
        .variants
        .iter()
        .map(|name| match name {
            VariantName::IrPgo => Variant::IrPgo,
            VariantName::Instrumented => Variant::IrPgoInstrumented,
            VariantName::ClangProbes => Variant::ClangProbes,
            VariantName::Annotated => Variant::Annotated(pleach.clone()),
            VariantName::Pleach => Variant::PleachUse(pleach.clone(), recording.clone()),
        })
        .collect();
    let options = Options {
        count_on: (!measure.no_counts).then_some(measure.count_on),
        simulation: if measure.model {
            Simulation::CachesAndBranches
        } else {
            Simulation::InstructionsOnly
        },
        time_on: measure.time_on,
        pairs: measure.pairs,
        ..Options::default()
    };
    let rows = compare::compare(
        bench,
        &bench.select(&which.workloads)?,
        &Variant::O2,
        &variants,
        &options,
    )?;
    Ok(compare::table(&rows))
}

/// The `pleach` that was built beside this program.
fn pleach_command() -> Result<std::path::PathBuf> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let command = own.with_file_name("pleach");
    ensure!(
        command.is_file(),
        "{} is not there: build everything with `cargo build --release`",
        command.display()
    );
    Ok(command)
}
