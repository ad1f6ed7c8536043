//! Yield and cost of recording: branches per CPU-second, accounted and measured overhead.

use anyhow::{Context, Result, ensure};
use pleach_harness::bench::Bench;
use pleach_harness::build::Binary;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::progress;
use pleach_harness::recorder::record_profile;
use pleach_harness::run::{Invocation, run};
use pleach_harness::stats::{Interval, bootstrap_median, geometric_mean, median};
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Options of measuring rates.
#[derive(Clone, Debug)]
pub struct RateOptions {
    /// Engines, as `pleach record` names them.
    pub engines: Vec<String>,
    /// Budgets, as `pleach record` takes them.
    pub budgets: Vec<String>,
    /// Pairs of a plain and a recorded run.
    pub pairs: usize,
    /// The input.
    pub on: InputKind,
    /// Other options of `pleach record`.
    pub with: Vec<String>,
}

/// The part of `pleach record --stats` that is used.
#[derive(Clone, Debug, Deserialize)]
struct Stats {
    program_cpu_seconds: f64,
    own_cpu_seconds: f64,
    bursts: u64,
    taken_branches: u64,
    instructions: u64,
    end_reasons: BTreeMap<String, u64>,
    lost: u64,
    declined: u64,
}

/// One workload with one engine and one budget.
#[derive(Clone, Debug)]
pub struct Rate {
    workload: String,
    engine: String,
    budget: String,
    /// CPU seconds of a plain run, median.
    plain: f64,
    bursts: f64,
    branches: f64,
    instructions: f64,
    /// Sampler's CPU time ÷ program's, as accounted; median.
    accounted: f64,
    /// CPU time of recorded runs ÷ plain ones.
    paired: Interval,
    /// Bursts by the reason for which they ended.
    ends: BTreeMap<String, u64>,
    missed: u64,
}

/// Records each workload.
pub fn rates(bench: &Bench, workloads: &[&Workload], pleach: &Pleach, options: &RateOptions) -> Result<Vec<Rate>> {
    let bar = progress::bar(
        workloads.len() * options.engines.len() * options.budgets.len(),
        "recording",
    );
    let mut rates = Vec::new();
    for workload in workloads {
        let binary = Variant::Annotated(pleach.clone()).produce(bench, workload)?;
        let invocation = bench.invocation(workload, options.on)?;
        for engine in &options.engines {
            for budget in &options.budgets {
                bar.set_message(format!("{} {engine} {budget}", workload.name));
                let runs = Runs::new(&binary, &invocation, pleach, engine, budget, options)?;
                rates.push(runs.rate(workload, engine, budget));
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    Ok(rates)
}

/// Pairs of runs.
struct Runs {
    plain: Vec<f64>,
    recorded: Vec<Stats>,
}

impl Runs {
    fn new(
        binary: &Binary,
        invocation: &Invocation,
        pleach: &Pleach,
        engine: &str,
        budget: &str,
        options: &RateOptions,
    ) -> Result<Self> {
        let pairs = options.pairs;
        ensure!(pairs > 0, "no pairs to run");
        let folder = tempfile::tempdir()?;
        let (stats, profile) = (folder.path().join("stats.json"), folder.path().join("rate.pleach"));
        let mut record_options = options.with.clone();
        // A period is in place of a budget.
        if !options.with.iter().any(|option| option.starts_with("--period")) {
            record_options.extend(["--overhead", budget].map(str::to_owned));
        }
        record_options.extend(["--quiet", "--engine", engine, "--stats"].map(str::to_owned));
        record_options.push(stats.display().to_string());
        let record = || -> Result<Stats> {
            record_profile(binary, invocation, pleach, &record_options, &profile)?;
            let text = std::fs::read_to_string(&stats).context("pleach record left no figures")?;
            Ok(serde_json::from_str(&text)?)
        };
        let plain = || -> Result<f64> { Ok(run(binary, invocation)?.expect_checksum(binary, invocation)?.usage.cpu) };
        // Unmeasured: the first runs read from the disk.
        plain()?;
        record()?;
        let mut runs = Self {
            plain: Vec::new(),
            recorded: Vec::new(),
        };
        for pair in 0..pairs {
            if pair % 2 == 0 {
                runs.plain.push(plain()?);
                runs.recorded.push(record()?);
            } else {
                runs.recorded.push(record()?);
                runs.plain.push(plain()?);
            }
        }
        Ok(runs)
    }

    fn rate(&self, workload: &Workload, engine: &str, budget: &str) -> Rate {
        let of = |value: &dyn Fn(&Stats) -> f64| median(&self.recorded.iter().map(value).collect::<Vec<_>>());
        let per_second = |value: &dyn Fn(&Stats) -> u64| of(&|s| value(s) as f64 / s.program_cpu_seconds);
        let pairs = self.plain.iter().zip(&self.recorded);
        let ratios: Vec<f64> = pairs
            .map(|(plain, s)| (s.program_cpu_seconds + s.own_cpu_seconds) / plain)
            .collect();
        let mut ends: BTreeMap<String, u64> = BTreeMap::new();
        for (reason, count) in self.recorded.iter().flat_map(|s| &s.end_reasons) {
            *ends.entry(reason.clone()).or_default() += count;
        }
        Rate {
            workload: workload.name.clone(),
            engine: engine.to_owned(),
            budget: budget.to_owned(),
            plain: median(&self.plain),
            bursts: per_second(&|s| s.bursts),
            branches: per_second(&|s| s.taken_branches),
            instructions: per_second(&|s| s.instructions),
            accounted: of(&|s| s.own_cpu_seconds / s.program_cpu_seconds),
            paired: bootstrap_median(&ratios),
            ends,
            missed: self.recorded.iter().map(|s| s.lost + s.declined).sum(),
        }
    }
}

/// Tables: every recording, and geometric means by engine and budget.
pub fn sections(rates: &[Rate]) -> Vec<Section> {
    let mut table = Table::new([
        ("workload", "workload"),
        ("engine", "engine"),
        ("budget", "budget"),
        ("plain", "plain s"),
        ("bursts", "bursts/s"),
        ("branches", "branches/s"),
        ("burst", "branches a burst"),
        ("instructions", "instr./s"),
        ("accounted", "accounted, %"),
        ("paired", "paired × [95 %]"),
        ("missed", "missed ticks"),
        ("ends", "ends"),
    ]);
    for rate in rates {
        table.push([
            rate.workload.as_str().into(),
            rate.engine.as_str().into(),
            rate.budget.as_str().into(),
            Cell::Number(rate.plain, 2),
            Cell::Number(rate.bursts, 1),
            Cell::Number(rate.branches, 0),
            Cell::Number(rate.branches / rate.bursts, 0),
            Cell::Number(rate.instructions, 0),
            Cell::Number(rate.accounted * 100.0, 3),
            Cell::Ratio(rate.paired),
            rate.missed.into(),
            ends(&rate.ends).into(),
        ]);
    }
    let mut groups: BTreeMap<(&str, &str), Vec<&Rate>> = BTreeMap::new();
    for rate in rates {
        groups.entry((&rate.engine, &rate.budget)).or_default().push(rate);
    }
    let mut means = Table::new([
        ("engine", "engine"),
        ("budget", "budget"),
        ("branches", "branches/s"),
        ("least", "least"),
        ("accounted", "accounted, %, most"),
        ("paired", "paired ×"),
    ]);
    for ((engine, budget), group) in groups {
        let of = |value: fn(&Rate) -> f64| group.iter().map(|rate| value(rate)).collect::<Vec<_>>();
        means.push([
            engine.into(),
            budget.into(),
            Cell::Number(geometric_mean(of(|r| r.branches)), 0),
            Cell::Number(of(|r| r.branches).into_iter().fold(f64::INFINITY, f64::min), 0),
            Cell::Number(of(|r| r.accounted * 100.0).into_iter().fold(0.0, f64::max), 3),
            Cell::Number(geometric_mean(of(|r| r.paired.value)), 3),
        ]);
    }
    vec![
        Section::new("rates", "", table),
        Section::new("means", "Geometric means", means),
    ]
}

/// `budget 93 %, system-call 5 %`
fn ends(ends: &BTreeMap<String, u64>) -> String {
    let total: u64 = ends.values().sum();
    let mut ends: Vec<_> = ends.iter().collect();
    ends.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let share = |count: &u64| *count as f64 / total as f64 * 100.0;
    let shown = ends
        .iter()
        .map(|(reason, count)| format!("{reason} {:.1} %", share(count)));
    shown.collect::<Vec<_>>().join(", ")
}
