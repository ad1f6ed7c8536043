//! Accuracy of sampled paths against exact counts on real programs, by level, budget, vector length and crediting.
//!
//! Each combination of a build level and a budget is recorded anew; vector lengths and creditings share
//! recordings. Nothing else runs while a program is recorded.

use anyhow::{Context, Result};
use pleach_analysis::accuracy::Spread;
use pleach_analysis::credit::Crediting;
use pleach_analysis::evaluate::estimate::{Estimator, TimeBias};
use pleach_analysis::evaluate::{Evaluation, Job, evaluate};
use pleach_collector::record::RecordOptions;
use pleach_collector::vector::Engine;
use pleach_harness::bench::Bench;
use pleach_harness::build::Binary;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::progress;
use pleach_harness::stats::{Interval, student_mean};
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of an evaluation. Every combination of levels, budgets, lengths and creditings is a row for each program.
#[derive(Clone, Debug)]
pub struct AccuracyOptions {
    /// How the profiled builds are optimised.
    pub levels: Vec<Level>,
    /// CPU time that sampling may take, as fractions.
    pub budgets: Vec<f64>,
    /// Branches that a vector is cut to; whole bursts if `None`.
    pub lengths: Vec<Option<usize>>,
    /// How partial paths are credited.
    pub creditings: Vec<Crediting>,
    /// Whether the time bias is corrected. If it is in any, branches are timed, which takes bursts.
    pub time_biases: Vec<TimeBias>,
    /// Recordings for each budget.
    pub runs: u32,
    /// CPU-seconds of the program in each recording.
    pub cpu_seconds: f64,
    /// The input.
    pub on: InputKind,
    /// What produces the vectors.
    pub engine: Engine,
}

/// How a profiled build is optimised.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// `-O1`.
    O1,
    /// `-O2`.
    O2,
    /// `-O3`.
    O3,
    /// `-O2`, guided by exact counts of the training input.
    IrPgo,
}

impl Level {
    /// The name in tables and folders.
    pub fn name(self) -> &'static str {
        match self {
            Self::O1 => "O1",
            Self::O2 => "O2",
            Self::O3 => "O3",
            Self::IrPgo => "ir-pgo",
        }
    }

    /// Flags beside those that all variants share.
    fn flags(self, bench: &Bench, workload: &Workload) -> Result<Vec<String>> {
        Ok(match self {
            Self::O1 => vec!["-O1".to_owned()],
            Self::O2 => Vec::new(),
            Self::O3 => vec!["-O3".to_owned()],
            Self::IrPgo => Variant::ir_pgo_flags(bench, workload)?,
        })
    }

    fn build(self, bench: &Bench, workload: &Workload, pleach: &Pleach, what: &str) -> Result<Binary> {
        let mut cflags = self.flags(bench, workload)?;
        cflags.extend(pleach.flags(&[what])?);
        let variant = Variant::Flags {
            label: format!("{what}-{}", self.name()),
            cflags,
            ldflags: Vec::new(),
        };
        variant.produce(bench, workload)
    }
}

/// One program with one combination of options.
#[derive(Clone, Debug)]
pub struct Accuracy {
    workload: String,
    level: Level,
    budget: f64,
    evaluation: Evaluation,
}

/// Evaluates each workload. `pleach` says at which anchor; `sampler` is the library that is preloaded.
pub fn accuracy(
    bench: &Bench,
    workloads: &[&Workload],
    pleach: &Pleach,
    sampler: PathBuf,
    options: &AccuracyOptions,
) -> Result<Vec<Accuracy>> {
    let bar = progress::bar(
        workloads.len() * options.levels.len() * options.budgets.len(),
        "accuracy",
    );
    let estimators: Vec<Estimator> = options
        .creditings
        .iter()
        .flat_map(|&crediting| {
            options.lengths.iter().flat_map(move |&vector_length| {
                options.time_biases.iter().map(move |&time_bias| Estimator {
                    crediting,
                    vector_length,
                    time_bias,
                })
            })
        })
        .collect();
    let times_bursts = options.time_biases.iter().any(|bias| *bias != TimeBias::Uncorrected);
    let mut found = Vec::new();
    for workload in workloads {
        let invocation = bench.invocation(workload, options.on)?;
        for &level in &options.levels {
            bar.set_message(format!("{} {}", workload.name, level.name()));
            let job = Job {
                annotated: level.build(bench, workload, pleach, "annotate")?.path,
                exact: level.build(bench, workload, pleach, "instrument")?.path,
                args: invocation.args.iter().map(Into::into).collect(),
                input: None,
            };
            for &budget in &options.budgets {
                let record = RecordOptions {
                    engine: options.engine,
                    overhead: budget,
                    times_bursts,
                    ..RecordOptions::new(sampler.clone())
                };
                let how = pleach_analysis::evaluate::EvaluateOptions {
                    runs: options.runs,
                    cpu_seconds: options.cpu_seconds,
                    ..pleach_analysis::evaluate::EvaluateOptions::new(record)
                };
                let evaluations = evaluate(&job, &how, &estimators, &mut |_| ())
                    .with_context(|| format!("{} at {}", workload.name, level.name()))?;
                for warning in evaluations.iter().take(1).flat_map(|e| &e.warnings) {
                    bar.suspend(|| eprintln!("{} {}: {warning}", workload.name, level.name()));
                }
                found.extend(evaluations.into_iter().map(|evaluation| Accuracy {
                    workload: workload.name.clone(),
                    level,
                    budget,
                    evaluation,
                }));
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    Ok(found)
}

/// The figures that have a column: key, heading, factor, decimals.
const COLUMNS: [(&str, &str, f64, usize); 14] = [
    ("wall_accuracy", "Wall", 1.0, 4),
    ("wall_accuracy_regions", "Wall, regions", 1.0, 4),
    ("overlap", "overlap", 1.0, 4),
    ("overlap_ceiling", "ceiling", 1.0, 4),
    ("calibration", "calibration", 1.0, 3),
    ("hot_paths", "hot paths", 1.0, 0),
    ("hot_flow", "their flow", 1.0, 3),
    ("overhead", "overhead, %", 100.0, 3),
    ("program_cpu_seconds", "CPU-s", 1.0, 1),
    ("bursts", "bursts", 1.0, 0),
    ("taken_branches_per_cpu_second", "branches/s", 1.0, 0),
    ("coverage_recall", "cov. recall", 1.0, 4),
    ("coverage_false_positives", "cov. false, %", 100.0, 3),
    ("decode_yield", "yield", 1.0, 4),
];

/// The key of a row beside the program.
type Setting = (Level, u64, &'static str, Option<usize>, TimeBias);

impl Accuracy {
    fn setting(&self) -> Setting {
        let Estimator {
            crediting,
            vector_length,
            time_bias,
        } = self.evaluation.estimator;
        // Budgets are positive: their order is that of their bits.
        (
            self.level,
            self.budget.to_bits(),
            crediting_name(crediting),
            vector_length,
            time_bias,
        )
    }

    fn spread(&self, key: &str) -> Option<Spread> {
        self.evaluation.figures.get(key).copied()
    }
}

/// The name in tables and on the command line.
pub fn crediting_name(crediting: Crediting) -> &'static str {
    match crediting {
        Crediting::Em => "em",
        Crediting::Equal => "equal",
        Crediting::Independent => "edge-independent",
    }
}

/// The name in tables and on the command line.
pub fn time_bias_name(bias: TimeBias) -> &'static str {
    match bias {
        TimeBias::Uncorrected => "uncorrected",
        TimeBias::Corrected => "corrected",
    }
}

fn setting_cells(&(level, budget, crediting, length, bias): &Setting) -> [Cell; 5] {
    let budget = f64::from_bits(budget) * 100.0;
    [
        level.name().into(),
        Cell::Number(budget, if budget < 1.0 { 2 } else { 0 }),
        crediting.into(),
        length.map_or_else(|| "whole".into(), |length| (length as u64).into()),
        time_bias_name(bias).into(),
    ]
}

const SETTING: [(&str, &str); 5] = [
    ("level", "build"),
    ("budget", "budget, %"),
    ("crediting", "crediting"),
    ("vector_length", "vectors"),
    ("time_bias", "time bias"),
];

/// Tables: each program's medians with least and largest values, and means over the programs of those medians.
pub fn sections(found: &[Accuracy]) -> Vec<Section> {
    let columns = || COLUMNS.iter().map(|&(key, heading, ..)| (key, heading));
    let mut table = Table::new(
        [("workload", "workload")]
            .into_iter()
            .chain(SETTING)
            .chain([("n", "n")])
            .chain(columns()),
    );
    let mut settings: BTreeMap<Setting, Vec<&Accuracy>> = BTreeMap::new();
    for row in found {
        settings.entry(row.setting()).or_default().push(row);
        let mut cells = vec![Cell::from(row.workload.as_str())];
        cells.extend(setting_cells(&row.setting()));
        cells.push(row.spread("overlap").map(|spread| spread.n as u64).into());
        cells.extend(COLUMNS.iter().map(|&(key, _, factor, decimals)| {
            let Some(spread) = row.spread(key) else {
                return Cell::Missing;
            };
            if spread.min == spread.max {
                return Cell::Number(spread.median * factor, decimals);
            }
            Cell::Ratio(Interval {
                value: spread.median * factor,
                low: spread.min * factor,
                high: spread.max * factor,
            })
        }));
        table.push(cells);
    }
    let mut means = Table::new(SETTING.into_iter().chain([("workloads", "workloads")]).chain(columns()));
    for (setting, rows) in &settings {
        let mut cells = setting_cells(setting).to_vec();
        cells.push((rows.len() as u64).into());
        cells.extend(COLUMNS.iter().map(|&(key, _, factor, decimals)| {
            let medians: Vec<f64> = rows.iter().filter_map(|row| Some(row.spread(key)?.median)).collect();
            match medians.len() {
                0 => Cell::Missing,
                1 => Cell::Number(medians[0] * factor, decimals),
                _ => {
                    let Interval { value, low, high } = student_mean(&medians);
                    let [value, low, high] = [value, low, high].map(|bound| bound * factor);
                    Cell::Ratio(Interval { value, low, high })
                }
            }
        }));
        means.push(cells);
    }
    vec![
        Section::new("programs", "Medians [least, largest] of n recordings", table),
        Section::new(
            "means",
            "Means of the medians over the programs [95 % intervals for other programs of their kind]",
            means,
        ),
    ]
}
