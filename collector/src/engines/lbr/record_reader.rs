//! Buffers of all processors → records → one set of vectors.

use super::ring::Ring;
use crate::perf::Report;
use crate::perf::live::{Live, LiveEvent, RunningProcess};
use crate::vector::{Burst, Engine, VectorSet};

/// `PERF_RECORD_LOST`, `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Totals of the records read so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrived {
    /// Records.
    pub records: u64,
    /// Samples.
    pub samples: u64,
    /// Events that the samples represent: the sum of their periods, if samples have them.
    pub events: u64,
    /// Records that did not fit into a buffer.
    pub lost: u64,
}

/// Reads buffers, and sorts their records by time.
pub struct RecordReader<'a> {
    live: Live<'a>,
    arrived: Arrived,
}

impl<'a> RecordReader<'a> {
    /// Adds to a set.
    pub fn new(set: &'a mut VectorSet, engine: Engine, events: &[LiveEvent]) -> Self {
        Self {
            live: Live::new(set, engine, events),
            arrived: Arrived::default(),
        }
    }

    /// Adds samples of kernel events to a set.
    pub fn of_kernel_events(set: &'a mut VectorSet, events: &[LiveEvent]) -> Self {
        Self {
            live: Live::of_kernel_events(set, events),
            arrived: Arrived::default(),
        }
    }

    /// Adds a process that ran before the recording began.
    pub fn add_running(&mut self, running: RunningProcess) {
        self.live.add_running(running);
    }

    /// Reads every buffer once.
    ///
    /// A damaged buffer is reported; its later records are used again.
    pub fn round(&mut self, rings: &[Ring]) {
        let Self { live, arrived } = self;
        for ring in rings {
            let read = ring.drain(|record| {
                arrived.records += 1;
                match record.kind {
                    LOST => {
                        let lost = record.body.get(8..16).and_then(|lost| lost.try_into().ok());
                        arrived.lost += lost.map_or(0, u64::from_ne_bytes);
                    }
                    SAMPLE => {
                        arrived.samples += 1;
                        arrived.events += live.period(&record.body).unwrap_or(0);
                    }
                    _ => {}
                }
                live.record(record.kind, record.misc, record.body, record.at);
            });
            if let Err(error) = read {
                live.damaged(0, error.to_string());
            }
        }
        live.round();
    }

    /// The bursts of this run and of earlier ones so far.
    pub fn bursts(&self) -> &[Burst] {
        self.live.bursts()
    }

    /// Totals of the records read so far.
    pub fn arrived(&self) -> Arrived {
        self.arrived
    }

    /// Ends the recording. CPU seconds of all processes, and of sampling them, are added to the process `root`.
    pub fn finish(self, root: u32, program_cpu_seconds: f64, own_cpu_seconds: f64) -> Report {
        self.live.finish(root, program_cpu_seconds, own_cpu_seconds)
    }
}
