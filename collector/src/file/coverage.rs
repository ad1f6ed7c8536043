//! Coverage by breakpoints in the vector file, after everything else:
//!
//! ```text
//! modules   n, n × module
//! module    position, processes, traps, completed
//!           failures, failures × (reason: 1 byte, processes)
//!           segments, segments × segment
//! segment   start relative to the end of the one before, length, state + 8 × (has counts) + 16 × (has a time),
//!           hits, upper bound + 1 or 0,
//!           time of the first hit relative to that of the segment before that has one
//! ```
//! Hits and upper bound are there only if the segment has counts; times are since version 9. Version 5 had 4 × (has
//! hits), hits, exposure.

use super::write::Writer;
use super::{Decoded, Reader};
use crate::vector::ModuleId;
use crate::vector::coverage::{Failure, ModuleCoverage, SegmentCoverage, SegmentState};

const HAS_EXPOSURE: u64 = 4;
const HAS_COUNTS: u64 = 8;
const HAS_TIME: u64 = 16;

impl Writer {
    pub(super) fn coverage(&mut self, coverage: &[ModuleCoverage]) {
        self.number(coverage.len() as u64);
        for module in coverage {
            self.number(module.module.0.into());
            self.number(module.processes);
            self.number(module.traps);
            self.number(module.completed.into());
            self.number(module.failures.len() as u64);
            for (failure, count) in &module.failures {
                self.number(*failure as u64);
                self.number(*count);
            }
            self.number(module.segments.len() as u64);
            let (mut end, mut time) = (0, 0);
            for segment in &module.segments {
                self.difference(end, segment.start);
                self.number(segment.end.saturating_sub(segment.start));
                end = segment.end;
                let has_counts = segment.hits > 0 || segment.at_most.is_some();
                let flag = |has: bool, bit: u64| if has { bit } else { 0 };
                let has_time = segment.first_hit_ns.is_some();
                self.number(segment.state as u64 | flag(has_counts, HAS_COUNTS) | flag(has_time, HAS_TIME));
                if has_counts {
                    self.number(segment.hits.into());
                    self.number(segment.at_most.map_or(0, |most| most.saturating_add(1)));
                }
                if let Some(first) = segment.first_hit_ns {
                    self.difference(time, first);
                    time = first;
                }
            }
        }
    }
}

impl Reader<'_> {
    pub(super) fn coverage(&mut self, modules: usize) -> Decoded<Vec<ModuleCoverage>> {
        let count = self.count(6)?;
        let mut coverage = Vec::with_capacity(count);
        for _ in 0..count {
            let module = self.number32()?;
            if module as usize >= modules {
                return Err(self.error("coverage is of no module"));
            }
            let (processes, traps, completed) = (self.number()?, self.number()?, self.flag()?);
            let mut failures = Vec::new();
            for _ in 0..self.count(2)? {
                let failure = usize::try_from(self.number()?).ok();
                let failure = failure.and_then(|number| Failure::ALL.get(number));
                let failure = *failure.ok_or_else(|| self.error("coverage failed for an unknown reason"))?;
                failures.push((failure, self.number()?));
            }
            let count = self.count(3)?;
            let mut segments = Vec::with_capacity(count);
            let (mut end, mut time) = (0, 0);
            for _ in 0..count {
                let segment = self.segment(end, time)?;
                end = segment.end;
                time = segment.first_hit_ns.unwrap_or(time);
                segments.push(segment);
            }
            coverage.push(ModuleCoverage {
                module: ModuleId(module),
                processes,
                traps,
                completed,
                failures,
                segments,
            });
        }
        Ok(coverage)
    }

    /// `before`: end of the segment before; `time`: the last time of a first hit.
    fn segment(&mut self, before: u64, time: u64) -> Decoded<SegmentCoverage> {
        let (start, length, state) = (self.difference(before)?, self.number()?, self.number()?);
        let end = start.checked_add(length);
        let flags = state & (HAS_EXPOSURE | HAS_COUNTS);
        let has_time = state & HAS_TIME != 0;
        let known = u8::try_from(state & !(flags | HAS_TIME)).ok();
        let known = known.and_then(SegmentState::from_u8);
        let (hits, at_most) = match flags {
            0 => (0, None),
            HAS_COUNTS => (self.number32()?, self.number()?.checked_sub(1)),
            HAS_EXPOSURE => {
                let hits = self.number32()?;
                self.number()?;
                (hits, None)
            }
            _ => return Err(self.error("a segment has counts of two kinds")),
        };
        let first_hit_ns = if has_time { Some(self.difference(time)?) } else { None };
        Ok(SegmentCoverage {
            start,
            end: end.ok_or_else(|| self.error("a segment has no end"))?,
            state: known.ok_or_else(|| self.error("a segment has an unknown state"))?,
            hits,
            at_most,
            first_hit_ns,
        })
    }
}
