//! The command line.

use crate::peer_args::{Ablate, Decisions, Peers};
use crate::suite_args::Suites;
use clap::{Args, Parser, Subcommand, ValueEnum};
use pleach_harness::InputKind;
use pleach_harness::cli::{AnchorName, Common, Exact, Which};
use std::fmt;

#[derive(Parser)]
#[command(version, about = "Real programs to measure pleach on")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the workloads
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
    /// Compare pleach with IR-PGO, AutoFDO, CSSPGO and BOLT against plain -O2: counts, sizes, run and build times
    Peers(Peers),
    /// Measure what each optimisation contributes: all on against all but one, from one recording
    Ablate(Ablate),
    /// Measure single decisions, each alone, beside the gain that its cost model predicts
    Decisions(Decisions),
    /// Record with several engines and budgets: branches per CPU-second, and overhead as accounted and as measured
    Rates {
        #[command(flatten)]
        which: Which,
        /// How branch vectors are obtained; may be repeated
        #[arg(long = "engine", default_values_t = ["run-ahead".to_owned(), "step".to_owned()])]
        engines: Vec<String>,
        /// Budgets; may be repeated
        #[arg(long = "overhead", default_values_t = ["1%".to_owned()])]
        budgets: Vec<String>,
        /// Pairs of a plain and a recorded run
        #[arg(long, default_value_t = 5)]
        pairs: usize,
        /// The input
        #[arg(long, default_value = "ref")]
        on: InputKind,
        /// Another option of `pleach record`; may be repeated
        #[arg(long = "with", allow_hyphen_values = true)]
        with: Vec<String>,
    },
    /// Compare sampled paths with exactly counted ones: every combination of the options that may be repeated
    Accuracy(Accuracy),
    /// Record, and compare what is covered with what was executed
    Coverage {
        #[command(flatten)]
        exact: Exact,
        /// Budget of the recording
        #[arg(long = "overhead", default_value = "1%")]
        budget: String,
        /// Mean CPU time between bursts, in place of a budget: 4ms, or 4ms,fixed for equal periods
        #[arg(long, conflicts_with = "budget")]
        period: Option<String>,
        /// Recordings, evaluated one by one and all together
        #[arg(long, default_value_t = 1)]
        runs: usize,
        /// Runs of a recording
        #[arg(long, default_value_t = 1)]
        repeat: u32,
        /// Exact counts: programs that hash addresses do not always take the same paths
        #[arg(long, default_value_t = 3)]
        exact_runs: usize,
        /// Taken branches of a short vector (thesis: 4)
        #[arg(long, default_value_t = 4)]
        branches: usize,
    },
    /// Check that exact counts are exact: flows balance, and paths, edges and clang's own instrumentation agree
    Verify(Exact),
    /// Run the programs' own test suites, compiled with random profiles and superblocks wherever they are allowed
    Suites(Suites),
}

#[derive(Args)]
pub struct Accuracy {
    #[command(flatten)]
    pub which: Which,
    /// Where paths are identified
    #[arg(long, value_enum, default_value_t = AnchorName::Late)]
    pub anchor: AnchorName,
    /// How the profiled build is optimised; may be repeated
    #[arg(long = "level", value_enum, default_values_t = [LevelName::O2])]
    pub levels: Vec<LevelName>,
    /// CPU time for sampling, in per cent of the program's; may be repeated
    #[arg(long = "overhead", value_name = "PERCENT", default_values_t = [1.0])]
    pub budgets: Vec<f64>,
    /// Cut bursts to vectors of this many branches, or `whole`; may be repeated
    #[arg(long = "length", value_parser = length, default_values_t = [Length(None)])]
    pub lengths: Vec<Length>,
    /// How partial paths are credited; may be repeated
    #[arg(long = "crediting", value_enum, default_values_t = [CreditingName::Em])]
    pub creditings: Vec<CreditingName>,
    /// Whether the time bias is corrected; may be repeated. `corrected` times branches behind a third of the bursts, for all
    /// rows
    #[arg(long = "time-bias", value_enum, default_values_t = [TimeBiasName::Uncorrected])]
    pub time_biases: Vec<TimeBiasName>,
    /// Recordings of each program
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
    /// CPU-seconds of the program in each recording
    #[arg(long, default_value_t = 10.0)]
    pub cpu_seconds: f64,
    /// The input: train, ref, count, short or other
    #[arg(long, default_value = "ref")]
    pub on: InputKind,
    /// Single-step instead of running ahead
    #[arg(long)]
    pub step: bool,
}

/// Branches of a vector; all that a burst has if `None`.
#[derive(Clone, Copy)]
pub struct Length(pub Option<usize>);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(length) => write!(f, "{length}"),
            None => f.write_str("whole"),
        }
    }
}

fn length(text: &str) -> Result<Length, String> {
    match text.parse::<usize>() {
        _ if text == "whole" => Ok(Length(None)),
        Ok(length) if length > 0 => Ok(Length(Some(length))),
        _ => Err("expected a number of branches, or whole".to_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LevelName {
    /// -O1
    #[value(name = "O1")]
    O1,
    /// -O2
    #[value(name = "O2")]
    O2,
    /// -O3
    #[value(name = "O3")]
    O3,
    /// -O2 and clang's -fprofile-use, from exact counts of the training input
    IrPgo,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CreditingName {
    /// In proportion to how often each path is executed
    Em,
    /// Equally, as the papers do
    Equal,
    /// As products of edge probabilities
    EdgeIndependent,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeBiasName {
    /// Not at all
    Uncorrected,
    /// By the speed of bursts with similar branches
    Corrected,
}

#[derive(Args)]
pub struct Build {
    #[command(flatten)]
    pub which: Which,
    /// Compiler flags, split as a shell would
    #[arg(long, default_value = "-O2", allow_hyphen_values = true)]
    pub cflags: String,
    /// Linker flags, split as a shell would
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    pub ldflags: String,
    /// A name for the build
    #[arg(long, default_value = "custom")]
    pub label: String,
}

#[derive(Args)]
pub struct Measure {
    /// Pairs of timed runs; 0 leaves timing out
    #[arg(long, default_value_t = 5)]
    pub pairs: usize,
    /// The input that is timed
    #[arg(long, default_value = "ref")]
    pub time_on: InputKind,
    /// The input that is counted
    #[arg(long, default_value = "count")]
    pub count_on: InputKind,
    /// Leave cachegrind out
    #[arg(long)]
    pub no_counts: bool,
    /// Count taken branches too
    #[arg(long)]
    pub taken: bool,
    /// Let cachegrind simulate caches and branches too
    #[arg(long)]
    pub model: bool,
    /// Variants to compare with plain -O2; may be repeated
    #[arg(long = "with", value_name = "VARIANT", value_enum, default_values_t = [VariantName::IrPgo, VariantName::Annotated, VariantName::Pleach])]
    pub variants: Vec<VariantName>,
    /// Options of `pleach record` for the training run
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "--engine step --overhead 1000%",
        allow_hyphen_values = true
    )]
    pub record: String,
    /// Options of `pleach flags annotate`, `instrument` and `use` alike
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    pub flags: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VariantName {
    /// clang's -fprofile-use, from exact counts
    IrPgo,
    /// clang's -fprofile-generate
    Instrumented,
    /// The same without the inlining before it
    InstrumentedNoPreinline,
    /// `pleach flags instrument`
    Paths,
    /// `pleach flags instrument --edges`
    Edges,
    /// clang's own pseudo-probes
    ClangProbes,
    /// clang's -fprofile-instr-generate -fcoverage-mapping
    SourceCoverage,
    /// `pleach flags annotate`
    Annotated,
    /// `pleach flags use`, from a recording of the training input
    Pleach,
}
