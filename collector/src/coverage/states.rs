//! The state of each region of a module, from what processes noted in its plan.

use super::Unseen;
use super::plan::{ModulePlan, Outcome, PlannedRegion};
use crate::vector::ModuleId;
use crate::vector::coverage::{Failure, ModuleCoverage, Region, RegionState};
use pleach_wire::coverage::poisson_upper;
use std::sync::atomic::Ordering::Relaxed;

/// What processes noted about a module.
#[derive(Clone, Debug, Default)]
struct Noted {
    /// By place: number of hits.
    hits: Vec<u32>,
    /// By place: whether its breakpoint was there all the time.
    whole: Vec<bool>,
    /// No code was left midway in any process.
    completed: bool,
}

/// The coverage of a module; `None` if no process had it. `end`: the recording's clock, see [`Plan::watched`].
///
/// [`Plan::watched`]: pleach_wire::coverage::Plan::watched
pub(super) fn of_plan(plan: &ModulePlan, module: ModuleId, unseen: Unseen, end: u64) -> Option<ModuleCoverage> {
    let Outcome::Ready {
        regions, is_program, ..
    } = &plan.outcome
    else {
        return None;
    };
    let shared = plan.plan()?;
    let head = shared.head();
    let processes = head.begun.load(Relaxed);
    if processes == 0 {
        return None;
    }
    let failures: Vec<(Failure, u64)> = Failure::ALL
        .into_iter()
        .map(|failure| (failure, head.failures[failure as usize].load(Relaxed)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let is_observed = failures.is_empty() && !unseen.modules && (*is_program || !unseen.libraries);
    let count = shared.places().len();
    let noted = Noted {
        hits: shared.hits().iter().map(|hits| hits.load(Relaxed)).collect(),
        whole: (0..count)
            .map(|place| is_observed && !shared.has_lapsed(place))
            .collect(),
        completed: head.completed.load(Relaxed) == processes,
    };
    let states = states(regions, &noted);
    let is_counted = is_observed && head.with_own_breakpoints.load(Relaxed) == 0;
    let most = |place: usize| {
        let hits = *noted.hits.get(place)?;
        at_most(shared.hits_again(place)?, hits, shared.watched(place, end), end)
    };
    let bounds = if is_counted {
        upper_ends(regions, &states, noted.completed, most)
    } else {
        vec![None; regions.len()]
    };
    let regions = regions
        .iter()
        .zip(states)
        .zip(bounds)
        .map(|((region, state), at_most)| Region {
            start: region.start,
            end: region.end,
            state,
            hits: region
                .place
                .and_then(|place| noted.hits.get(place as usize).copied())
                .unwrap_or(0),
            at_most,
        });
    Some(ModuleCoverage {
        module,
        processes,
        traps: head.traps.load(Relaxed),
        completed: noted.completed,
        failures,
        regions: regions.collect(),
    })
}

/// The regions that each one dominates immediately, and all regions, dominators first.
fn dominated(regions: &[PlannedRegion]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let count = regions.len();
    let dominator = |at: usize| regions[at].dominator.map(|d| d as usize).filter(|&d| d < count);
    let mut children = vec![Vec::new(); count];
    let mut order: Vec<usize> = Vec::with_capacity(count);
    for at in 0..count {
        match dominator(at) {
            Some(above) => children[above].push(at),
            None => order.push(at),
        }
    }
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        order.extend(&children[at]);
        next += 1;
    }
    (children, order)
}

/// The state of each region.
fn states(regions: &[PlannedRegion], noted: &Noted) -> Vec<RegionState> {
    let (children, order) = dominated(regions);
    let mut states = vec![RegionState::Unknown; regions.len()];
    for &at in order.iter().rev() {
        let place = regions[at].place.map(|place| place as usize);
        let hits = place
            .and_then(|place| noted.hits.get(place))
            .is_some_and(|&hits| hits > 0);
        let below = || children[at].iter().map(|&child| states[child]);
        states[at] = if hits {
            RegionState::Hit
        } else if below().any(|state| state >= RegionState::Implied) {
            RegionState::Implied
        } else {
            let is_absent = match place {
                Some(place) => noted.whole.get(place).copied().unwrap_or(false),
                // Whatever follows it shows that it ran, unless it was left midway.
                None => {
                    noted.completed && regions[at].is_shown && below().all(|state| state == RegionState::NotExecuted)
                }
            };
            if is_absent {
                RegionState::NotExecuted
            } else {
                RegionState::Unknown
            }
        };
    }
    states
}

/// Executions in a recording of `end` nanoseconds, at most, of a place that was armed again for `watched` of them and then
/// hit `again` times, of `hits`: the upper end of a two-sided 90 % interval, if executions are spread over the recording.
/// `None`: it was not armed again.
fn at_most(again: u32, hits: u32, watched: u64, end: u64) -> Option<u64> {
    let first = u64::from(hits.saturating_sub(again));
    (watched > 0).then(|| first + (poisson_upper(again) * end as f64 / watched as f64).ceil() as u64)
}

/// How often each region was executed at most. `most`: the same of a place that was armed again.
fn upper_ends(
    regions: &[PlannedRegion],
    states: &[RegionState],
    completed: bool,
    most: impl Fn(usize) -> Option<u64>,
) -> Vec<Option<u64>> {
    let (children, order) = dominated(regions);
    let mut ends = vec![None; regions.len()];
    for &at in order.iter().rev() {
        ends[at] = match (states[at], regions[at].place) {
            (RegionState::NotExecuted, _) => Some(0),
            (RegionState::Hit | RegionState::Unknown, Some(place)) => most(place as usize),
            // All that follows it is reached through it only.
            (RegionState::Implied, None) if completed && regions[at].is_shown => {
                let below = children[at].iter().map(|&child| ends[child]);
                below.sum::<Option<u64>>()
            }
            _ => None,
        };
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use RegionState::{Hit, Implied, NotExecuted, Unknown};

    fn region(place: Option<u32>, dominator: Option<u32>) -> PlannedRegion {
        PlannedRegion {
            start: 0,
            end: 1,
            place,
            is_shown: place.is_none(),
            dominator,
        }
    }

    /// A branch to two regions.
    fn branch() -> [PlannedRegion; 3] {
        [region(None, None), region(Some(0), Some(0)), region(Some(1), Some(0))]
    }

    fn noted(hits: [u32; 2], whole: [bool; 2], completed: bool) -> Noted {
        Noted {
            hits: hits.to_vec(),
            whole: whole.to_vec(),
            completed,
        }
    }

    #[test]
    fn a_hit_implies_its_dominators() {
        let noted = noted([3, 0], [true, true], false);
        assert_eq!(states(&branch(), &noted), [Implied, Hit, NotExecuted]);
    }

    #[test]
    fn without_hits_a_branch_was_not_executed_if_nothing_was_left_midway() {
        assert_eq!(states(&branch(), &noted([0; 2], [true; 2], true)), [NotExecuted; 3]);
        assert_eq!(
            states(&branch(), &noted([0; 2], [true; 2], false)),
            [Unknown, NotExecuted, NotExecuted]
        );
    }

    #[test]
    fn a_region_that_nothing_shows_is_unknown() {
        let mut regions = branch();
        regions[0].is_shown = false;
        assert_eq!(states(&regions, &noted([0; 2], [true; 2], true))[0], Unknown);
    }

    #[test]
    fn what_is_seen_rarely_is_bounded() {
        // 3.0 and 4.7 are the upper ends for no further hit, and for one.
        assert_eq!(at_most(0, 1, 100, 100), Some(4));
        assert_eq!(at_most(1, 2, 50, 100), Some(11));
        assert_eq!(at_most(0, 1, 0, 100), None);
        // It had lapsed, and was not hit.
        assert_eq!(at_most(0, 0, 50, 100), Some(6));
        let most = |place: usize| [Some(7), None][place];
        let ends = |states: [RegionState; 3], completed| upper_ends(&branch(), &states, completed, most);
        assert_eq!(ends([Implied, Hit, NotExecuted], true), [Some(7), Some(7), Some(0)]);
        assert_eq!(ends([Implied, Hit, NotExecuted], false), [None, Some(7), Some(0)]);
        assert_eq!(ends([Implied, Hit, Hit], true), [None, Some(7), None]);
        assert_eq!(ends([Unknown, Unknown, NotExecuted], true), [None, Some(7), Some(0)]);
    }

    #[test]
    fn breakpoints_that_were_removed_tell_nothing() {
        assert_eq!(
            states(&branch(), &noted([0; 2], [true, false], true)),
            [Unknown, NotExecuted, Unknown]
        );
        assert_eq!(
            states(&branch(), &noted([0, 1], [false; 2], true)),
            [Implied, Unknown, Hit]
        );
    }
}
