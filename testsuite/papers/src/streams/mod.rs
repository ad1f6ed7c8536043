//! How well recorded streams of branches are compressed by the samplers of Sastry, Bodík and Smith (ISCA 2001).
//!
//! | paper | here |
//! |---|---|
//! | R_r, CR_r (§3.1); what the paper's references use | [`samplers`] |
//! | tagged table (§4, figure 6) | [`tagged`] |
//! | events (§2.1); loads, of a burst and of a run | [`event`](mod@event), [`loads`], [`stepped`] |
//! | error (§5.3.1) | [`error`](mod@error) |
//! | overhead in cycles (§5.3.2) | [`overhead`](mod@overhead) |
//! | error while the stream goes on (§5.4, figure 7) | [`progress`](mod@progress) |
//! | Monte-Carlo figure (§3.3, figure 4) | [`convergence`](mod@convergence) |

mod compact;
pub mod convergence;
mod curve;
pub mod error;
pub mod event;
pub mod loads;
pub mod overhead;
pub mod progress;
mod report;
pub mod samplers;
pub mod stepped;
mod stream;
pub mod tagged;

pub use compact::CompactRecording;
pub use curve::{Curve, Kind, Point, RATES, TABLE_BITS};
pub use report::{convergence, load_sections, sections};
pub use stream::{LoadStream, Stream};

use anyhow::Result;
use event::{Event, control_flow};
use pleach_collector::vector::{CodeAddress, VectorSet};
use pleach_harness::bench::Bench;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::progress::bar;
use pleach_harness::recorder::record_vectors;
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};
use pleach_wire::x86::{self, Instruction};
use std::collections::HashMap;

/// Options of the experiment.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Budget, as `pleach record` takes it.
    pub overhead: String,
    /// The input.
    pub on: InputKind,
    /// Repetitions with other random numbers.
    pub trials: u64,
}

/// Records and compresses each workload.
pub fn streams(
    bench: &Bench,
    workloads: &[&Workload],
    pleach: &Pleach,
    options: &StreamOptions,
) -> Result<Vec<Stream>> {
    let bar = bar(workloads.len(), "streams");
    let mut streams = Vec::new();
    for workload in workloads {
        bar.set_message(workload.name.clone());
        let binary = Variant::O2.produce(bench, workload)?;
        let invocation = bench.invocation(workload, options.on)?;
        let vectors = record_vectors(&binary, &invocation, pleach, &options.overhead, 1)?;
        streams.push(stream(&workload.name, &vectors, options.trials));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(streams)
}

/// Options of the experiment with loads.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// The input.
    pub on: InputKind,
    /// Loads after which a program is stopped.
    pub events: usize,
    /// Repetitions with other random numbers.
    pub trials: u64,
}

/// Steps through each workload, and compresses what it loads.
pub fn loads_of_workloads(bench: &Bench, workloads: &[&Workload], options: &LoadOptions) -> Result<Vec<LoadStream>> {
    let bar = bar(workloads.len(), "loads");
    let mut streams = Vec::new();
    for workload in workloads {
        bar.set_message(workload.name.clone());
        let binary = Variant::O2.produce(bench, workload)?;
        let invocation = bench.invocation(workload, options.on)?;
        let run = stepped::loads_of_run(&binary.path, &invocation.args, options.events)?;
        let truth = curve::counts(run.events.iter().map(|event| (*event, 1)));
        streams.push(LoadStream {
            workload: workload.name.clone(),
            events: run.events.len() as u64,
            distinct: truth.len() as u64,
            instructions: run.instructions,
            curves: Kind::ALL
                .map(|kind| Curve::measure(kind, &run.events, &truth, options.trials))
                .to_vec(),
            progress: progress::progress(&run.events, options.trials),
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(streams)
}

fn stream(workload: &str, vectors: &VectorSet, trials: u64) -> Stream {
    let events = events(vectors);
    let truth = curve::counts(events.iter().map(|event| (*event, 1)));
    Stream {
        workload: workload.to_owned(),
        bursts: vectors.bursts.len() as u64,
        branches: vectors.bursts.iter().map(|burst| burst.branches.len() as u64).sum(),
        events: events.len() as u64,
        distinct: truth.len() as u64,
        instructions: vectors.bursts.iter().map(|burst| u64::from(burst.instructions)).sum(),
        table_sizes: curve::table_sizes(&events, &truth, trials),
        curves: Kind::ALL
            .map(|kind| Curve::measure(kind, &events, &truth, trials))
            .to_vec(),
        progress: progress::progress(&events, trials),
        compact: CompactRecording::measure(vectors, trials),
    }
}

fn events(vectors: &VectorSet) -> Vec<Event> {
    let read = |module: &pleach_collector::vector::Module| std::fs::read(&module.path).unwrap_or_default();
    let files: Vec<Vec<u8>> = vectors.modules.iter().map(read).collect();
    let mut known: HashMap<CodeAddress, Option<Instruction>> = HashMap::new();
    let mut code = |at: CodeAddress| {
        *known.entry(at).or_insert_with(|| {
            let from = files.get(at.module.0 as usize)?.get(at.offset as usize..)?;
            x86::decode(&from[..from.len().min(x86::MAX_LENGTH)], at.offset)
        })
    };
    let mut events = Vec::new();
    for burst in &vectors.bursts {
        control_flow(burst, &mut code, &mut |event| events.push(event));
    }
    events
}
