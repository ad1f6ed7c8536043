//! Which occurrences count: those at distances from their bursts' beginnings at which each is seen with the same
//! probability.
//!
//! Bursts begin at random moments. An occurrence is seen at a distance of d taken branches if a burst began d branches
//! before it and did not end in between: at a system call, for instance, or at its length. So an occurrence soon after
//! a system call is seen at short distances only, and one after a long computation at all of them; counting all would
//! count the second more often. Within a window of distances at which all occurrences are seen, each counts alike.
//!
//! The window begins late enough for a history, and ends where the distances of some path cease to be spread evenly.

use super::occurrences::{Occurrence, PathTable};
use rustc_hash::FxHashMap;

/// Taken branches of history that each counted occurrence should have.
const WANTED: u32 = 16;
/// A shorter history is accepted if the longer one loses more than this part of the occurrences.
const MAX_LOSS: f64 = 0.2;
/// Bursts from which on distances of a path are compared.
const MIN_BURSTS: u64 = 8;
/// Standard deviations at which two halves of a window differ.
const SIGNIFICANT: f64 = 2.5;
/// Steps by which paths are told apart here.
const STEPS: usize = 4;

/// Distances that count, the end exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub from: u32,
    pub to: u32,
}

impl Window {
    pub fn contains(&self, occurrence: &Occurrence) -> bool {
        (self.from..self.to).contains(&occurrence.distance)
    }
}

/// All distances, for branch records, which end at their events.
pub(super) fn whole(_: &[Occurrence]) -> Window {
    Window { from: 0, to: u32::MAX }
}

/// Chooses the window of an event's occurrences, which are in the order of their bursts.
pub(super) fn choose(occurrences: &[Occurrence], paths: &PathTable) -> Window {
    let end = occurrences.iter().map(|one| one.distance + 1).max().unwrap_or(1);
    let classes = classes(occurrences, |one| (one.place, paths.end_of(one.path, STEPS)));
    let is_even = |window| !classes.iter().any(|class| is_uneven(class, window));
    let mut from = WANTED;
    loop {
        let mut window = Window {
            from,
            to: end.max(from + 1),
        };
        // A window that is as short as its history cannot be told to be even.
        while window.to - from > from.max(2) && !is_even(window) {
            window.to = from + ((window.to - from) / 2).max(from.max(2));
        }
        if from == 1 || is_even(window) && keeps_most(occurrences, from) {
            return window;
        }
        from /= 2;
    }
}

/// Whether occurrences are as dense from a distance on as nearer to the bursts' beginnings.
fn keeps_most(occurrences: &[Occurrence], from: u32) -> bool {
    let weight = |from: u32, to: u32| -> f64 {
        let within = occurrences.iter().filter(|one| (from..to).contains(&one.distance));
        within.map(|one| one.weight).sum()
    };
    let (before, after) = (
        weight(1, from) / f64::from(from - 1),
        weight(from, 2 * from) / f64::from(from),
    );
    after >= before * (1.0 - MAX_LOSS) && after > 0.0
}

/// Occurrences by place and end of path.
fn classes<K: Eq + std::hash::Hash>(
    occurrences: &[Occurrence],
    class: impl Fn(&Occurrence) -> K,
) -> Vec<Vec<&Occurrence>> {
    let mut classes: FxHashMap<K, Vec<&Occurrence>> = FxHashMap::default();
    for one in occurrences {
        classes.entry(class(one)).or_default().push(one);
    }
    classes.into_values().collect()
}

/// Whether the occurrences of a class lie rather in one half of a window. A burst is one observation.
fn is_uneven(class: &[&Occurrence], window: Window) -> bool {
    let middle = window.from + (window.to - window.from) / 2;
    // Both halves have the same length.
    let to = middle + (middle - window.from);
    let (mut bursts, mut sum, mut squares) = (0, 0.0, 0.0);
    let mut at = 0;
    while let Some(first) = class.get(at) {
        let of_burst = class[at..].iter().take_while(|one| one.burst == first.burst);
        let (mut count, mut difference, mut any) = (0, 0.0, false);
        for one in of_burst {
            count += 1;
            if (window.from..to).contains(&one.distance) {
                any = true;
                difference += if one.distance < middle { one.weight } else { -one.weight };
            }
        }
        at += count;
        bursts += u64::from(any);
        sum += difference;
        squares += difference * difference;
    }
    bursts >= MIN_BURSTS && sum.abs() > SIGNIFICANT * squares.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::history::Passed;
    use crate::events::occurrences::PathId;
    use pleach_annotate::id::BlockIndex;
    use pleach_annotate::map::InlineInstanceIndex;
    use pleach_collector::vector::ModuleId;

    /// A small generator of random numbers, for repeatable tests.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % bound
        }
    }

    fn occurrence(burst: u32, distance: u32, path: u32) -> Occurrence {
        Occurrence {
            place: 0,
            path: PathId(path),
            distance,
            burst,
            weight: 1.0,
        }
    }

    fn table(count: u32) -> PathTable {
        let mut table = PathTable::default();
        for block in 0..count {
            table.intern(&[Passed {
                module: ModuleId(0),
                instance: InlineInstanceIndex(0),
                block: BlockIndex(block),
            }]);
        }
        table
    }

    /// Bursts of 1000 branches that begin anywhere in a run of events, each after a gap of one of two lengths.
    fn simulate(gaps: [u32; 2], share: u64, bursts: u32) -> Vec<Occurrence> {
        let mut random = Random(7);
        let mut events = Vec::new();
        let mut time = 0u64;
        for _ in 0..4000 {
            let path = u32::from(random.below(100) < share);
            time += u64::from(gaps[path as usize]);
            events.push((time, path));
        }
        let mut seen = Vec::new();
        for burst in 0..bursts {
            let start = random.below(time - 2000);
            let next = events.partition_point(|(at, _)| *at <= start);
            let (at, path) = events[next];
            let distance = (at - start) as u32;
            if distance <= 1000 {
                seen.push(occurrence(burst, distance, path));
            }
        }
        seen
    }

    #[test]
    fn shares_do_not_depend_on_what_ran_before() {
        let paths = table(2);
        let share = |seen: &[Occurrence], window: Window| {
            let counted: Vec<_> = seen.iter().filter(|one| window.contains(one)).collect();
            let of = counted.iter().filter(|one| one.path == PathId(1)).count();
            (of as f64 / counted.len() as f64, counted.len())
        };
        // Every fifth event comes after a gap ten times as long.
        let seen = simulate([90, 900], 20, 3000);
        let (all, _) = share(&seen, whole(&seen));
        assert!((0.6..0.8).contains(&all), "what counting all would give: {all}");
        let window = choose(&seen, &paths);
        assert_eq!(window.from, 16);
        let (part, counted) = share(&seen, window);
        assert!((0.14..0.26).contains(&part), "{part} in {window:?} of {counted}");
        // Gaps that do not differ cost nothing.
        let seen = simulate([900, 900], 20, 1000);
        let window = choose(&seen, &paths);
        let (part, counted) = share(&seen, window);
        assert!(
            counted > 700 && (0.15..0.25).contains(&part),
            "{part} of {counted} in {window:?}"
        );
    }

    #[test]
    fn events_in_quick_succession_keep_a_short_history() {
        let seen = simulate([5, 5], 50, 500);
        let window = choose(&seen, &table(2));
        assert!(window.from < 5, "{window:?}");
        assert_eq!(choose(&[], &table(0)).to, 2);
    }
}
