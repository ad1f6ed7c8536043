//! Figures of a recording.

use crate::convert::Found;
use crate::vector::{Engine, Process, VectorSet};
use crate::verify::Verified;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of a recording, serialised under the names that scripts rely on.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Engine that produced the vectors.
    pub engine: String,
    /// The event at which branch records were read, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Samples of kernel events.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub event_samples: u64,
    /// CPU seconds of all processes, sampled or not, the sampler's own excluded.
    pub program_cpu_seconds: f64,
    /// Those of them that no process reported: of processes without the sampler, or that were killed.
    #[serde(default, skip_serializing_if = "is_zero_seconds")]
    pub unreported_cpu_seconds: f64,
    /// CPU seconds of the sampler, including its start-up and the delivery of signals.
    pub own_cpu_seconds: f64,
    /// `own_cpu_seconds / program_cpu_seconds`, a fraction.
    pub overhead: f64,
    /// Bursts stored.
    pub bursts: u64,
    /// Bursts that have at least one taken branch.
    pub vectors: u64,
    /// Taken branches stored.
    pub taken_branches: u64,
    /// Bursts with a complete time measurement.
    #[serde(default)]
    pub timed_bursts: u64,
    /// Incomplete time measurements.
    #[serde(default)]
    pub incomplete_timings: u64,
    /// Instructions followed.
    pub instructions: u64,
    /// Bursts by the reason for which they ended.
    pub end_reasons: BTreeMap<String, u64>,
    /// Bursts that could not be stored.
    pub lost: u64,
    /// Ticks at which sampling was declined.
    pub declined: u64,
    /// Sampled process images.
    pub processes: u64,
    /// Process images without a burst: most were not chosen for sampling, since they are short and many.
    #[serde(default)]
    pub unsampled_processes: u64,
    /// Sampled threads.
    pub threads: u64,
    /// Threads that could not be sampled.
    pub unsampled_threads: u64,
    /// Bytes of incomplete frames at the ends of shards.
    pub damaged_bytes: u64,
    /// The processes that confined themselves by a seccomp filter, if any: sampling ended in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confined: Option<Confined>,
    /// None of the files that the only process ran is annotated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unannotated: bool,
    /// The result of comparing shadow execution with real execution, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// Processes that confined themselves by a seccomp filter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Confined {
    /// Id of the first one.
    pub process: u32,
    /// Name of the thread in it that did so.
    pub name: String,
    /// How many there are.
    pub processes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_zero_seconds(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl Stats {
    /// The figures of a set. `engine`: the requested engine; programs in which it does not work may have used another
    /// one.
    pub fn from_vectors(set: &VectorSet, engine: Engine, found: Found) -> Self {
        let mut engines: BTreeMap<&str, u64> = BTreeMap::new();
        for burst in &set.bursts {
            *engines.entry(burst.engine.name()).or_default() += burst.count;
        }
        let epochs = || set.compressed.iter().flat_map(|compressed| &compressed.epochs);
        for (engine, bursts) in epochs().flat_map(|epoch| &epoch.engines) {
            *engines.entry(engine.name()).or_default() += bursts;
        }
        let most = engines.iter().max_by_key(|(_, bursts)| **bursts);
        let mut stats = Self {
            engine: most.map_or(engine.name(), |(name, _)| name).to_owned(),
            processes: set.processes.len() as u64,
            threads: found.threads,
            unsampled_threads: found.unsampled_threads,
            damaged_bytes: found.damaged_bytes,
            timed_bursts: found.timed_bursts,
            incomplete_timings: found.incomplete_timings,
            verified: Some(found.verified).filter(|verified| verified.instructions > 0),
            ..Self::default()
        };
        for process in &set.processes {
            stats.program_cpu_seconds += process.program_cpu_seconds;
            stats.own_cpu_seconds += process.own_cpu_seconds;
            stats.lost += process.lost;
            stats.declined += process.declined;
        }
        for burst in &set.bursts {
            stats.bursts += burst.count;
            stats.vectors += if burst.branches.is_empty() { 0 } else { burst.count };
            stats.taken_branches += burst.count * burst.branches.len() as u64;
            stats.instructions += burst.count * u64::from(burst.instructions);
            *stats.end_reasons.entry(burst.end_reason.name().to_owned()).or_default() += burst.count;
        }
        for epoch in epochs() {
            stats.bursts += epoch.bursts;
            stats.vectors += epoch.bursts - epoch.empty_bursts.min(epoch.bursts);
            stats.taken_branches += epoch.branches;
            stats.instructions += epoch.instructions;
            for (reason, bursts) in &epoch.end_reasons {
                *stats.end_reasons.entry(reason.name().to_owned()).or_default() += bursts;
            }
        }
        stats.set_overhead();
        stats
    }

    /// Adds the processes without a shard.
    pub(crate) fn add_unsampled(&mut self, unsampled: &Unsampled) {
        self.unsampled_processes += unsampled.processes;
        self.threads += unsampled.threads;
        self.unsampled_threads += unsampled.unsampled_threads;
        self.program_cpu_seconds += unsampled.program_cpu_seconds;
        self.own_cpu_seconds += unsampled.own_cpu_seconds;
        self.set_overhead();
    }

    /// Takes the kernel's account of the command and all that it waited for, if that is more than what processes told:
    /// it includes how the kernel makes and ends processes, and processes that were killed, are linked statically or
    /// confined themselves.
    pub(crate) fn add_command(&mut self, cpu_seconds: f64) {
        self.unreported_cpu_seconds = (cpu_seconds - self.own_cpu_seconds - self.program_cpu_seconds).max(0.0);
        self.program_cpu_seconds += self.unreported_cpu_seconds;
        self.set_overhead();
    }

    /// Takes the CPU seconds of a sampler outside of the program.
    pub(crate) fn set_own(&mut self, cpu_seconds: f64) {
        self.own_cpu_seconds = cpu_seconds;
        self.set_overhead();
    }

    fn set_overhead(&mut self) {
        if self.program_cpu_seconds > 0.0 {
            self.overhead = self.own_cpu_seconds / self.program_cpu_seconds;
        }
    }
}

/// CPU time and threads of the processes without a shard: they were not chosen for sampling, or had no burst.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Unsampled {
    /// Process images.
    pub processes: u64,
    /// CPU seconds of the program.
    pub program_cpu_seconds: f64,
    /// CPU seconds of the sampler, which is loaded into these processes, too.
    pub own_cpu_seconds: f64,
    /// Threads that could have had bursts.
    pub threads: u64,
    /// Threads that could not be sampled.
    pub unsampled_threads: u64,
}

impl Unsampled {
    /// Adds the figures of another run.
    pub(crate) fn join(&mut self, other: Self) {
        self.processes += other.processes;
        self.program_cpu_seconds += other.program_cpu_seconds;
        self.own_cpu_seconds += other.own_cpu_seconds;
        self.threads += other.threads;
        self.unsampled_threads += other.unsampled_threads;
    }

    /// The figures that were added to those of `before`.
    pub(crate) fn without(&self, before: Self) -> Self {
        Self {
            processes: self.processes.saturating_sub(before.processes),
            program_cpu_seconds: (self.program_cpu_seconds - before.program_cpu_seconds).max(0.0),
            own_cpu_seconds: (self.own_cpu_seconds - before.own_cpu_seconds).max(0.0),
            threads: self.threads.saturating_sub(before.threads),
            unsampled_threads: self.unsampled_threads.saturating_sub(before.unsampled_threads),
        }
    }

    /// One record for all these processes, `None` if there are none.
    pub(crate) fn as_process(&self) -> Option<Process> {
        (self.processes > 0).then(|| Process {
            pid: 0,
            parent: None,
            command: match self.processes {
                1 => "(1 process that was not sampled)".to_owned(),
                processes => format!("({processes} processes that were not sampled)"),
            },
            program_cpu_seconds: self.program_cpu_seconds,
            own_cpu_seconds: self.own_cpu_seconds,
            lost: 0,
            declined: 0,
            undisturbed: false,
        })
    }
}
