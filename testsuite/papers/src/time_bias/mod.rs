//! Time bias: the distance of sampled distributions of branches and instructions from exact ones, by correction.
//!
//! Ticks are uniform in time, so slow code is sampled more often than fast code that runs as often. Exact counts of the
//! same binary on the same input come from callgrind, for the program's own file: libraries choose other code under it.

mod distribution;
mod exact;

use anyhow::Result;
use distribution::{Distribution, Estimate, difference};
use exact::{Exact, exact};
use pleach_analysis::program::Program;
use pleach_analysis::time_bias::{Model, Weights};
use pleach_annotate::find::Finder;
use pleach_collector::vector::VectorSet;
use pleach_harness::bench::Bench;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::progress;
use pleach_harness::recorder::record_vectors;
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};

/// Options of the experiment.
#[derive(Clone, Debug)]
pub struct TimeBiasOptions {
    /// Budgets, as `pleach record` takes them.
    pub budgets: Vec<String>,
    /// Runs that go into one recording.
    pub repeat: u32,
    /// The input.
    pub on: InputKind,
    /// Functions to list for each recording.
    pub functions: usize,
}

/// The weights of branches.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Estimator {
    /// Each once, the interrupted fall-through range too.
    Everything,
    /// Each once, without the interrupted fall-through range.
    Equal,
    /// Bursts by branches per instruction, as if all instructions took the same time.
    Instructions,
    /// By the stationary distribution over states of this many branches.
    Stationary(usize),
}

impl Estimator {
    const ALL: [Self; 5] = [
        Self::Everything,
        Self::Equal,
        Self::Instructions,
        Self::Stationary(1),
        Self::Stationary(2),
    ];

    fn name(self) -> String {
        match self {
            Self::Everything => "as sampled".to_owned(),
            Self::Equal => "without first fall-through range".to_owned(),
            Self::Instructions => "by instructions".to_owned(),
            Self::Stationary(order) => format!("stationary, m = {order}"),
        }
    }

    fn estimate(self, map: &Program, vectors: &VectorSet) -> Result<Estimate> {
        let weights = match self {
            Self::Stationary(order) => {
                let model = Model {
                    order,
                    ..Model::default()
                };
                Weights::from_vectors(vectors, &model)
            }
            _ => Weights::equal(),
        };
        let weight = |burst: usize, branch: usize| match (self, vectors.bursts.get(burst)) {
            (Self::Instructions, Some(b)) => b.branches.len() as f64 / f64::from(b.instructions.max(1)),
            _ => weights.get(burst, branch),
        };
        Estimate::from_vectors(map, vectors, self == Self::Everything, &weight)
    }
}

/// One recording with one estimator.
#[derive(Clone, Debug)]
pub struct TimeBias {
    workload: String,
    budget: String,
    bursts: u64,
    estimator: Estimator,
    instructions: Distribution,
    branches: Distribution,
    /// Share of instructions by function: estimated and exact, the largest differences first.
    functions: Vec<(String, f64, f64)>,
}

/// Records each workload, and counts it exactly.
pub fn time_bias(
    bench: &Bench,
    workloads: &[&Workload],
    pleach: &Pleach,
    options: &TimeBiasOptions,
) -> Result<Vec<TimeBias>> {
    let bar = progress::bar(workloads.len() * (options.budgets.len() + 1), "time bias");
    let mut found = Vec::new();
    for workload in workloads {
        bar.set_message(workload.name.clone());
        let binary = Variant::Annotated(pleach.clone()).produce(bench, workload)?;
        let invocation = bench.invocation(workload, options.on)?;
        let counted = exact(&binary, &invocation)?;
        bar.inc(1);
        for budget in &options.budgets {
            let vectors = record_vectors(&binary, &invocation, pleach, budget, options.repeat)?;
            found.extend(compare(workload, budget, &vectors, &counted)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(found)
}

fn compare(workload: &Workload, budget: &str, vectors: &VectorSet, counted: &Exact) -> Result<Vec<TimeBias>> {
    let program = Program::read(&vectors.modules, &Finder::default());
    Estimator::ALL
        .into_iter()
        .map(|estimator| {
            let estimate = estimator.estimate(&program, vectors)?;
            Ok(TimeBias {
                workload: workload.name.clone(),
                budget: budget.to_owned(),
                bursts: vectors.bursts.iter().map(|burst| burst.count).sum(),
                estimator,
                instructions: difference(&estimate.instructions, &counted.instructions),
                branches: difference(&estimate.branches, &counted.branches),
                functions: estimate.functions(&program, &counted.instructions),
            })
        })
        .collect()
}

/// Tables: overlaps and divergences, and the functions that are furthest off.
pub fn sections(found: &[TimeBias], options: &TimeBiasOptions) -> Vec<Section> {
    let mut table = Table::new([
        ("workload", "workload"),
        ("budget", "budget"),
        ("bursts", "bursts"),
        ("estimator", "counted"),
        ("instructions_overlap", "instr. overlap"),
        ("instructions_kl", "KL"),
        ("branches_overlap", "branch overlap"),
        ("branches_kl", "KL"),
    ]);
    let mut functions = Table::new([
        ("workload", "workload"),
        ("budget", "budget"),
        ("function", "function"),
        ("estimated", "estimated, %"),
        ("exact", "exact, %"),
        ("ratio", "ratio"),
    ]);
    for row in found {
        table.push([
            row.workload.as_str().into(),
            row.budget.as_str().into(),
            row.bursts.into(),
            row.estimator.name().into(),
            Cell::Number(row.instructions.overlap, 4),
            Cell::Number(row.instructions.divergence, 4),
            Cell::Number(row.branches.overlap, 4),
            Cell::Number(row.branches.divergence, 4),
        ]);
        if row.estimator != Estimator::Stationary(1) {
            continue;
        }
        for (name, estimated, exact) in row.functions.iter().take(options.functions) {
            functions.push([
                row.workload.as_str().into(),
                row.budget.as_str().into(),
                name.as_str().into(),
                Cell::Number(estimated * 100.0, 2),
                Cell::Number(exact * 100.0, 2),
                Cell::Number(estimated / exact, 2),
            ]);
        }
    }
    vec![
        Section::new("distributions", "Sampled against exact distributions", table),
        Section::new("functions", "Functions furthest off (stationary, m = 1)", functions),
    ]
}
