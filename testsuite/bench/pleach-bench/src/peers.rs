//! pleach and its peers against plain `-O2`, for every program: counts that do not depend on the machine's load, paired
//! CPU times, and build times.

use crate::compare::{self, ComparisonOptions, Row};
use crate::matrix;
use anyhow::Result;
use pleach_harness::bench::Bench;
use pleach_harness::paired::Comparison;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::progress;
use pleach_harness::table::{Cell, Section};
use pleach_harness::variant::{Bolt, BoltData, PleachUse, Recording, SamplePgo, SampleProfile, Variant};
use pleach_harness::workload::Workload;

/// All peers, and pleach with optimisations left out one at a time. All sampling peers record alike.
pub fn variants(pleach: &Pleach, recording: &Recording, ablations: &[Variant]) -> Vec<Variant> {
    let sampled = |profile| {
        Variant::SamplePgo(SamplePgo {
            profile,
            pleach: pleach.clone(),
            recording: recording.clone(),
        })
    };
    let bolt = |base: Variant, data: BoltData| {
        Variant::Bolt(Bolt {
            base: Box::new(base),
            data,
        })
    };
    let mut all = vec![
        Variant::IrPgo,
        Variant::CsIrPgo,
        sampled(SampleProfile::Lines),
        sampled(SampleProfile::Probes),
        bolt(Variant::O2, BoltData::Vectors(pleach.clone(), recording.clone())),
        bolt(Variant::O2, BoltData::Instrumented),
        bolt(Variant::IrPgo, BoltData::Instrumented),
        Variant::Annotated(pleach.clone()),
        Variant::PleachUse(PleachUse::new(pleach.clone(), recording.clone())),
    ];
    all.extend_from_slice(ablations);
    all
}

/// CPU time of building a program, against plain `-O2`.
#[derive(Clone, Debug)]
pub struct BuildTime {
    workload: String,
    label: String,
    cpu: Comparison,
}

/// Builds programs anew in interleaved pairs, one process at a time, with training done before.
///
/// # Errors
/// As [`Variant::config`], and where a build fails.
pub fn build_times(
    bench: &Bench,
    workloads: &[&Workload],
    variants: &[Variant],
    pairs: usize,
) -> Result<Vec<BuildTime>> {
    let alone = bench.with_jobs(1);
    let bar = progress::bar(workloads.len() * variants.len() * pairs, "building");
    let mut times = Vec::new();
    for workload in workloads {
        for variant in variants {
            let configs = [Variant::O2.config(&alone, workload)?, variant.config(&alone, workload)?];
            let build = |index: usize| -> Result<f64> {
                let folder = tempfile::tempdir()?;
                let mut config = configs[index].clone();
                config.out_dir = folder.path().to_owned();
                Ok(alone.build(workload, &config)?.report.cpu())
            };
            let mut seconds = Vec::with_capacity(pairs);
            for pair in 0..pairs {
                bar.set_message(format!("{} {}", workload.name, variant.label()));
                seconds.push(if pair % 2 == 0 {
                    let first = build(0)?;
                    (first, build(1)?)
                } else {
                    let second = build(1)?;
                    (build(0)?, second)
                });
                bar.inc(1);
            }
            times.push(BuildTime {
                workload: workload.name.clone(),
                label: variant.label(),
                cpu: Comparison::from_pairs(&seconds),
            });
        }
    }
    bar.finish_and_clear();
    Ok(times)
}

/// Measures all variants against plain `-O2`.
///
/// # Errors
/// As [`compare::compare`].
pub fn peers(
    bench: &Bench,
    workloads: &[&Workload],
    variants: &[Variant],
    options: &ComparisonOptions,
) -> Result<Vec<Row>> {
    compare::compare(bench, workloads, &Variant::O2, variants, options)
}

/// The base's absolute numbers, a table for each measure, and build times.
pub fn sections(rows: &[Row], builds: &[BuildTime]) -> Vec<Section> {
    let mut sections = vec![matrix::base(rows)];
    sections.extend(matrix::sections(rows, |row| row.variant.binary.label.clone()));
    let cells: Vec<_> = builds
        .iter()
        .map(|time| {
            let ratio = time.cpu.ratio;
            (
                time.workload.clone(),
                time.label.clone(),
                ratio.value,
                Cell::Ratio(ratio),
            )
        })
        .collect();
    if !cells.is_empty() {
        let heading = "CPU time of compiling and linking, without training, median of pairs [95 %]";
        sections.push(Section::new("build_cpu", heading, matrix::table(&cells)));
    }
    sections
}
