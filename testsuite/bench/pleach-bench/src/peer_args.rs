//! `pleach-bench peers`, `ablate` and `decisions`: their options and what they run.

use anyhow::{Context, Result, ensure};
use clap::Args;
use pleach_bench::ablate::{self, Optimisation};
use pleach_bench::compare::ComparisonOptions;
use pleach_bench::{decisions, peers};
use pleach_harness::cli::Which;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::table::Section;
use pleach_harness::variant::{PleachUse, Recording};
use pleach_harness::{Bench, InputKind, Simulation, Variant};

#[derive(Args)]
pub struct Measurement {
    #[command(flatten)]
    which: Which,
    /// Pairs of timed runs; 0 leaves timing out
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// The input that is timed
    #[arg(long, default_value = "ref")]
    time_on: InputKind,
    /// The input that is counted
    #[arg(long, default_value = "count")]
    count_on: InputKind,
    /// Count instructions and taken branches only
    #[arg(long)]
    no_model: bool,
    /// CPU time that sampling the training input may take
    #[arg(long, default_value = "1%")]
    overhead: String,
    /// CPU-seconds of the program in each recording
    #[arg(long, default_value_t = 10.0)]
    cpu_seconds: f64,
    /// Number of the recordings to use: they are kept and used again
    #[arg(long, default_value_t = 0)]
    recording: u32,
}

#[derive(Args)]
pub struct Peers {
    #[command(flatten)]
    measurement: Measurement,
    /// Only this variant, by the name of its column; may be repeated
    #[arg(long = "only", value_name = "NAME")]
    only: Vec<String>,
    /// Also pleach without this optimisation; may be repeated
    #[arg(long = "without", value_name = "NAME", value_parser = Optimisation::parse)]
    without: Vec<Optimisation>,
    /// Pairs of builds that are timed, from the same sources with profiles at hand
    #[arg(long, default_value_t = 0)]
    build_pairs: usize,
}

#[derive(Args)]
pub struct Ablate {
    #[command(flatten)]
    measurement: Measurement,
    /// An optimisation to leave out, by name or as NAME=-OPTION,-OPTION…; may be repeated [default: all that are known]
    #[arg(long = "optimisation", value_name = "NAME", value_parser = Optimisation::parse)]
    optimisations: Vec<Optimisation>,
    /// Link functions in the random order of this seed instead of the profile's. The mean over several orders does not
    /// depend on where code happens to be placed
    #[arg(long, value_name = "SEED", value_parser = clap::value_parser!(u32).range(1..))]
    function_order: Option<u32>,
}

#[derive(Args)]
pub struct Decisions {
    #[command(flatten)]
    measurement: Measurement,
    /// Only decisions of this optimisation; may be repeated
    #[arg(long = "optimisation", value_name = "NAME")]
    optimisations: Vec<String>,
    /// Maximum of decisions of an optimisation in a program: those with the largest predicted gains
    #[arg(long, default_value_t = 8)]
    max: usize,
    /// Random orders of functions that are timed; the pairs are divided among them
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    orders: u32,
    /// Time only decisions that change instructions or taken branches by this many per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    time_above: f64,
}

impl Measurement {
    fn options(&self) -> ComparisonOptions {
        ComparisonOptions {
            count_on: Some(self.count_on),
            simulation: if self.no_model {
                Simulation::InstructionsOnly
            } else {
                Simulation::CachesAndBranches
            },
            taken_branches: true,
            time_on: self.time_on,
            pairs: self.pairs,
            ..ComparisonOptions::default()
        }
    }

    fn recording(&self) -> Recording {
        let words = ["--quiet", "--keep-vectors", "--overhead", &self.overhead];
        Recording {
            options: words.map(str::to_owned).to_vec(),
            cpu_seconds: Some(self.cpu_seconds),
            kept: Some(self.recording),
        }
    }
}

/// Runs `pleach-bench peers`.
pub fn peers(bench: &Bench, pleach: &Pleach, chosen: &Peers) -> Result<Vec<Section>> {
    let measurement = &chosen.measurement;
    let recording = measurement.recording();
    let all = PleachUse::new(pleach.clone(), recording.clone());
    let mut variants = peers::variants(pleach, &recording, &ablate::without(&all, &chosen.without)?);
    if !chosen.only.is_empty() {
        let labels: Vec<String> = variants.iter().map(Variant::label).collect();
        for name in &chosen.only {
            ensure!(
                labels.contains(name),
                "no variant is called '{name}' (there are {})",
                labels.join(", ")
            );
        }
        variants.retain(|variant| chosen.only.contains(&variant.label()));
    }
    let workloads = bench.select(&measurement.which.workloads)?;
    let rows = peers::peers(bench, &workloads, &variants, &measurement.options())?;
    let mut builds = Vec::new();
    if chosen.build_pairs > 0 {
        // BOLT compiles nothing.
        variants.retain(|variant| !matches!(variant, Variant::Bolt(_)));
        builds = peers::build_times(bench, &workloads, &variants, chosen.build_pairs).context("timing builds")?;
    }
    Ok(peers::sections(&rows, &builds))
}

/// Runs `pleach-bench ablate`.
pub fn ablate(bench: &Bench, pleach: &Pleach, chosen: &Ablate) -> Result<Vec<Section>> {
    let measurement = &chosen.measurement;
    let all = PleachUse {
        function_order: chosen.function_order,
        ..PleachUse::new(pleach.clone(), measurement.recording())
    };
    let optimisations = if chosen.optimisations.is_empty() {
        Optimisation::all()
    } else {
        chosen.optimisations.clone()
    };
    let workloads = bench.select(&measurement.which.workloads)?;
    let rows = ablate::ablate(bench, &workloads, &all, &optimisations, &measurement.options())?;
    Ok(ablate::sections(&rows))
}

/// Runs `pleach-bench decisions`.
pub fn decisions(bench: &Bench, pleach: &Pleach, chosen: &Decisions) -> Result<Vec<Section>> {
    let measurement = &chosen.measurement;
    let options = decisions::DecisionOptions {
        optimisations: chosen.optimisations.clone(),
        max: chosen.max,
        orders: chosen.orders,
        time_above: chosen.time_above / 100.0,
        measure: measurement.options(),
    };
    let all = PleachUse::new(pleach.clone(), measurement.recording());
    let workloads = bench.select(&measurement.which.workloads)?;
    Ok(decisions::sections(&decisions::decisions(
        bench, &workloads, &all, &options,
    )?))
}
