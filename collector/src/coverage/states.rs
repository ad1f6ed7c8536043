//! The state of each region of a module, from what processes noted in its plan.

use super::Unseen;
use super::plan::{ModulePlan, Outcome, PlannedRegion};
use crate::vector::ModuleId;
use crate::vector::coverage::{Failure, ModuleCoverage, Region, RegionState};
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

/// The coverage of a module; `None` if no process had it.
pub(super) fn of_plan(plan: &ModulePlan, module: ModuleId, unseen: Unseen) -> Option<ModuleCoverage> {
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
    let exposures = shared.exposures();
    let states = states(regions, &noted);
    let regions = regions.iter().zip(states).map(|(region, state)| {
        let place = region.place.map(|place| place as usize);
        Region {
            start: region.start,
            end: region.end,
            state,
            hits: place.and_then(|place| noted.hits.get(place).copied()).unwrap_or(0),
            exposure_ns: place
                .and_then(|place| exposures.get(place))
                .map_or(0, |ns| ns.load(Relaxed)),
        }
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

/// The state of each region. A dominator precedes what it dominates, or not: loops are resolved by order of the tree.
fn states(regions: &[PlannedRegion], noted: &Noted) -> Vec<RegionState> {
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
    // Dominators first.
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        order.extend(&children[at]);
        next += 1;
    }
    let mut states = vec![RegionState::Unknown; count];
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
