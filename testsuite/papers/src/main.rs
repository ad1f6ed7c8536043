//! `pleach-papers`: prints one table of a paper for each subcommand.

use anyhow::Result;
use clap::{Parser, Subcommand};
use pleach_harness::cli::{Common, Exact, Which, plain_pleach};
use pleach_harness::{InputKind, parallel};
use pleach_papers::recordings::{Recorded, RecordedArgs};
use pleach_papers::{path_tables, phase_checks, regions, streams, time_bias, traces};

#[derive(Parser)]
#[command(version, about = "Tables of the papers that pleach builds on, for the workloads")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand)]
enum Command {
    /// Sastry, Bodík and Smith (ISCA 2001): compress recorded streams of branches, error against messages
    Streams {
        #[command(flatten)]
        which: Which,
        /// Budget of the recording
        #[arg(long, default_value = "30%")]
        overhead: String,
        /// The input that is recorded
        #[arg(long, default_value = "ref")]
        on: InputKind,
        /// Repetitions with other random numbers
        #[arg(long, default_value_t = 3)]
        trials: u64,
    },
    /// The same paper: compress the values that programs load, error while the stream goes on. Programs are stepped, some
    /// 10 microseconds for each instruction
    Loads {
        #[command(flatten)]
        which: Which,
        /// The input
        #[arg(long, default_value = "short")]
        on: InputKind,
        /// Loads after which a program is stopped
        #[arg(long, default_value_t = 4_000_000)]
        events: usize,
        /// Repetitions with other random numbers
        #[arg(long, default_value_t = 3)]
        trials: u64,
    },
    /// The same paper: how fast its estimators converge, as a Monte-Carlo experiment
    Convergence {
        /// Repetitions
        #[arg(long, default_value_t = 2500)]
        experiments: u64,
    },
    /// Sampled distributions of instructions and branches against exact ones, with each correction of time bias
    TimeBias {
        #[command(flatten)]
        which: Which,
        /// Budgets; may be repeated
        #[arg(long = "overhead", default_values_t = ["100%".to_owned(), "1%".to_owned()])]
        budgets: Vec<String>,
        /// Runs that go into one recording
        #[arg(long, default_value_t = 20)]
        repeat: u32,
        /// The input
        #[arg(long, default_value = "short")]
        on: InputKind,
        /// Functions to list for each recording
        #[arg(long, default_value_t = 3)]
        functions: usize,
    },
    /// Shye et al. (INTERACT 2005): partial paths split at regions and credited equally, beside exact counts
    Regions {
        #[command(flatten)]
        exact: Exact,
        /// Budget of the recording
        #[arg(long, default_value = "30%")]
        overhead: String,
        /// Runs that go into the recording
        #[arg(long, default_value_t = 1)]
        repeat: u32,
    },
    /// Chen et al. (2003): four models of trace selection and ours, on recorded samples
    Traces {
        #[command(flatten)]
        recorded: RecordedArgs,
        /// Samples of an interval; may be repeated
        #[arg(long = "interval", default_values_t = [100, 1000])]
        intervals: Vec<usize>,
    },
    /// The same paper: the detector of phases, on resampled bursts whose phases are known
    Phases {
        #[command(flatten)]
        recorded: RecordedArgs,
        /// Intervals of programs that do not change
        #[arg(long, default_value_t = 1_000_000)]
        intervals: u64,
        /// Changes of programs that change
        #[arg(long, default_value_t = 1000)]
        changes: u64,
        /// Bursts of an interval
        #[arg(long, default_value_t = pleach_phases::detector::DEFAULT_INTERVAL)]
        length: usize,
    },
    /// Ball and Larus (MICRO-29): executed paths, how often they are counted, bit tracing beside, sizes of tables, misses
    /// of caches, and what training shows of them
    Paths {
        #[command(flatten)]
        exact: Exact,
        /// Leave cachegrind out
        #[arg(long, conflicts_with = "caches")]
        no_counts: bool,
        /// Simulate first-level caches too, of the plain program and with counted edges and paths
        #[arg(long)]
        caches: bool,
    },
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let open = || cli.common.open();
    let sections = match &cli.command {
        Command::Streams {
            which,
            overhead,
            on,
            trials,
        } => {
            let bench = open()?;
            let options = streams::StreamOptions {
                overhead: overhead.clone(),
                on: *on,
                trials: *trials,
            };
            streams::sections(&streams::streams(
                &bench,
                &which.select(&bench)?,
                &plain_pleach()?,
                &options,
            )?)
        }
        Command::Loads {
            which,
            on,
            events,
            trials,
        } => {
            let bench = open()?;
            let options = streams::LoadOptions {
                on: *on,
                events: *events,
                trials: *trials,
            };
            streams::load_sections(&streams::loads_of_workloads(&bench, &which.select(&bench)?, &options)?)
        }
        Command::Convergence { experiments } => vec![streams::convergence(*experiments)],
        Command::TimeBias {
            which,
            budgets,
            repeat,
            on,
            functions,
        } => {
            let bench = open()?;
            let options = time_bias::TimeBiasOptions {
                budgets: budgets.clone(),
                repeat: *repeat,
                on: *on,
                functions: *functions,
            };
            let found = time_bias::time_bias(&bench, &which.select(&bench)?, &plain_pleach()?, &options)?;
            time_bias::sections(&found, &options)
        }
        Command::Regions {
            exact,
            overhead,
            repeat,
        } => {
            let bench = open()?;
            let options = regions::RegionOptions {
                on: exact.on,
                overhead: overhead.clone(),
                repeat: *repeat,
            };
            let workloads = exact.which.select(&bench)?;
            regions::sections(&regions::figures(
                &bench,
                &workloads,
                &exact.anchor.pleach()?,
                &options,
            )?)
        }
        Command::Traces { recorded, intervals } => {
            let figures = recorded.read(open)?;
            let figures = figures
                .iter()
                .map(|Recorded { name, vectors }| traces::figures(name, vectors, intervals));
            traces::report::sections(&figures.collect::<Vec<_>>())
        }
        Command::Phases {
            recorded,
            intervals,
            changes,
            length,
        } => {
            let options = phase_checks::CheckOptions {
                intervals: *intervals,
                length: *length,
                changes: *changes,
                seed: 1,
            };
            let recordings = recorded.read(open)?.into_iter();
            let recordings: Vec<_> = recordings.map(|recorded| (recorded.name, recorded.vectors)).collect();
            phase_checks::sections(&phase_checks::check(&recordings, &options)?)
        }
        Command::Paths {
            exact,
            no_counts,
            caches,
        } => {
            let bench = open()?;
            let options = path_tables::PathTableOptions {
                on: exact.on,
                instructions: !no_counts,
                caches: *caches,
                jobs: parallel::default_jobs(),
            };
            let figures =
                path_tables::figures(&bench, &exact.which.select(&bench)?, &exact.anchor.pleach()?, &options)?;
            path_tables::sections(&figures, &options)
        }
    };
    cli.common.print(&sections)
}
