//! `pleach-bench suites`: its options.

use anyhow::Result;
use clap::Args;
use pleach_check::suites::{self, Checked, SuiteOptions};
use pleach_harness::cli::Which;
use pleach_harness::{Bench, parallel};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Suites {
    #[command(flatten)]
    which: Which,
    /// Only suites of this name; may be repeated
    #[arg(long = "suite", value_name = "NAME")]
    only: Vec<String>,
    /// Random profiles, each a build
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// The first seed; the others follow
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    first_seed: u32,
    /// Level of optimisation, as O2; may be repeated
    #[arg(long = "level", default_values_t = ["O2".to_owned()])]
    levels: Vec<String>,
    /// Where profiles are used, early or late; may be repeated
    #[arg(long = "anchor", default_values_t = ["early".to_owned()])]
    anchors: Vec<String>,
    /// Another option for the plugin, as `-pleach-superblock-min-gain=0`; may be repeated
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Where to keep what is wrong, each in a folder of its own
    #[arg(long, value_name = "DIR", default_value = "target/pleach-suites")]
    keep: PathBuf,
    /// Compilations, and runs, at a time
    #[arg(long, default_value_t = parallel::default_jobs())]
    jobs: usize,
}

/// Runs them with the plugin beside the `pleach` command.
pub fn check(bench: &Bench, pleach: &Path, chosen: &Suites) -> Result<Vec<Checked>> {
    let first = u64::from(chosen.first_seed);
    let options = SuiteOptions {
        only: chosen.only.clone(),
        seeds: (first..first + u64::from(chosen.seeds)).collect(),
        levels: chosen.levels.iter().map(|level| format!("-{level}")).collect(),
        anchors: chosen.anchors.clone(),
        plugin: pleach.with_file_name("libpleach_pass.so"),
        also: chosen.options.clone(),
        keep: std::path::absolute(&chosen.keep)?,
        jobs: chosen.jobs,
    };
    suites::check(bench, &bench.select(&chosen.which.workloads)?, &options)
}
