//! Command-line options that `pleach-bench` and `pleach-papers` share.

use crate::bench::{Bench, workloads_dir};
use crate::pleach_command::Pleach;
use crate::table::{Section, sections_to_json};
use crate::workload::{InputKind, Workload};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Where workloads and builds are, and how results are printed.
#[derive(Args, Debug)]
pub struct Common {
    /// Where builds and inputs are kept [default: pleach-bench in cargo's target directory]
    #[arg(long, global = true, env = "PLEACH_BENCH_DIR")]
    pub work_dir: Option<PathBuf>,
    /// The folder with the workloads, such as programs of your own [default: those that come with pleach]
    #[arg(long, global = true, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// A folder with other versions of the workloads, by the same names: profiles are of these
    #[arg(long, global = true, value_name = "DIR")]
    pub trained_on: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    pub json: bool,
}

impl Common {
    /// The folder with the workloads' recipes.
    pub fn workloads_dir(&self) -> PathBuf {
        self.from.clone().unwrap_or_else(workloads_dir)
    }

    /// Reads the recipes and fetches the sources.
    ///
    /// # Errors
    /// A recipe is wrong, or sources cannot be downloaded.
    pub fn open(&self) -> Result<Bench> {
        let open = |folder: &Path| Bench::open_dir(folder, self.work_dir.as_deref());
        let bench = open(&self.workloads_dir())?;
        match &self.trained_on {
            Some(folder) => Ok(bench.trained_on(open(folder)?)),
            None => Ok(bench),
        }
    }

    /// Prints the sections that have rows.
    ///
    /// # Errors
    /// A value cannot be written as JSON.
    pub fn print(&self, sections: &[Section]) -> Result<()> {
        if self.json {
            println!("{}", serde_json::to_string_pretty(&sections_to_json(sections))?);
            return Ok(());
        }
        let shown = sections.iter().filter(|section| !section.table.is_empty());
        println!("{}", shown.map(Section::to_string).collect::<Vec<_>>().join("\n\n"));
        Ok(())
    }
}

/// Which workloads.
#[derive(Args, Debug)]
pub struct Which {
    /// Only this workload; may be repeated
    #[arg(short, long = "workload", value_name = "NAME")]
    pub workloads: Vec<String>,
}

impl Which {
    /// The workloads named, or all of them where none is.
    ///
    /// # Errors
    /// No workload has one of the names.
    pub fn select<'b>(&self, bench: &'b Bench) -> Result<Vec<&'b Workload>> {
        bench.select(&self.workloads)
    }
}

/// What is counted exactly, and where.
#[derive(Args, Debug)]
pub struct Exact {
    /// The workloads.
    #[command(flatten)]
    pub which: Which,
    /// Where paths are counted
    #[arg(long, value_enum, default_value_t = AnchorName::Early)]
    pub anchor: AnchorName,
    /// The input that is counted: train, ref, count, short or other
    #[arg(long, default_value = "short")]
    pub on: InputKind,
}

/// The place in LLVM's pipeline where IR is identified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum AnchorName {
    /// Before the inliner
    Early,
    /// The graph as code generation gets it
    Late,
}

impl AnchorName {
    /// The `pleach` command with flags for this anchor.
    ///
    /// # Errors
    /// `pleach` was not built beside this program.
    pub fn pleach(self) -> Result<Pleach> {
        let anchor = match self {
            Self::Early => "early",
            Self::Late => "late",
        };
        Ok(Pleach {
            options: ["--anchor", anchor].map(str::to_owned).to_vec(),
            ..plain_pleach()?
        })
    }
}

/// The `pleach` command without options.
///
/// # Errors
/// `pleach` was not built beside this program.
pub fn plain_pleach() -> Result<Pleach> {
    Ok(Pleach {
        command: pleach_command()?,
        options: Vec::new(),
    })
}

/// The `pleach` that was built beside this program.
///
/// # Errors
/// It is not there.
pub fn pleach_command() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let command = own.with_file_name("pleach");
    ensure!(
        command.is_file(),
        "{} is not there: build everything with `cargo build --release`",
        command.display()
    );
    Ok(command)
}
