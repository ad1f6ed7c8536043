//! Puts recordings in order of time, each after the other.

use super::VectorSet;

/// Sorts recordings by time, and moves those in time that overlap with one before: their clocks may be of different
/// machines, and a program that ran twice at once did not change phase with each burst. Recordings that do not overlap
/// keep their times.
pub fn in_turn(sets: &mut [VectorSet]) {
    sets.sort_by_key(|set| times(set).map(|(first, _)| first));
    let mut last_end = None;
    for set in sets {
        let Some((first, last)) = times(set) else { continue };
        let start = last_end.map_or(first, |end: u64| first.max(end.saturating_add(1)));
        delay(set, start - first);
        last_end = Some(last.saturating_add(start - first));
    }
}

/// When its first and its last burst began; `None` without bursts.
fn times(set: &VectorSet) -> Option<(u64, u64)> {
    let all = set.bursts.iter().map(|burst| burst.time_ns);
    Some((all.clone().min()?, all.max()?))
}

fn delay(set: &mut VectorSet, by: u64) {
    let bursts = set.bursts.iter_mut().map(|burst| &mut burst.time_ns);
    let samples = set.samples.iter_mut().map(|sample| &mut sample.time_ns);
    let segments = set.coverage.iter_mut().flat_map(|module| &mut module.segments);
    let first_hits = segments.filter_map(|segment| segment.first_hit_ns.as_mut());
    for time in bursts.chain(samples).chain(first_hits) {
        *time = time.saturating_add(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::coverage::{ModuleCoverage, SegmentCoverage, SegmentState};
    use crate::vector::{Burst, EndReason, Engine, ModuleId};

    fn burst(time_ns: u64) -> Burst {
        Burst {
            process: 0,
            thread: 1,
            time_ns,
            engine: Engine::RunAhead,
            start: None,
            branches: Vec::new(),
            values: Vec::new(),
            end: None,
            end_reason: EndReason::Budget,
            instructions: 1,
            count: 1,
            proved: false,
            system_call: None,
            hardware: None,
            timing: None,
        }
    }

    fn set(times: &[u64]) -> VectorSet {
        let segment = SegmentCoverage {
            start: 0,
            end: 4,
            state: SegmentState::Hit,
            hits: 1,
            at_most: None,
            first_hit_ns: Some(times[0]),
        };
        VectorSet {
            bursts: times.iter().map(|&time| burst(time)).collect(),
            coverage: vec![ModuleCoverage {
                module: ModuleId(0),
                processes: 1,
                traps: 1,
                completed: true,
                failures: Vec::new(),
                segments: vec![segment],
            }],
            ..VectorSet::default()
        }
    }

    #[test]
    fn what_overlaps_follows_and_the_rest_stays() {
        let mut sets = [
            set(&[500, 900]),
            set(&[10, 40]),
            VectorSet::default(),
            set(&[30, 70, 20]),
        ];
        in_turn(&mut sets);
        let times: Vec<Vec<u64>> = sets
            .iter()
            .map(|set| set.bursts.iter().map(|burst| burst.time_ns).collect())
            .collect();
        assert_eq!(times, [vec![], vec![10, 40], vec![51, 91, 41], vec![500, 900]]);
        assert_eq!(sets[2].coverage[0].segments[0].first_hit_ns, Some(51));
    }
}
