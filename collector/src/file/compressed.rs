//! Writes and reads compressed bursts, which follow all other bursts in the file.

use super::write::Writer;
use super::{Decoded, Reader};
use crate::vector::{Branch, Compressed, EndReason, Engine, Epoch, Window};
use std::collections::BTreeMap;

/// Bits of a window's first byte.
const LEAD: u8 = 1;
const END: u8 = 2;
const LAST: u8 = 4;
const PROVED: u8 = 8;

impl Writer {
    pub(super) fn compressed(&mut self, compressed: &Compressed) {
        self.number(compressed.rate);
        self.number(compressed.strata.into());
        self.number(compressed.branches.into());
        self.number(compressed.epochs.len() as u64);
        for epoch in &compressed.epochs {
            self.epoch(epoch);
        }
        self.number(compressed.windows.len() as u64);
        for window in &compressed.windows {
            self.window(window, compressed.rate);
        }
    }

    fn epoch(&mut self, epoch: &Epoch) {
        self.number(epoch.rate);
        self.number(epoch.first_ns);
        self.difference(epoch.first_ns, epoch.last_ns);
        for number in [
            epoch.bursts,
            epoch.empty_bursts,
            epoch.branches,
            epoch.windows,
            epoch.instructions,
        ] {
            self.number(number);
        }
        self.number(epoch.engines.len() as u64);
        for (engine, bursts) in &epoch.engines {
            self.number(*engine as u64);
            self.number(*bursts);
        }
        self.number(epoch.end_reasons.len() as u64);
        for (reason, bursts) in &epoch.end_reasons {
            self.number(*reason as u64);
            self.number(*bursts);
        }
    }

    fn window(&mut self, window: &Window, rate: u64) {
        let bits = [
            (LEAD, window.lead.is_some()),
            (END, window.end.is_some()),
            (LAST, window.last),
            (PROVED, window.proved),
        ];
        let set = bits.into_iter().filter(|(_, set)| *set);
        self.number(set.map(|(bit, _)| u64::from(bit)).sum());
        self.number(window.epoch.into());
        self.number(window.process.into());
        self.number(window.weight / rate.max(1));
        self.number(window.branches.len() as u64);
        for branch in window.lead.iter().chain(&window.branches) {
            self.address(branch.from);
            self.address(branch.to);
        }
        if let Some(end) = window.end {
            self.address(end);
        }
    }
}

impl Reader<'_> {
    /// `processes`: number of processes in the set.
    pub(super) fn compressed(&mut self, processes: usize) -> Decoded<Compressed> {
        let (rate, strata, branches) = (self.number()?, self.number32()?, self.number32()?);
        let epochs = self.count(10)?;
        let epochs: Vec<Epoch> = (0..epochs).map(|_| self.epoch()).collect::<Decoded<_>>()?;
        let windows = self.count(5)?;
        let mut list = Vec::with_capacity(windows);
        for _ in 0..windows {
            let window = self.window(rate)?;
            if window.epoch as usize >= epochs.len() || window.process as usize >= processes {
                return Err(self.error("a window is of no epoch or of no process"));
            }
            list.push(window);
        }
        Ok(Compressed {
            rate,
            strata,
            branches,
            epochs,
            windows: list,
        })
    }

    fn epoch(&mut self) -> Decoded<Epoch> {
        let (rate, first_ns) = (self.number()?, self.number()?);
        Ok(Epoch {
            rate,
            first_ns,
            last_ns: self.difference(first_ns)?,
            bursts: self.number()?,
            empty_bursts: self.number()?,
            branches: self.number()?,
            windows: self.number()?,
            instructions: self.number()?,
            engines: self.table(Engine::from_u8)?,
            end_reasons: self.table(EndReason::from_u8)?,
        })
    }

    fn table<K: Ord>(&mut self, known: impl Fn(u8) -> Option<K>) -> Decoded<BTreeMap<K, u64>> {
        let mut table = BTreeMap::new();
        for _ in 0..self.count(2)? {
            let key = known(self.byte()?).ok_or_else(|| self.error("an engine or an end reason is unknown"))?;
            table.insert(key, self.number()?);
        }
        Ok(table)
    }

    fn window(&mut self, rate: u64) -> Decoded<Window> {
        let bits = self.byte()?;
        let (epoch, process, messages) = (self.number32()?, self.number32()?, self.number()?);
        let weight = messages
            .checked_mul(rate)
            .ok_or_else(|| self.error("a weight is too large"))?;
        let count = self.count(4)?;
        let lead = if bits & LEAD != 0 { Some(self.branch()?) } else { None };
        let branches = (0..count).map(|_| self.branch()).collect::<Decoded<_>>()?;
        let end = if bits & END != 0 { Some(self.address()?) } else { None };
        Ok(Window {
            epoch,
            process,
            lead,
            branches,
            end,
            last: bits & LAST != 0,
            weight,
            proved: self.tells_proof() && bits & PROVED != 0,
        })
    }

    pub(super) fn branch(&mut self) -> Decoded<Branch> {
        Ok(Branch {
            from: self.address()?,
            to: self.address()?,
        })
    }
}
