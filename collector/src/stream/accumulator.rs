//! A_k: the second, lossless level (§3.4).

use super::sampler::Message;

/// An associative table of k messages. Weights of equal events are added. A new event evicts the least recently used
/// one; a message whose weight reaches the limit is returned, too.
#[derive(Clone, Debug)]
pub struct Accumulator<E> {
    /// Most recently used last.
    entries: Vec<Message<E>>,
    capacity: usize,
    limit: u64,
}

impl<E: Eq> Accumulator<E> {
    /// A table of k entries (`capacity`). A message is returned when its weight reaches `limit`.
    pub fn new(capacity: usize, limit: u64) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            capacity,
            limit,
        }
    }

    /// Adds a message. Returns the message that leaves the table, if any.
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

    /// Removes any message.
    pub fn take(&mut self) -> Option<Message<E>> {
        self.entries.pop()
    }
}
