//! Places in recorded sequences, found by the blocks before them.

use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A place in a recorded sequence at which the next step is known.
#[derive(Clone, PartialEq, Debug)]
struct Place {
    /// Index of the sequence.
    sequence: u32,
    /// Position of the place's block in it.
    position: u32,
    /// Number of blocks up to the place with which a trail must agree.
    required: usize,
    continuation: Continuation,
}

/// A recorded step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Continuation {
    /// The block that followed.
    pub next: BlockIndex,
    /// Share of the function's paths.
    pub share: f64,
    /// Number of independent observations.
    pub effective: f64,
}

/// The places of one block.
#[derive(Clone, PartialEq, Debug, Default)]
struct Places {
    /// Sorted by the blocks before, most recent first.
    sorted: Vec<Place>,
    /// For each place but the last, the number of blocks that it and the one after it have in common.
    common: Vec<usize>,
    /// The least number of blocks that any of them requires.
    required: usize,
}

/// The places of all blocks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Contexts(BTreeMap<BlockIndex, Places>);

/// Number of blocks at the ends of both that are equal.
fn agreement(a: &[BlockIndex], b: &[BlockIndex]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

impl Contexts {
    /// Adds the place after the first `position + 1` steps of a sequence. `required`: the number of blocks up to the
    /// place with which a trail must agree.
    pub fn add(
        &mut self,
        sequence: usize,
        block: BlockIndex,
        position: usize,
        required: usize,
        continuation: Continuation,
    ) {
        self.0.entry(block).or_default().sorted.push(Place {
            sequence: sequence as u32,
            position: position as u32,
            required: required.max(1),
            continuation,
        });
    }

    /// Sorts the places, after the last of them was added. `steps`: a sequence by its index.
    pub fn sort<'a>(&mut self, steps: impl Fn(usize) -> &'a [BlockIndex]) {
        let past = |place: &Place| &steps(place.sequence as usize)[..=place.position as usize];
        for places in self.0.values_mut() {
            let sorted = &mut places.sorted;
            sorted.sort_by(|a, b| past(a).iter().rev().cmp(past(b).iter().rev()));
            places.common = sorted.windows(2).map(|w| agreement(past(&w[0]), past(&w[1]))).collect();
            places.required = sorted.iter().map(|place| place.required).min().unwrap_or(0);
        }
    }

    /// Visits what followed the places whose past agrees with `trail`, by decreasing number of blocks that agree, until
    /// `visit` breaks. `steps`: a sequence by its index.
    pub fn agreeing<'a>(
        &self,
        trail: &[BlockIndex],
        steps: impl Fn(usize) -> &'a [BlockIndex],
        mut visit: impl FnMut(usize, &Continuation) -> ControlFlow<()>,
    ) {
        let past = |place: &Place| &steps(place.sequence as usize)[..=place.position as usize];
        let Some(places) = trail.last().and_then(|last| self.0.get(last)) else {
            return;
        };
        let (sorted, common) = (&places.sorted, &places.common);
        // What agrees most lies next to where the trail would be inserted; the agreement decreases from there.
        let at = sorted.partition_point(|place| past(place).iter().rev().lt(trail.iter().rev()));
        let length = |place: Option<&Place>| place.map_or(0, |place| agreement(past(place), trail));
        let (mut before, mut after) = (at, at);
        let mut length_before = length(at.checked_sub(1).and_then(|before| sorted.get(before)));
        let mut length_after = length(sorted.get(at));
        loop {
            let length = length_before.max(length_after);
            if length < places.required {
                return;
            }
            let index = if length_before == length {
                before -= 1;
                length_before = match before.checked_sub(1) {
                    Some(next) => length.min(common[next]),
                    None => 0,
                };
                before
            } else {
                after += 1;
                length_after = common.get(after - 1).map_or(0, |&common| length.min(common));
                after - 1
            };
            let place = &sorted[index];
            if length >= place.required && visit(length, &place.continuation).is_break() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block() -> impl Strategy<Value = BlockIndex> {
        (0u32..4).prop_map(BlockIndex)
    }

    proptest! {
        /// The index finds what a scan of all places finds.
        #[test]
        fn agreeing_places_are_those_of_a_scan(
            sequences in prop::collection::vec(prop::collection::vec(block(), 1..9), 0..20),
            required in prop::collection::vec(0usize..4, 20),
            trail in prop::collection::vec(block(), 0..9),
        ) {
            let mut contexts = Contexts::default();
            let mut expected = Vec::new();
            for (sequence, steps) in sequences.iter().enumerate() {
                for (position, pair) in steps.windows(2).enumerate() {
                    let continuation = Continuation { next: pair[1], share: 1.0, effective: sequence as f64 };
                    contexts.add(sequence, pair[0], position, required[sequence], continuation);
                    let length = agreement(&steps[..=position], &trail);
                    if length >= required[sequence].max(1) {
                        expected.push((length, sequence, pair[1]));
                    }
                }
            }
            let steps = |sequence: usize| sequences[sequence].as_slice();
            contexts.sort(steps);
            let mut found = Vec::new();
            contexts.agreeing(&trail, steps, |length, step| {
                found.push((length, step.effective as usize, step.next));
                ControlFlow::Continue(())
            });
            prop_assert!(found.is_sorted_by_key(|&(length, ..)| std::cmp::Reverse(length)));
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
