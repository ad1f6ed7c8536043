//! H\[P_r\]_n + A_k on the windows of bursts, with an r that grows when the size limit is reached.

use super::accumulator::Accumulator;
use super::event::word;
use super::random::Generator;
use super::sampler::{Message, Periodic, Split, Start};
use crate::vector::{Branch, Burst, CodeAddress, Compressed, Epoch, Window};
use std::collections::HashMap;
use std::num::NonZeroU64;
use xxhash_rust::xxh3::xxh3_128;

/// N, the taken branches of a window: the depth of common branch-record hardware.
///
/// Analyses count the blocks of a window, the transitions between them, and the call that a return belongs to. The last
/// two need preceding branches. These are known across one cut (see [`Window::lead`]) but not across two, so windows
/// must not be short. Longer windows are fewer in the same space, and their branches are correlated. On the streams of
/// eight programs, with the same space, the overlap of edge profiles with the whole is .01 higher for windows of 16
/// than of 32, and .02 higher for windows of 32 than of 64.
pub const WINDOW: usize = 32;
/// n = 2^`STRATA_BITS` = 2048, as in the paper's experiments (§5.4).
const STRATA_BITS: u32 = 11;
/// k, as in the paper's (§5.6).
const ENTRIES: usize = 16;

/// Compresses bursts.
///
/// A burst is cut into windows of N taken branches, of which the last has the remainder: each branch, and the code
/// after it, belongs to one window. Windows are the sampled events. The compressor begins with r = 1, which loses only
/// the order. [`Compressor::coarsen`] doubles r and samples the kept windows again, so that the result is as if the new
/// r had been used from the start.
///
/// Substreams are selected by a window's first branch, not by all of its branches: most long windows occur once, and
/// hashing all branches would assign them at random, which is no better than R_r. With the first branch, each branch
/// begins about the right number of windows. On the streams of eight programs, the overlap of edge profiles is .00 to
/// .02 higher than with the hash of all branches.
#[derive(Debug)]
pub struct Compressor {
    split: Split<Periodic>,
    /// The second level: equal messages in a row cost one look-up in what follows.
    second: Accumulator<Interned>,
    /// The messages by epoch and window.
    kept: HashMap<(u32, u128), Kept>,
    bytes: u64,
    epochs: Vec<Epoch>,
    generator: Generator,
    buffer: Vec<u8>,
}

/// A window, identified by a hash of 128 bits: collisions are not expected.
#[derive(Debug)]
struct Interned {
    key: u128,
    stratum: usize,
    window: Window,
}

impl PartialEq for Interned {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Interned {}

#[derive(Debug)]
struct Kept {
    window: Window,
    /// Number of windows kept before it, so that results do not depend on the order of a hash table.
    order: usize,
    stratum: usize,
}

impl Compressor {
    /// A compressor with r = 1. The generator provides random hash keys and phases.
    pub fn new(mut generator: Generator) -> Self {
        let split = Split::new(STRATA_BITS, &mut generator, |g| {
            Periodic::new(NonZeroU64::MIN, Start::Stationary, g)
        });
        Self {
            split,
            second: Accumulator::new(ENTRIES, u64::MAX),
            kept: HashMap::new(),
            bytes: 0,
            epochs: vec![Epoch {
                rate: 1,
                ..Epoch::default()
            }],
            generator,
            buffer: Vec::new(),
        }
    }

    /// r.
    pub fn rate(&self) -> NonZeroU64 {
        self.split.strata()[0].rate()
    }

    /// Approximate size of all windows in a file in bytes, before compression by zstd.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a burst.
    pub fn push(&mut self, burst: &Burst) {
        self.count(burst);
        for first in (0..burst.branches.len()).step_by(WINDOW) {
            self.window(burst, &View::from_burst(burst, first));
        }
    }

    fn count(&mut self, burst: &Burst) {
        let Some(epoch) = self.epochs.last_mut() else { return };
        let count = burst.count;
        let of_all = |each: usize| count * each as u64;
        if epoch.bursts == 0 {
            (epoch.first_ns, epoch.last_ns) = (burst.time_ns, burst.time_ns);
        }
        epoch.first_ns = epoch.first_ns.min(burst.time_ns);
        epoch.last_ns = epoch.last_ns.max(burst.time_ns);
        epoch.bursts += count;
        epoch.empty_bursts += if burst.branches.is_empty() { count } else { 0 };
        epoch.branches += of_all(burst.branches.len());
        epoch.windows += of_all(burst.branches.len().div_ceil(WINDOW));
        epoch.instructions += count * u64::from(burst.instructions);
        *epoch.engines.entry(burst.engine).or_default() += count;
        *epoch.end_reasons.entry(burst.end_reason).or_default() += count;
    }

    fn window(&mut self, burst: &Burst, view: &View) {
        let stratum = self.split.index(&view.head());
        let messages = self.split.strata_mut()[stratum].advance(burst.count);
        if messages == 0 {
            return;
        }
        self.buffer.clear();
        self.buffer.push(burst.proved.into());
        view.write(&mut self.buffer);
        let key = xxh3_128(&self.buffer);
        let window = Window {
            epoch: self.epochs.len() as u32 - 1,
            process: burst.process,
            lead: view.lead,
            branches: view.branches.to_vec(),
            end: view.end,
            last: view.last,
            weight: 0,
            proved: burst.proved,
        };
        let event = Interned { key, stratum, window };
        if let Some(leaving) = self.second.merge(Message {
            event,
            weight: messages * self.rate().get(),
        }) {
            self.keep(leaving);
        }
    }

    fn keep(&mut self, message: Message<Interned>) {
        let Interned { key, stratum, window } = message.event;
        let (order, bytes) = (self.kept.len(), &mut self.bytes);
        let kept = self.kept.entry((window.epoch, key)).or_insert_with(|| {
            *bytes += size(&window);
            Kept { window, order, stratum }
        });
        kept.window.weight += message.weight;
    }

    /// Doubles r, and begins an epoch. About half of the kept windows are dropped.
    ///
    /// Each substream's messages are sampled by a P_2 that becomes part of the substream's sampler.
    pub fn coarsen(&mut self) {
        while let Some(message) = self.second.take() {
            self.keep(message);
        }
        let two = NonZeroU64::MIN.saturating_add(1);
        let rate = self.rate().get();
        let mut thinning: Vec<Periodic> = (0..self.split.strata().len())
            .map(|_| Periodic::new(two, Start::Stationary, &mut self.generator))
            .collect();
        let mut all: Vec<((u32, u128), Kept)> = self.kept.drain().collect();
        all.sort_unstable_by_key(|((epoch, _), kept)| (*epoch, kept.order));
        self.bytes = 0;
        for (key, mut kept) in all {
            kept.window.weight = 2 * rate * thinning[kept.stratum].advance(kept.window.weight / rate);
            if kept.window.weight > 0 {
                kept.order = self.kept.len();
                self.bytes += size(&kept.window);
                self.kept.insert(key, kept);
            }
        }
        for (stratum, thinning) in self.split.strata_mut().iter_mut().zip(&thinning) {
            stratum.double(thinning);
        }
        let rate = 2 * rate;
        match self.epochs.last_mut() {
            Some(epoch) if epoch.bursts == 0 => epoch.rate = rate,
            _ => self.epochs.push(Epoch {
                rate,
                ..Epoch::default()
            }),
        }
    }

    /// The kept windows. The remainders in counters are dropped: because their phases are random, the weights remain
    /// unbiased.
    pub fn finish(&mut self) -> Compressed {
        while let Some(message) = self.second.take() {
            self.keep(message);
        }
        let mut kept: Vec<&Kept> = self.kept.values().collect();
        kept.sort_unstable_by_key(|kept| (kept.window.epoch, kept.order));
        Compressed {
            rate: self.rate().get(),
            strata: self.split.strata().len() as u32,
            branches: WINDOW as u32,
            epochs: self.epochs.clone(),
            windows: kept.into_iter().map(|kept| kept.window.clone()).collect(),
        }
    }
}

/// A window of a burst.
struct View<'a> {
    lead: Option<Branch>,
    branches: &'a [Branch],
    end: Option<CodeAddress>,
    last: bool,
}

impl<'a> View<'a> {
    fn from_burst(burst: &'a Burst, first: usize) -> Self {
        let after = (first + WINDOW).min(burst.branches.len());
        let next = burst.branches.get(after).map(|next| next.from);
        Self {
            lead: first.checked_sub(1).map(|lead| burst.branches[lead]),
            branches: &burst.branches[first..after],
            end: next.or(burst.end),
            last: next.is_none(),
        }
    }

    /// The words that select its substream: its first branch.
    fn head(&self) -> (u64, u64) {
        self.branches
            .first()
            .map_or((0, 0), |branch| (word(branch.from), word(branch.to)))
    }

    /// Writes everything that distinguishes windows.
    fn write(&self, to: &mut Vec<u8>) {
        to.extend([self.last, self.lead.is_some(), self.end.is_some()].map(u8::from));
        for branch in self.lead.iter().chain(self.branches) {
            to.extend(word(branch.from).to_le_bytes());
            to.extend(word(branch.to).to_le_bytes());
        }
        if let Some(end) = self.end {
            to.extend(word(end).to_le_bytes());
        }
    }
}

/// Approximate size of a window in a file in bytes: each address is a difference from the previous one.
fn size(window: &Window) -> u64 {
    let branches = window.lead.iter().chain(&window.branches);
    12 + size_of_addresses(branches.flat_map(|branch| [branch.from, branch.to]).chain(window.end))
}

/// Approximate size of a burst in a file in bytes.
pub fn size_of_burst(burst: &Burst) -> u64 {
    let branches = burst.branches.iter().flat_map(|branch| [branch.from, branch.to]);
    24 + size_of_addresses(burst.start.into_iter().chain(branches).chain(burst.end))
}

fn size_of_addresses(addresses: impl Iterator<Item = CodeAddress>) -> u64 {
    let (mut bytes, mut before) = (0, 0u64);
    for address in addresses {
        let difference = word(address).abs_diff(before) << 1;
        bytes += 1 + u64::from(64 - difference.leading_zeros()).div_ceil(7).clamp(1, 10);
        before = word(address);
    }
    bytes
}
