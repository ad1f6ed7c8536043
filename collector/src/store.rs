//! The store of bursts during a recording: complete bursts up to a limit, samples of windows beyond it.

use crate::convergence::Convergence;
use crate::stream::{Compressor, Generator, size_of_burst};
use crate::vector::{Burst, BurstTiming, VectorSet};
use crate::watch::Watcher;

/// Maximum size of unpacked bursts, as a multiple of the file's limit. Packing reduces the 5 bytes of an unpacked
/// branch to at most a fourth, and to a hundredth in long bursts of loops.
const MAX_UNPACKED_RATIO: u64 = 8;
/// Minimum of unpacked bytes before anything is compressed.
const MIN_UNPACKED: u64 = 16 << 20;

/// Maximum of other threads' bursts between a burst and its time measurement.
const MAX_PENDING: usize = 1024;

/// The bursts, or a weighted sample of their windows.
///
/// With a limit, memory is bounded: bursts and windows take at most some 50 bytes for each byte of the limit, or 100
/// MB.
#[derive(Debug)]
pub(crate) struct Store {
    /// Maximum size of the file, in bytes.
    limit: Option<u64>,
    /// Unpacked bytes at which packing is tried next.
    allowed: u64,
    bursts: Vec<Burst>,
    bytes: u64,
    compressor: Option<Compressor>,
    seed: u64,
    /// Convergence of the runs, if it is measured.
    pub(crate) convergence: Option<Convergence>,
    /// What sees each burst that is added.
    pub(crate) watcher: Option<Watcher>,
}

impl Store {
    /// An empty store. Without a limit it keeps everything. The seed makes sampling deterministic.
    pub(crate) fn new(limit: Option<u64>, seed: u64) -> Self {
        Self {
            limit,
            allowed: limit.unwrap_or(u64::MAX),
            bursts: Vec::new(),
            bytes: 0,
            compressor: None,
            seed,
            convergence: None,
            watcher: None,
        }
    }

    /// Adds a burst.
    pub(crate) fn push(&mut self, burst: Burst) {
        if let Some(convergence) = &mut self.convergence {
            convergence.add(&burst);
        }
        if let Some(watcher) = &self.watcher {
            watcher.burst(&burst);
        }
        match &mut self.compressor {
            Some(compressor) => {
                compressor.push(&burst);
                self.bytes = compressor.bytes();
            }
            None => {
                self.bytes += size_of_burst(&burst);
                self.bursts.push(burst);
            }
        }
        if self.bytes > self.allowed {
            self.enforce_limit();
        }
    }

    /// Adds the time measurement of a thread's last burst, if the burst is still stored.
    pub(crate) fn timing(&mut self, process: u32, thread: u32, time_ns: u64, timing: BurstTiming) {
        let is_threads = |burst: &&mut Burst| (burst.process, burst.thread) == (process, thread);
        let last = self.bursts.iter_mut().rev().take(MAX_PENDING).find(is_threads);
        if let Some(burst) = last.filter(|burst| burst.time_ns == time_ns) {
            burst.timing = Some(timing);
        }
    }

    /// Packs the bursts to measure their size, and reduces them if it exceeds the limit.
    fn enforce_limit(&mut self) {
        let Some(limit) = self.limit else { return };
        let max_bytes = limit.saturating_mul(MAX_UNPACKED_RATIO).max(MIN_UNPACKED);
        if self.allowed < max_bytes && self.packed() <= limit / 10 * 9 {
            // Grows by at most half, because later bursts may pack less well.
            self.allowed = (self.bytes + self.bytes / 2).min(max_bytes);
            return;
        }
        while self.reduce() {
            if self.bytes <= self.allowed / 2 && self.packed() <= limit / 2 {
                return;
            }
        }
    }

    /// Size of the file, without the names of files and processes, in bytes.
    fn packed(&mut self) -> u64 {
        let mut set = VectorSet {
            bursts: std::mem::take(&mut self.bursts),
            compressed: self.compressor.as_mut().map(Compressor::finish),
            ..VectorSet::default()
        };
        let packed = set.to_bytes().len() as u64;
        self.bursts = std::mem::take(&mut set.bursts);
        packed
    }

    /// Reduces the size by one step: bursts become windows, or fewer windows. False if no further step is possible.
    fn reduce(&mut self) -> bool {
        match &mut self.compressor {
            Some(compressor) if compressor.bytes() == 0 => return false,
            Some(compressor) => compressor.coarsen(),
            None => {
                let mut compressor = Compressor::new(Generator::new(self.seed));
                // Bursts are dropped one by one, because both representations together would not fit in memory.
                for burst in std::mem::take(&mut self.bursts) {
                    compressor.push(&burst);
                }
                self.compressor = Some(compressor);
            }
        }
        self.bytes = self.compressor.as_ref().map_or(0, Compressor::bytes);
        true
    }

    /// Moves everything into the set. With a limit, the set's file is not longer, apart from the names of files and
    /// processes.
    pub(crate) fn finish(mut self, set: &mut VectorSet) {
        loop {
            set.bursts.append(&mut self.bursts);
            set.compressed = self.compressor.as_mut().map(Compressor::finish);
            let limit = self.limit.unwrap_or(u64::MAX);
            if self.limit.is_none() || set.to_bytes().len() as u64 <= limit {
                return;
            }
            self.bursts = std::mem::take(&mut set.bursts);
            if !self.reduce() {
                return;
            }
        }
    }
}
