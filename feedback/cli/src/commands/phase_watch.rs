//! Reports phases on standard error while a command is recorded.

use pleach_collector::vector::Burst;
use pleach_collector::watch::{Watch, Watcher};
use pleach_phases::{Detector, Interval, Signature};
use pleach_report::phases::PhaseLines;
use std::sync::{Arc, Mutex, PoisonError};

/// The phases of a recording in progress.
pub struct PhaseWatch(Arc<Mutex<Stream>>);

/// What of the recording is kept: the detector's state, and bursts since the last round.
struct Stream {
    /// `None` after the end.
    detector: Option<Detector>,
    lines: PhaseLines,
    arrived: Vec<Signature>,
}

impl PhaseWatch {
    /// Sees no burst yet.
    pub fn new(interval: Interval) -> Self {
        Self(Arc::new(Mutex::new(Stream {
            detector: Some(Detector::new(interval)),
            lines: PhaseLines::default(),
            arrived: Vec::new(),
        })))
    }

    /// What the recorder shows its bursts to.
    pub fn watcher(&self) -> Watcher {
        Watcher::new(self.0.clone())
    }

    /// The recording has ended: reports the rest.
    pub fn finish(&self) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.round();
        let events = stream.detector.take().map_or_else(Vec::new, Detector::finish);
        for event in events {
            report(stream.lines.line(&event));
        }
        report(Some(stream.lines.summary()));
    }
}

impl Watch for Stream {
    fn burst(&mut self, burst: &Burst) {
        self.arrived.push(Signature::from_burst(burst));
    }

    fn round(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.sort_by_key(|signature| signature.time_ns);
        for signature in arrived {
            let events = self.detector.as_mut().map_or_else(Vec::new, |d| d.push(signature));
            for event in events {
                report(self.lines.line(&event));
            }
        }
    }
}

fn report(line: Option<String>) {
    if let Some(line) = line {
        eprintln!("pleach: {line}");
    }
}
