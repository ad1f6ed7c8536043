//! Recordings that several tables are made of: of workloads, recorded now, or profiles that were kept.

use anyhow::{Context, Result};
use clap::Args;
use pleach_collector::vector::VectorSet;
use pleach_harness::InputKind;
use pleach_harness::bench::Bench;
use pleach_harness::cli::{Which, plain_pleach};
use pleach_harness::progress;
use pleach_harness::recorder::record_vectors;
use pleach_harness::variant::Variant;
use pleach_profile::file::ProfileFile;
use std::path::PathBuf;

/// Which recordings.
#[derive(Args, Debug)]
pub struct RecordedArgs {
    /// The workloads to record.
    #[command(flatten)]
    pub which: Which,
    /// A profile with raw vectors (`pleach record --keep-vectors`), in place of workloads; may be repeated
    #[arg(long = "vectors", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Budget of the recordings
    #[arg(long, default_value = "30%")]
    pub overhead: String,
    /// Runs that go into one recording
    #[arg(long, default_value_t = 1)]
    pub repeat: u32,
    /// The input that is recorded
    #[arg(long, default_value = "ref")]
    pub on: InputKind,
}

/// A recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Of the workload, or of the file.
    pub name: String,
    /// Its raw vectors.
    pub vectors: VectorSet,
}

impl RecordedArgs {
    /// Reads the files, or records the workloads.
    ///
    /// # Errors
    /// A file is no profile with raw vectors, or a workload cannot be built or recorded.
    pub fn read(&self, open: impl Fn() -> Result<Bench>) -> Result<Vec<Recorded>> {
        if !self.files.is_empty() {
            return self.files.iter().map(read_file).collect();
        }
        let (bench, pleach) = (open()?, plain_pleach()?);
        let workloads = self.which.select(&bench)?;
        let bar = progress::bar(workloads.len(), "recording");
        let mut recorded = Vec::new();
        for workload in workloads {
            bar.set_message(workload.name.clone());
            let binary = Variant::Annotated(pleach.clone()).produce(&bench, workload)?;
            let invocation = bench.invocation(workload, self.on)?;
            recorded.push(Recorded {
                name: workload.name.clone(),
                vectors: record_vectors(&binary, &invocation, &pleach, &self.overhead, self.repeat)?,
            });
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(recorded)
    }
}

fn read_file(path: &PathBuf) -> Result<Recorded> {
    let name = || path.display().to_string();
    let profile = ProfileFile::open(path)?;
    let bytes = profile.vectors()?;
    let bytes = bytes.with_context(|| format!("{}: it has no raw vectors: record with --keep-vectors", name()))?;
    Ok(Recorded {
        name: path
            .file_stem()
            .map_or_else(name, |stem| stem.to_string_lossy().into_owned()),
        vectors: VectorSet::from_bytes(bytes).with_context(name)?,
    })
}
