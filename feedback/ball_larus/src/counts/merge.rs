//! Sums the counts of several files.

use super::{Counts, UnitCounts};
use std::collections::btree_map::Entry;

/// The sum of several files' counts, unit by unit. Sums saturate.
pub fn merge(inputs: impl IntoIterator<Item = Counts>) -> Counts {
    let mut merged = Counts::default();
    for input in inputs {
        merged.problems.extend(input.problems);
        for (id, (unit, counts)) in input.units {
            match merged.units.entry(id) {
                Entry::Vacant(place) => drop(place.insert((unit, counts))),
                Entry::Occupied(mut known) => add(&mut known.get_mut().1, counts),
            }
        }
    }
    merged
}

fn add(sum: &mut UnitCounts, counts: UnitCounts) {
    if sum.functions.len() < counts.functions.len() {
        sum.functions.resize(counts.functions.len(), Vec::new());
    }
    for (sum, counts) in sum.functions.iter_mut().zip(counts.functions) {
        sum.extend(counts);
        sum.sort_unstable();
        sum.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
    }
}
