//! Coverage by sampling against exact coverage (Shye 2005, thesis §5): recall in the thesis's four modes and by
//! execution threshold, false positives, the gain of several runs together, and what breakpoints prove beside.

use anyhow::Result;
use pleach_analysis::coverage;
use pleach_analysis::coverage::Coverage;
use pleach_analysis::coverage::measure::{Executed, FalsePositive, Proofs, Recall, Totals};
use pleach_analysis::coverage::seeds::View;
use pleach_analysis::program::Program;
use pleach_annotate::find::Finder;
use pleach_ball_larus::Mode;
use pleach_harness::bench::Bench;
use pleach_harness::exact_counts::count_recorded;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::progress;
use pleach_harness::recorder::record_vectors;
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};
use pleach_profile::Covered;
use std::collections::{BTreeMap, BTreeSet};

/// Options of measuring coverage.
#[derive(Clone, Debug)]
pub struct CoverageOptions {
    /// Budget or period, as `pleach record` takes it.
    pub rate: String,
    /// Recordings.
    pub runs: usize,
    /// Runs of a recording.
    pub repeat: u32,
    /// Runs that are counted: a block is executed if it is in any of them.
    pub exact_runs: usize,
    /// The input.
    pub on: InputKind,
    /// Taken branches of the thesis's vectors.
    pub branches: usize,
}

/// Shares of the most executed instructions.
const SHARES: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// The same for tables.
const SHARE_COLUMNS: [(&str, &str); 10] = [
    ("10", "10%"),
    ("20", "20%"),
    ("30", "30%"),
    ("40", "40%"),
    ("50", "50%"),
    ("60", "60%"),
    ("70", "70%"),
    ("80", "80%"),
    ("90", "90%"),
    ("100", "100%"),
];

/// The thesis's modes, and the same with whole bursts: how much of a burst is used, whether dominance adds to it.
fn modes(branches: usize) -> [(View, bool); 6] {
    let (one, short, all) = (View::SingleBlock, View::Vectors(branches), View::ALL);
    [
        (one, false),
        (one, true),
        (short, false),
        (short, true),
        (all, false),
        (all, true),
    ]
}

/// Columns for them.
fn mode_columns(branches: usize) -> [(&'static str, String); 6] {
    [
        ("single", "single block".to_owned()),
        ("single_dominance", "+ dominance".to_owned()),
        ("vectors", format!("{branches} branches")),
        ("vectors_dominance", "+ dominance".to_owned()),
        ("bursts", "bursts".to_owned()),
        ("bursts_dominance", "+ dominance".to_owned()),
    ]
}

/// One workload.
#[derive(Clone, Debug)]
pub struct Figures {
    workload: String,
    totals: Totals,
    seconds: f64,
    bursts: u64,
    proved_bursts: u64,
    /// By mode, then by run.
    modes: [Vec<Recall>; 6],
    /// The proved coverage of whole recordings, by run.
    proved: Vec<Recall>,
    /// Everything used, all runs together.
    union: Recall,
    proved_union: Recall,
    /// By share of the hottest instructions, in the first run.
    hottest: Vec<Recall>,
    divergence: Vec<f64>,
    /// What bursts and breakpoints prove together, by run.
    proofs: Vec<Proofs>,
    /// Blocks that a recording says were not executed, but were: functions and positions.
    refuted: BTreeSet<(String, usize)>,
    covered_blocks: u64,
    false_positives: Vec<(FalsePositive, String)>,
}

/// Records and counts each workload.
pub fn coverage(
    bench: &Bench,
    workloads: &[&Workload],
    pleach: &Pleach,
    options: &CoverageOptions,
) -> Result<Vec<Figures>> {
    let bar = progress::bar(workloads.len(), "coverage");
    let mut found = Vec::new();
    for workload in workloads {
        bar.set_message(workload.name.clone());
        found.push(of_workload(bench, workload, pleach, options)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(found)
}

fn of_workload(bench: &Bench, workload: &Workload, pleach: &Pleach, options: &CoverageOptions) -> Result<Figures> {
    let annotated = Variant::Annotated(pleach.clone()).produce(bench, workload)?;
    let counting = Variant::Counted(pleach.clone(), Mode::Paths).produce(bench, workload)?;
    let mut executed = Executed::default();
    let mut names = BTreeMap::new();
    for _ in 0..options.exact_runs {
        let counted = count_recorded(bench, &counting, options.on, pleach)?;
        executed.add(&counted.exact);
        let functions = counted.exact.functions.into_iter();
        names.extend(functions.map(|f| ((f.cfg.id, f.cfg.hash()), f.cfg.name)));
    }
    let invocation = bench.invocation(workload, options.on)?;
    let mut figures = Figures {
        workload: workload.name.clone(),
        totals: executed.totals(),
        seconds: 0.0,
        bursts: 0,
        proved_bursts: 0,
        modes: Default::default(),
        proved: Vec::new(),
        union: Recall::default(),
        proved_union: Recall::default(),
        hottest: Vec::new(),
        divergence: Vec::new(),
        proofs: Vec::new(),
        refuted: BTreeSet::new(),
        covered_blocks: 0,
        false_positives: Vec::new(),
    };
    let mut union = Coverage::default();
    for run in 0..options.runs {
        let vectors = record_vectors(&annotated, &invocation, pleach, &options.rate, options.repeat)?;
        let program = Program::read(&vectors.modules, &Finder::default());
        figures.seconds += vectors.processes.iter().map(|p| p.program_cpu_seconds).sum::<f64>();
        figures.bursts += vectors.bursts.len() as u64;
        figures.proved_bursts += vectors.bursts.iter().filter(|burst| burst.proved).count() as u64;
        for ((view, implied), recalls) in modes(options.branches).into_iter().zip(&mut figures.modes) {
            let coverage = coverage::from_vectors(&program, &vectors, view, implied);
            recalls.push(executed.recall(&coverage, Covered::PredictedByDominance));
        }
        let coverage = coverage::from_vectors(&program, &vectors, View::ALL, true);
        figures.proved.push(executed.recall(&coverage, Covered::ByDominance));
        figures.divergence.push(executed.divergence(&coverage));
        if run == 0 {
            figures.hottest = executed.recall_of_hottest(&coverage, &SHARES);
        }
        union.add(&coverage);
        let complete = coverage::with_breakpoints(&program, &vectors);
        let with_code = coverage::blocks_with_code(&program);
        let proofs = executed.proofs(&complete, &with_code);
        let refuted = proofs.refuted.iter();
        let named = refuted.map(|(key, block)| (names.get(key).cloned().unwrap_or_default(), *block));
        figures.refuted.extend(named);
        figures.proofs.push(proofs);
    }
    figures.union = executed.recall(&union, Covered::PredictedByDominance);
    figures.proved_union = executed.recall(&union, Covered::ByDominance);
    let blocks = union.functions.values().flat_map(|function| &function.blocks);
    figures.covered_blocks = blocks.filter(|covered| **covered > Covered::Unknown).count() as u64;
    let named = |wrong: FalsePositive| {
        let name = names.get(&wrong.function).cloned().unwrap_or_default();
        (wrong, name)
    };
    figures.false_positives = executed.false_positives(&union).into_iter().map(named).collect();
    Ok(figures)
}

/// Median and range.
fn spread(values: impl Iterator<Item = f64>, decimals: usize) -> Cell {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values[..] {
        [] => Cell::Missing,
        [one] => Cell::Number(one, decimals),
        [low, .., high] => {
            let middle = values[values.len() / 2];
            Cell::Text(format!("{middle:.decimals$} ({low:.decimals$}–{high:.decimals$})"))
        }
    }
}

/// Tables: recall by mode, by threshold, and what is wrong.
pub fn sections(found: &[Figures], options: &CoverageOptions) -> Vec<Section> {
    let mut programs = Table::new([
        ("workload", "workload"),
        ("instructions", "IR instr."),
        ("executed", "executed"),
        ("seconds", "CPU-s"),
        ("bursts", "bursts"),
        ("proved", "proved"),
        ("recall", "recall"),
        ("proved_recall", "proved recall"),
        ("union", "all runs"),
        ("proved_union", "proved, all runs"),
        ("kl", "KL, bits"),
        ("blocks", "covered blocks"),
        ("wrong", "of them wrong"),
        ("proved_wrong", "proved but wrong"),
    ]);
    let percents = |recalls: &[Recall]| spread(recalls.iter().map(|recall| recall.share() * 100.0), 1);
    let wrong = |figures: &Figures, proved| {
        let wrong = figures.false_positives.iter();
        wrong.filter(|(wrong, _)| wrong.is_proved() == proved).count() as u64
    };
    for figures in found {
        programs.push([
            figures.workload.as_str().into(),
            figures.totals.instructions.into(),
            figures.totals.executed.into(),
            Cell::Number(figures.seconds / options.runs as f64, 2),
            (figures.bursts / options.runs as u64).into(),
            (figures.proved_bursts / options.runs as u64).into(),
            percents(&figures.modes[5]),
            percents(&figures.proved),
            percents(&[figures.union]),
            percents(&[figures.proved_union]),
            spread(figures.divergence.iter().copied(), 2),
            figures.covered_blocks.into(),
            (wrong(figures, true) + wrong(figures, false)).into(),
            wrong(figures, true).into(),
        ]);
    }
    let mut breakpoints = Table::new([
        ("workload", "workload"),
        ("recall", "recall"),
        ("recall_with_code", "recall of code"),
        ("not_executed", "called not executed"),
        ("refuted", "of them executed"),
    ]);
    for figures in found {
        let recalls = |of: fn(&Proofs) -> Recall| percents(&figures.proofs.iter().map(of).collect::<Vec<_>>());
        breakpoints.push([
            figures.workload.as_str().into(),
            recalls(|proofs| proofs.executed),
            recalls(|proofs| proofs.with_code),
            spread(figures.proofs.iter().map(|proofs| proofs.not_executed as f64), 0),
            spread(figures.proofs.iter().map(|proofs| proofs.refuted.len() as f64), 0),
        ]);
    }
    let workload = ("workload", "workload".to_owned());
    let mut by_mode = Table::new(std::iter::once(workload).chain(mode_columns(options.branches)));
    let mut hottest = Table::new(std::iter::once(("workload", "workload")).chain(SHARE_COLUMNS));
    let mut wrong = Table::new([
        ("workload", "workload"),
        ("function", "function"),
        ("block", "block"),
        ("covered", "covered"),
    ]);
    for figures in found {
        let first = || std::iter::once(Cell::from(figures.workload.as_str()));
        by_mode.push(first().chain(figures.modes.iter().map(|recalls| percents(recalls))));
        hottest.push(first().chain(figures.hottest.iter().map(|recall| percents(&[*recall]))));
        for (found, name) in &figures.false_positives {
            wrong.push([
                figures.workload.as_str().into(),
                name.as_str().into(),
                (found.block as u64).into(),
                Cell::Text(format!("{:?}", found.covered)),
            ]);
        }
        for (name, block) in &figures.refuted {
            wrong.push([
                figures.workload.as_str().into(),
                name.as_str().into(),
                (*block as u64).into(),
                Cell::Text(format!("{:?}", Covered::NotExecuted)),
            ]);
        }
    }
    vec![
        Section::new("programs", "Coverage of executed instructions, %", programs),
        Section::new(
            "breakpoints",
            "Proved by bursts and breakpoints, %, and blocks called not executed",
            breakpoints,
        ),
        Section::new("modes", "By mode, %", by_mode),
        Section::new("hottest", "Of the most executed instructions, first run, %", hottest),
        Section::new("wrong", "Contradicted by exact counts", wrong),
    ]
}
