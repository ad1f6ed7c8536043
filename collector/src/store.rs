//! Where bursts go while a command is recorded: all of them as long as there is room, samples of windows afterwards.

use crate::stream::{Compressor, Generator, size_of_burst};
use crate::vector::{Burst, Clock, VectorSet};

/// So many times the size of the file may be kept, unpacked. Loops pack well: of an unpacked branch's 5 bytes a fourth is left
/// at most, and a hundredth in long bursts.
const UNPACKED: u64 = 8;
/// Nor is less than this worth saving memory for.
const LEAST_UNPACKED: u64 = 16 << 20;

/// A measurement is stored soon after its burst: no more of other threads' come between.
const LAST: usize = 1024;

/// Bursts, or what is left of them.
///
/// With a limit, memory is bounded: bursts and windows take at most some 50 bytes for each byte of the limit, or 100 MB.
#[derive(Debug)]
pub(crate) struct Store {
    /// Bytes that a file of all this may take.
    limit: Option<u64>,
    /// Bytes that may be kept before it is seen how well they pack.
    allowed: u64,
    bursts: Vec<Burst>,
    bytes: u64,
    compressor: Option<Compressor>,
    seed: u64,
}

impl Store {
    /// Keeps everything if there is no limit. The seed makes what is chosen repeatable.
    pub(crate) fn new(limit: Option<u64>, seed: u64) -> Self {
        Self {
            limit,
            allowed: limit.unwrap_or(u64::MAX),
            bursts: Vec::new(),
            bytes: 0,
            compressor: None,
            seed,
        }
    }

    /// Takes a burst.
    pub(crate) fn push(&mut self, burst: Burst) {
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
            self.make_room();
        }
    }

    /// Adds how long branches took where a thread's last burst was, if that burst is still there as it was.
    pub(crate) fn clock(&mut self, process: u32, thread: u32, time_ns: u64, clock: Clock) {
        let is_threads = |burst: &&mut Burst| (burst.process, burst.thread) == (process, thread);
        let last = self.bursts.iter_mut().rev().take(LAST).find(is_threads);
        if let Some(burst) = last.filter(|burst| burst.time_ns == time_ns) {
            burst.clock = Some(clock);
        }
    }

    /// Packs what there is, to see whether more is allowed; if not, gives up some of it.
    fn make_room(&mut self) {
        let Some(limit) = self.limit else { return };
        let most = limit.saturating_mul(UNPACKED).max(LEAST_UNPACKED);
        if self.allowed < most && self.packed() <= limit / 10 * 9 {
            // Growing by no more than half, because what comes may pack less well.
            self.allowed = (self.bytes + self.bytes / 2).min(most);
            return;
        }
        while self.give_up() {
            if self.bytes <= self.allowed / 2 && self.packed() <= limit / 2 {
                return;
            }
        }
    }

    /// Bytes of a file of what there is, without the names of files and processes.
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

    /// One step down: whole bursts become windows, windows become fewer. False if there is nothing left.
    fn give_up(&mut self) -> bool {
        match &mut self.compressor {
            Some(compressor) if compressor.bytes() == 0 => return false,
            Some(compressor) => compressor.coarsen(),
            None => {
                let mut compressor = Compressor::new(Generator::new(self.seed));
                // One after the other: both do not fit.
                for burst in std::mem::take(&mut self.bursts) {
                    compressor.push(&burst);
                }
                self.compressor = Some(compressor);
            }
        }
        self.bytes = self.compressor.as_ref().map_or(0, Compressor::bytes);
        true
    }

    /// Puts everything into the set. If there is a limit, the set's file is not longer, unless what names files and processes is.
    pub(crate) fn finish(mut self, set: &mut VectorSet) {
        loop {
            set.bursts.append(&mut self.bursts);
            set.compressed = self.compressor.as_mut().map(Compressor::finish);
            let limit = self.limit.unwrap_or(u64::MAX);
            if self.limit.is_none() || set.to_bytes().len() as u64 <= limit {
                return;
            }
            self.bursts = std::mem::take(&mut set.bursts);
            if !self.give_up() {
                return;
            }
        }
    }
}
