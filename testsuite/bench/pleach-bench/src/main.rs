//! `pleach-bench`: fetches, builds, checks and measures the workloads.

mod args;
mod peer_args;
mod suite_args;

use anyhow::{Result, bail, ensure};
use args::{Accuracy, Build, Cli, Command, CreditingName, LevelName, Measure, TimeBiasName, VariantName};
use clap::Parser;
use pleach_analysis::credit::Crediting;
use pleach_analysis::evaluate::estimate::TimeBias;
use pleach_ball_larus::Mode;
use pleach_bench::compare::{self, ComparisonOptions};
use pleach_bench::{accuracy, coverage, rates};
use pleach_check::verify;
use pleach_check::verify::Verified;
use pleach_collector::vector::Engine;
use pleach_harness::bless::{bless_input, bless_made_inputs};
use pleach_harness::cli::{Exact, Which, plain_pleach, pleach_command};
use pleach_harness::pleach_command::{Pleach, split_words};
use pleach_harness::size::text_size;
use pleach_harness::table::{Cell, Section};
use pleach_harness::variant::{PleachUse, Recording};
use pleach_harness::workload::load_all;
use pleach_harness::{Bench, InputKind, Simulation, Table, Variant, parallel, progress};

fn main() -> Result<()> {
    let cli = Cli::parse();
    let open = || cli.common.open();
    let print = |sections: &[Section]| cli.common.print(sections);
    let sections = match &cli.command {
        Command::List => list(&cli.common.workloads_dir())?.into(),
        Command::Fetch { bless } => fetch(&open()?, *bless)?.into(),
        Command::Build(build) => build_all(&open()?, build)?.into(),
        Command::Run { build, input, counts } => run(&open()?, build, *input, *counts)?.into(),
        Command::Check { which, bless } => check(&open()?, which, *bless)?.into(),
        Command::Compare { which, measure } => compare_variants(&open()?, which, measure)?,
        Command::Peers(chosen) => peer_args::peers(&open()?, &plain_pleach()?, chosen)?,
        Command::Ablate(chosen) => peer_args::ablate(&open()?, &plain_pleach()?, chosen)?,
        Command::Decisions(chosen) => peer_args::decisions(&open()?, &plain_pleach()?, chosen)?,
        Command::Rates {
            which,
            engines,
            budgets,
            pairs,
            on,
            with,
        } => {
            let bench = open()?;
            let options = rates::RateOptions {
                engines: engines.clone(),
                budgets: budgets.clone(),
                pairs: *pairs,
                on: *on,
                with: with.clone(),
            };
            rates::sections(&rates::rates(
                &bench,
                &bench.select(&which.workloads)?,
                &plain_pleach()?,
                &options,
            )?)
        }
        Command::Accuracy(options) => accuracy_of(&open()?, options)?,
        Command::Coverage {
            exact,
            budget,
            period,
            runs,
            repeat,
            exact_runs,
            branches,
        } => {
            let bench = open()?;
            let options = coverage::CoverageOptions {
                rate: period.as_ref().unwrap_or(budget).clone(),
                runs: (*runs).max(1),
                repeat: (*repeat).max(1),
                exact_runs: (*exact_runs).max(1),
                on: exact.on,
                branches: *branches,
            };
            let workloads = bench.select(&exact.which.workloads)?;
            let found = coverage::coverage(&bench, &workloads, &exact.anchor.pleach()?, &options)?;
            coverage::sections(&found, &options)
        }
        Command::Verify(exact) => {
            let verified = verify_all(&open()?, exact)?;
            print(&verify::sections(&verified))?;
            if !verified.iter().all(Verified::is_consistent) {
                bail!("the counts contradict each other");
            }
            return Ok(());
        }
        Command::Suites(chosen) => {
            let checked = suite_args::check(&open()?, &pleach_command()?, chosen)?;
            print(&pleach_check::suites::sections(&checked))?;
            let failures: usize = checked.iter().map(|suite| suite.failures.len()).sum();
            ensure!(failures == 0, "{failures} builds or cases went wrong");
            return Ok(());
        }
    };
    print(&sections)
}

fn list(workloads: &std::path::Path) -> Result<Table> {
    let mut table = Table::new([
        ("name", "name"),
        ("like", "like"),
        ("licence", "licence"),
        ("description", ""),
    ]);
    for workload in load_all(workloads)? {
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
        cflags: pleach_harness::pleach_command::split_words(&build.cflags)?,
        ldflags: pleach_harness::pleach_command::split_words(&build.ldflags)?,
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

fn compare_variants(bench: &Bench, which: &Which, measure: &Measure) -> Result<Vec<Section>> {
    let pleach = Pleach {
        command: pleach_command()?,
        options: split_words(&measure.flags)?,
    };
    let recording = Recording {
        options: split_words(&measure.record)?,
        ..Recording::default()
    };
    let variants: Vec<Variant> = measure
        .variants
        .iter()
        .map(|name| match name {
            VariantName::IrPgo => Variant::IrPgo,
            VariantName::Instrumented => Variant::IrPgoInstrumented,
            VariantName::InstrumentedNoPreinline => Variant::instrumented_without_preinlining(),
            VariantName::Paths => Variant::Counted(pleach.clone(), Mode::Paths),
            VariantName::Edges => Variant::Counted(pleach.clone(), Mode::Edges),
            VariantName::ClangProbes => Variant::ClangProbes,
            VariantName::SourceCoverage => Variant::source_coverage(),
            VariantName::Annotated => Variant::Annotated(pleach.clone()),
            VariantName::Pleach => Variant::PleachUse(PleachUse::new(pleach.clone(), recording.clone())),
        })
        .collect();
    let options = ComparisonOptions {
        count_on: (!measure.no_counts).then_some(measure.count_on),
        simulation: if measure.model {
            Simulation::CachesAndBranches
        } else {
            Simulation::InstructionsOnly
        },
        taken_branches: measure.taken,
        time_on: measure.time_on,
        pairs: measure.pairs,
        ..ComparisonOptions::default()
    };
    let rows = compare::compare(
        bench,
        &bench.select(&which.workloads)?,
        &Variant::O2,
        &variants,
        &options,
    )?;
    Ok(compare::sections(&rows))
}

fn accuracy_of(bench: &Bench, chosen: &Accuracy) -> Result<Vec<Section>> {
    let level = |name: &LevelName| match name {
        LevelName::O1 => accuracy::Level::O1,
        LevelName::O2 => accuracy::Level::O2,
        LevelName::O3 => accuracy::Level::O3,
        LevelName::IrPgo => accuracy::Level::IrPgo,
    };
    let crediting = |name: &CreditingName| match name {
        CreditingName::Em => Crediting::Em,
        CreditingName::Equal => Crediting::Equal,
        CreditingName::EdgeIndependent => Crediting::Independent,
    };
    let time_bias = |name: &TimeBiasName| match name {
        TimeBiasName::Uncorrected => TimeBias::Uncorrected,
        TimeBiasName::Corrected => TimeBias::Corrected,
    };
    let options = accuracy::AccuracyOptions {
        levels: chosen.levels.iter().map(level).collect(),
        budgets: chosen.budgets.iter().map(|percent| percent / 100.0).collect(),
        lengths: chosen.lengths.iter().map(|length| length.0).collect(),
        creditings: chosen.creditings.iter().map(crediting).collect(),
        time_biases: chosen.time_biases.iter().map(time_bias).collect(),
        runs: chosen.runs,
        cpu_seconds: chosen.cpu_seconds,
        on: chosen.on,
        engine: if chosen.step { Engine::Step } else { Engine::RunAhead },
    };
    let pleach = chosen.anchor.pleach()?;
    let sampler = pleach.command.with_file_name("libpleach_stub.so");
    let workloads = bench.select(&chosen.which.workloads)?;
    let found = accuracy::accuracy(bench, &workloads, &pleach, sampler, &options)?;
    Ok(accuracy::sections(&found))
}

fn verify_all(bench: &Bench, exact: &Exact) -> Result<Vec<Verified>> {
    let workloads = bench.select(&exact.which.workloads)?;
    verify::verify(
        bench,
        &workloads,
        &exact.anchor.pleach()?,
        exact.on,
        parallel::default_jobs(),
    )
}
