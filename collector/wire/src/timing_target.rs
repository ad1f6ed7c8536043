//! Chooses the branch target whose executions time a burst: one that recurs at a steady pace.
//!
//! Ticks are spread over CPU time, so slow code gets more samples per branch than fast code. The time per branch at a
//! burst tells how many more. To measure it, a hardware breakpoint at a *timing target*, which the burst passed several
//! times, counts how often the program passes it after the burst; the clock is read at the start and at the end.
//!
//! Choosing a timing target is for signal handlers: it allocates nothing, never panics, and takes some microseconds.

/// A timing target recurs less often than this in a burst.
const MAX_PASSES: u32 = 5;
/// Maximum of passes of a timing target between two readings of the clock.
const MAX_TIMED: u32 = 8;
/// Taken branches between two readings of the clock, unless [`MAX_TIMED`] limits them. The cost of a few traps varies
/// by a microsecond, so the time between must be longer.
const TIMED_BRANCHES: f32 = 1200.0;
/// Minimum of branch targets in which a timing target is sought.
pub const MIN_BRANCHES: usize = 200;
/// Minimum of taken branches between two passes. With fewer, the breakpoint would take far longer than the program.
const MIN_DISTANCE: f32 = 100.0;
/// Targets drawn at random.
const DRAWS: u32 = 64;
/// Maximum of targets whose distances are examined.
const CLOSE_LOOKS: u32 = 6;
/// Counters of targets, by a hash of the address.
const COUNTERS: usize = 4096;

/// A branch target that recurs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimingTarget {
    /// Its run-time address.
    pub address: u64,
    /// How often the examined part of the burst passed it: 2 to 4 times.
    pub passes: u32,
    /// Taken branches from one pass to the next, on average.
    pub distance: f32,
}

impl TimingTarget {
    /// Passes from one reading of the clock to the next: more than in the burst, so that the measurement starts after
    /// the burst.
    pub fn timed_passes(&self) -> u32 {
        let passes = (TIMED_BRANCHES / self.distance) as u32 + 1;
        passes.min(MAX_TIMED).max(self.passes + 1)
    }
}

/// Chooses a timing target among a burst's branch targets, oldest first; `random` is uniform in 0..1.
///
/// The timing target is the rarest of a few targets that recur evenly from the start of the burst to its end: no gap is
/// more than twice the average. If all targets recur too often, the second half of the burst is examined, then the last
/// quarter, and so on. `None` if no target qualifies.
pub fn choose(targets: &[u64], mut random: impl FnMut() -> f64) -> Option<TimingTarget> {
    let mut part = targets;
    while part.len() >= MIN_BRANCHES {
        let found = choose_in(part, &mut random);
        if found.is_some() {
            return found;
        }
        part = part.get(part.len() / 2..)?;
    }
    None
}

fn choose_in(targets: &[u64], mut random: impl FnMut() -> f64) -> Option<TimingTarget> {
    // Collisions make targets look too frequent, so some are skipped.
    let mut counters = [0u8; COUNTERS];
    for target in targets {
        if let Some(counter) = counters.get_mut(slot(*target)) {
            *counter = counter.saturating_add(1);
        }
    }
    let mut best: Option<TimingTarget> = None;
    let mut looks = 0;
    for _ in 0..DRAWS {
        let Some(target) = targets.get((random() * targets.len() as f64) as usize) else {
            continue;
        };
        let count = counters.get(slot(*target)).copied().unwrap_or(0);
        if !(2..MAX_PASSES).contains(&u32::from(count)) {
            continue;
        }
        best = match (best, look_closely(targets, *target)) {
            (Some(before), Some(now)) if now.distance > before.distance => Some(now),
            (before, now) => before.or(now),
        };
        looks += 1;
        if looks == CLOSE_LOOKS {
            break;
        }
    }
    best
}

fn slot(target: u64) -> usize {
    (target.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % COUNTERS
}

/// The target as a timing target, if it is passed few times and evenly.
fn look_closely(targets: &[u64], address: u64) -> Option<TimingTarget> {
    let (mut passes, mut first, mut last) = (0u32, 0usize, 0usize);
    let (mut shortest, mut longest) = (usize::MAX, 0);
    for (at, _) in targets.iter().enumerate().filter(|(_, target)| **target == address) {
        if passes == 0 {
            first = at;
        } else {
            shortest = shortest.min(at - last);
            longest = longest.max(at - last);
        }
        last = at;
        passes += 1;
    }
    if !(2..MAX_PASSES).contains(&passes) {
        return None;
    }
    let distance = (last - first) as f32 / (passes - 1) as f32;
    let is_far = distance >= MIN_DISTANCE && distance <= targets.len() as f32 / 2.0;
    let max_gap = 2.0 * distance;
    let is_even = shortest as f32 >= distance / 2.0
        && [longest, first, targets.len() - last]
            .iter()
            .all(|gap| *gap as f32 <= max_gap);
    (is_far && is_even).then_some(TimingTarget {
        address,
        passes,
        distance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform, repeatable.
    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed | 1;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// An outer loop around an inner one, as taken branches have them.
    fn nested(length: usize, outer: usize) -> Vec<u64> {
        let target = |at: usize| if at % outer == outer / 3 { 0x40_2000 } else { 0x40_1000 };
        (0..length).map(target).collect()
    }

    #[test]
    fn the_outer_loop_is_the_timing_target() {
        for (outer, passes) in [(250, 4), (333, 3), (490, 2)] {
            // One in 250 draws hits: most bursts of two targets alone give none.
            let found: Vec<_> = (0..200)
                .filter_map(|seed| choose(&nested(1000, outer), random(seed)))
                .collect();
            assert!(found.len() > 10, "{outer}: {}", found.len());
            for timing in &found {
                assert_eq!((timing.address, timing.distance), (0x40_2000, outer as f32));
            }
            // Bad luck with all of the burst leaves its half.
            assert_eq!(found.iter().map(|timing| timing.passes).max(), Some(passes));
        }
        // The first half passed it too often.
        let found = (0..200).find_map(|seed| choose(&nested(1000, 180), random(seed)));
        assert!(
            found.is_some_and(|timing| timing.distance == 180.0 && timing.passes < 4),
            "{found:?}"
        );
        // Too close, and too far apart.
        for outer in [2, 60, 800] {
            let found = (0..200).find_map(|seed| choose(&nested(1000, outer), random(seed)));
            assert_eq!(found, None, "{outer}");
        }
    }

    #[test]
    fn near_targets_are_passed_more_often() {
        let timed = |passes, distance| {
            let address = 0x40_0000;
            TimingTarget {
                address,
                passes,
                distance,
            }
            .timed_passes()
        };
        assert_eq!(
            [(4, 240.0), (2, 490.0), (3, 200.0), (4, 100.0)].map(|(p, d)| timed(p, d)),
            [6, 3, 7, 8]
        );
    }

    #[test]
    fn what_comes_in_clusters_is_not_a_timing_target() {
        let at = |places: &[usize]| {
            let mut targets: Vec<u64> = (0..1000).map(|at| 0x50_0000 + at * 8).collect();
            places.iter().for_each(|place| targets[*place] = 0x40_0000);
            (0..500).find_map(|seed| choose(&targets, random(seed)))
        };
        let timing = at(&[100, 450, 820]).expect("passed three times, evenly");
        assert_eq!((timing.passes, timing.distance), (3, 360.0));
        for places in [&[100, 110, 820][..], &[10, 120], &[700, 730], &[400], &[900]] {
            assert_eq!(at(places), None, "{places:?}");
        }
    }

    #[test]
    fn the_longest_distance_wins() {
        // Two timing targets, 300 and 450 apart; all other targets come once.
        let target = |at: u64| match (at % 450, at % 300) {
            (20, _) => 0x40_0000,
            (_, 10) => 0x60_0000,
            _ => 0x50_0000 + at * 8,
        };
        let targets: Vec<u64> = (0..900).map(target).collect();
        let found: Vec<_> = (0..2000).filter_map(|seed| choose(&targets, random(seed))).collect();
        let far = found.iter().filter(|timing| timing.distance == 450.0).count();
        assert!(far > found.len() / 4 && far < found.len(), "{far} of {}", found.len());
    }

    #[test]
    fn short_bursts_and_bad_luck() {
        assert_eq!(choose(&[], random(1)), None);
        assert_eq!(choose(&nested(199, 100), random(1)), None);
        assert_eq!(choose(&nested(1000, 250), || 1.0), None);
        assert_eq!(choose(&nested(1000, 250), || f64::NAN), None);
    }
}
