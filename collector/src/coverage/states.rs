//! The state of each segment of a module, from what processes noted in its plan.

use super::Unseen;
use super::plan::{ModulePlan, Outcome, PlannedSegment};
use crate::vector::ModuleId;
use crate::vector::coverage::{Failure, ModuleCoverage, SegmentCoverage, SegmentState};
use pleach_wire::coverage::poisson_upper;
use std::sync::atomic::Ordering::Relaxed;

/// What processes noted about a module.
#[derive(Clone, Debug, Default)]
struct Noted {
    /// By site: number of hits.
    hits: Vec<u32>,
    /// By site: whether its breakpoint was there all the time.
    whole: Vec<bool>,
    /// Every process ran to its end, so that no activation was cut off.
    completed: bool,
}

/// The coverage of a module; `None` if no process had it. `end`: the recording's clock, see [`Plan::watched`].
///
/// [`Plan::watched`]: pleach_wire::coverage::Plan::watched
pub(super) fn of_plan(plan: &ModulePlan, module: ModuleId, unseen: Unseen, end: u64) -> Option<ModuleCoverage> {
    let Outcome::Ready {
        segments, is_program, ..
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
    let is_seen = !unseen.modules && !unseen.in_valgrind;
    let is_observed = failures.is_empty() && is_seen && (*is_program || !unseen.libraries);
    let count = shared.sites().len();
    let noted = Noted {
        hits: shared.hits().iter().map(|hits| hits.load(Relaxed)).collect(),
        whole: (0..count)
            .map(|site| is_observed && !shared.was_removed_unhit(site))
            .collect(),
        completed: head.completed.load(Relaxed) == processes,
    };
    let states = states(segments, &noted);
    let is_counted = is_observed && head.with_own_breakpoints.load(Relaxed) == 0;
    let most = |site: usize| {
        let hits = *noted.hits.get(site)?;
        at_most(shared.hits_while_rearmed(site)?, hits, shared.watched(site, end), end)
    };
    let bounds = if is_counted {
        upper_ends(segments, &states, noted.completed, most)
    } else {
        vec![None; segments.len()]
    };
    let first_hit = |site: u32| {
        let at = shared.first_hits().get(site as usize)?.load(Relaxed);
        (at > 0).then_some(at)
    };
    let segments = segments
        .iter()
        .zip(states)
        .zip(bounds)
        .map(|((segment, state), at_most)| SegmentCoverage {
            start: segment.start,
            end: segment.end,
            state,
            hits: segment
                .site
                .and_then(|site| noted.hits.get(site as usize).copied())
                .unwrap_or(0),
            at_most,
            first_hit_ns: segment.site.and_then(first_hit),
        });
    Some(ModuleCoverage {
        module,
        processes,
        traps: head.traps.load(Relaxed),
        completed: noted.completed,
        failures,
        segments: segments.collect(),
    })
}

/// The segments that each one dominates immediately, and all segments, dominators first.
fn dominated(segments: &[PlannedSegment]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let count = segments.len();
    let dominator = |at: usize| segments[at].dominator.map(|d| d as usize).filter(|&d| d < count);
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

/// The state of each segment.
fn states(segments: &[PlannedSegment], noted: &Noted) -> Vec<SegmentState> {
    let (children, order) = dominated(segments);
    let mut states = vec![SegmentState::Unknown; segments.len()];
    for &at in order.iter().rev() {
        let site = segments[at].site.map(|site| site as usize);
        let hits = site.and_then(|site| noted.hits.get(site)).is_some_and(|&hits| hits > 0);
        let below = || children[at].iter().map(|&child| states[child]);
        states[at] = if hits {
            SegmentState::Hit
        } else if below().any(|state| state >= SegmentState::Implied) {
            SegmentState::Implied
        } else {
            let is_absent = match site {
                Some(site) => noted.whole.get(site).copied().unwrap_or(false),
                // Whatever follows it shows that it ran, unless it was left midway.
                None => {
                    noted.completed && segments[at].is_shown && below().all(|state| state == SegmentState::NotExecuted)
                }
            };
            if is_absent {
                SegmentState::NotExecuted
            } else {
                SegmentState::Unknown
            }
        };
    }
    states
}

/// Executions in a recording of `end` nanoseconds, at most, of a site that was armed again for `watched` of them and
/// then hit `again` times, of `hits`: the upper bound of a two-sided 90 % interval, if executions are spread over the
/// recording. `None`: it was not armed again.
fn at_most(again: u32, hits: u32, watched: u64, end: u64) -> Option<u64> {
    let first = u64::from(hits.saturating_sub(again));
    (watched > 0).then(|| first + (poisson_upper(again) * end as f64 / watched as f64).ceil() as u64)
}

/// How often each segment was executed at most. `most`: the same of a site that was armed again.
fn upper_ends(
    segments: &[PlannedSegment],
    states: &[SegmentState],
    completed: bool,
    most: impl Fn(usize) -> Option<u64>,
) -> Vec<Option<u64>> {
    let (children, order) = dominated(segments);
    let mut ends = vec![None; segments.len()];
    for &at in order.iter().rev() {
        ends[at] = match (states[at], segments[at].site) {
            (SegmentState::NotExecuted, _) => Some(0),
            (SegmentState::Hit | SegmentState::Unknown, Some(site)) => most(site as usize),
            // All that follows it is reached through it only.
            (SegmentState::Implied, None) if completed && segments[at].is_shown => {
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
    use SegmentState::{Hit, Implied, NotExecuted, Unknown};

    fn segment(site: Option<u32>, dominator: Option<u32>) -> PlannedSegment {
        PlannedSegment {
            start: 0,
            end: 1,
            site,
            is_shown: site.is_none(),
            dominator,
        }
    }

    /// A branch to two segments.
    fn branch() -> [PlannedSegment; 3] {
        [
            segment(None, None),
            segment(Some(0), Some(0)),
            segment(Some(1), Some(0)),
        ]
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
    fn a_segment_that_nothing_shows_is_unknown() {
        let mut segments = branch();
        segments[0].is_shown = false;
        assert_eq!(states(&segments, &noted([0; 2], [true; 2], true))[0], Unknown);
    }

    #[test]
    fn what_is_seen_rarely_is_bounded() {
        // 3.0 and 4.7 are the upper bounds for no further hit, and for one.
        assert_eq!(at_most(0, 1, 100, 100), Some(4));
        assert_eq!(at_most(1, 2, 50, 100), Some(11));
        assert_eq!(at_most(0, 1, 0, 100), None);
        // It was removed without a hit at first.
        assert_eq!(at_most(0, 0, 50, 100), Some(6));
        let most = |site: usize| [Some(7), None][site];
        let ends = |states: [SegmentState; 3], completed| upper_ends(&branch(), &states, completed, most);
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
