//! A_k: the second, lossless level (§3.4).

use super::sampler::Message;

/// An associative table of k messages. Equal events' weights are added up; the event that was met longest ago makes
/// room for a new one, and a counter that is full is given out.
#[derive(Clone, Debug)]
pub struct Accumulator<E> {
    /// Most recently met last.
    entries: Vec<Message<E>>,
    capacity: usize,
    limit: u64,
}

impl<E: Eq> Accumulator<E> {
    /// With k entries, whose weights are given out when they reach `limit`.
    pub fn new(capacity: usize, limit: u64) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            capacity,
            limit,
        }
    }

    /// Takes a message; gives out another that must leave.
    pub fn merge(&mut self, mut message: Message<E>) -> Option<Message<E>> {
        let met = self.entries.iter().rposition(|entry| entry.event == message.event);
        if let Some(met) = met {
            message.weight = message.weight.saturating_add(self.entries.remove(met).weight);
        }
        if message.weight >= self.limit || self.capacity == 0 {
            return Some(message);
        }
        let leaving = (self.entries.len() == self.capacity).then(|| self.entries.remove(0));
        self.entries.push(message);
        leaving
    }

    /// Gives out any message.
    pub fn take(&mut self) -> Option<Message<E>> {
        self.entries.pop()
    }
}
