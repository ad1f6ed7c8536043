//! How well recorded streams of branches are compressed by the samplers of Sastry, Bodík and Smith (ISCA 2001).

mod curve;
mod report;
mod room;

pub use curve::{Curve, Kind, Point, RATES};
pub use report::{convergence, sections};
pub use room::Room;

use crate::bench::Bench;
use crate::build::Binary;
use crate::progress;
use crate::run::{Invocation, run_with};
use crate::variant::{Pleach, Variant};
use crate::workload::{InputKind, Workload};
use anyhow::{Context, Result};
use pleach_collector::stream::{Event, control_flow};
use pleach_collector::vector::{CodeAddress, VectorSet};
use pleach_collector::x86::{self, Instruction};
use pleach_feedback::profile::file::ProfileFile;
use std::collections::HashMap;

/// What to record, and how often to compress it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Budget, as `pleach record` takes it.
    pub overhead: String,
    /// The input.
    pub on: InputKind,
    /// Repetitions with other random numbers.
    pub trials: u64,
}

/// What one program's stream showed.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The program.
    pub workload: String,
    /// Bursts in which it was recorded.
    pub bursts: u64,
    /// Taken branches.
    pub branches: u64,
    /// Events of its edge and call-target profiles.
    pub events: u64,
    /// Different ones.
    pub distinct: u64,
    /// By compressor.
    pub curves: Vec<Curve>,
    /// What fits in a file of an eighth of the size.
    pub room: Room,
}

/// Records and compresses each workload.
pub fn streams(bench: &Bench, workloads: &[&Workload], pleach: &Pleach, options: &Options) -> Result<Vec<Stream>> {
    let bar = progress::bar(workloads.len(), "streams");
    let mut streams = Vec::new();
    for workload in workloads {
        bar.set_message(workload.name.clone());
        let binary = Variant::O2.produce(bench, workload)?;
        let invocation = bench.invocation(workload, options.on)?;
        let vectors = record(&binary, &invocation, pleach, &options.overhead)?;
        streams.push(stream(&workload.name, &vectors, options.trials));
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
        curves: Kind::ALL.map(|kind| Curve::of(kind, &events, &truth, trials)).to_vec(),
        room: Room::of(vectors, trials),
    }
}

fn record(binary: &Binary, invocation: &Invocation, pleach: &Pleach, overhead: &str) -> Result<VectorSet> {
    let folder = tempfile::tempdir()?;
    let profile = folder.path().join("stream.pleach");
    let mut wrapper = vec![pleach.command.display().to_string()];
    let options = ["record", "--quiet", "--keep-vectors", "--overhead", overhead, "-o"];
    wrapper.extend(options.map(str::to_owned));
    wrapper.extend([profile.display().to_string(), "--".to_owned()]);
    run_with(binary, invocation, &wrapper, &[])?.expect_checksum(binary, invocation)?;
    let file = ProfileFile::open(&profile)?;
    let vectors = file.vectors()?.context("pleach record kept no vectors")?;
    Ok(VectorSet::from_bytes(vectors)?)
}

/// The events of both profiles at once, as in the paper's §5.7.
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
