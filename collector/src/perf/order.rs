//! Sorts records by time: perf reads the buffers of several processors one after the other.
//!
//! A round reads all buffers once. A record is not older than the records of the round before the previous one. At the
//! end of a round, all records up to the last time of the previous round are therefore complete.

/// Buffers items until no older ones can follow.
#[derive(Debug)]
pub(super) struct Order<T> {
    buffered: Vec<(u64, T)>,
    /// Last time of the previous round.
    before: u64,
    latest: u64,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self {
            buffered: Vec::new(),
            before: 0,
            latest: 0,
        }
    }
}

impl<T> Order<T> {
    pub(super) fn add(&mut self, time: u64, item: T) {
        self.latest = self.latest.max(time);
        self.buffered.push((time, item));
    }

    /// Ends a round.
    pub(super) fn round(&mut self, each: &mut impl FnMut(T)) {
        let limit = self.before;
        self.before = self.latest;
        self.release(limit, each);
    }

    /// Passes on all remaining items.
    pub(super) fn finish(&mut self, each: &mut impl FnMut(T)) {
        self.release(u64::MAX, each);
    }

    fn release(&mut self, limit: u64, each: &mut impl FnMut(T)) {
        // Stable: items of the same time keep their order.
        self.buffered.sort_by_key(|(time, _)| *time);
        let ready = self.buffered.partition_point(|(time, _)| *time <= limit);
        self.buffered.drain(..ready).for_each(|(_, item)| each(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_held_back_for_the_next() {
        let mut order = Order::default();
        let mut seen = Vec::new();
        for round in [&[5, 9][..], &[4, 7, 12], &[10, 13]] {
            round.iter().for_each(|time| order.add(*time, *time));
            order.round(&mut |time| seen.push(time));
        }
        assert_eq!(seen, [4, 5, 7, 9, 10, 12]);
        order.finish(&mut |time| seen.push(time));
        assert_eq!(seen.last(), Some(&13));
    }
}
