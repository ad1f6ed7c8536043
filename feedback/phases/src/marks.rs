//! Times at which code was first executed → changes of phase that they reveal.
//!
//! Breakpoints tell when code was executed first. That alone is no change of phase: rare code is executed first at some
//! time, too. So a [`Mark`], a gap between two bursts in which some code was executed first, only proposes a change, and
//! bursts decide: those after it are compared with those before it, as intervals are. Because bursts did not choose the
//! place, few of them suffice: a phase shows that is too short to fill an interval.
//!
//! Where such a phase ends, often nothing is new. Its end is where bursts are best divided (least squares), and is
//! tested, too, with a probability divided by the number of places that it was chosen from.

use crate::batch::Batch;
use crate::compare::{Comparison, Risen, Sample};
use crate::signature::Signature;

/// Bursts after a mark that are compared with those before it. The probability of a false change is shared by as many
/// windows as those of the detector. With fewer bursts, no difference is certain.
const WINDOWS: [usize; 4] = [16, 32, 64, 128];
/// Most bursts before a mark, and after it in which the phase may end.
const MAX_BURSTS: usize = 256;
/// Most marks: those at which most code was executed first.
const MAX_MARKS: usize = 512;

/// A gap between two bursts in which code was executed first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The position of the first burst after it.
    pub burst: usize,
    /// When the first of that code was executed, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// Breakpoints that were hit.
    pub hits: u64,
}

/// A change that is proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The position of the first burst after it.
    pub burst: usize,
    /// When it was, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
}

/// The marks between bursts. `times`: of bursts, in order; `first_hits`: of breakpoints, in order.
pub fn marks(times: &[u64], first_hits: &[u64]) -> Vec<Mark> {
    let mut found = Vec::<Mark>::new();
    for &time_ns in first_hits {
        let burst = times.partition_point(|&of| of < time_ns);
        match found.last_mut() {
            Some(mark) if mark.burst == burst => mark.hits += 1,
            _ => found.push(Mark {
                burst,
                time_ns,
                hits: 1,
            }),
        }
    }
    // Before the first burst and after the last one there is nothing to compare.
    found.retain(|mark| (1..times.len()).contains(&mark.burst));
    if found.len() > MAX_MARKS {
        found.sort_by_key(|mark| (std::cmp::Reverse(mark.hits), mark.burst));
        found.truncate(MAX_MARKS);
        found.sort_by_key(|mark| mark.burst);
    }
    found
}

/// The changes at marks, and the ends of phases that begin there, in order. `bursts`: in order.
pub fn changes(bursts: &[&Signature], marks: &[Mark]) -> Vec<Cut> {
    let mut cuts = Vec::<Cut>::new();
    for mark in marks {
        let last = cuts.last().map_or(0, |cut| cut.burst);
        if mark.burst <= last {
            continue;
        }
        let before = &bursts[last.max(mark.burst.saturating_sub(MAX_BURSTS))..mark.burst];
        let after = &bursts[mark.burst..];
        if !differs(before, after, 1) {
            continue;
        }
        cuts.push(Cut {
            burst: mark.burst,
            time_ns: mark.time_ns,
        });
        let possible = after.len().min(MAX_BURSTS);
        let length = length_of_phase(before, &after[..possible]);
        let (phase, later) = after.split_at(length);
        // A phase that lasts as far as was looked has no end there.
        if length < possible
            && differs(phase, later, possible)
            && let Some(first) = later.first()
        {
            cuts.push(Cut {
                burst: mark.burst + length,
                time_ns: first.time_ns,
            });
        }
    }
    cuts
}

fn batch(bursts: &[&Signature]) -> Batch {
    Batch::new(bursts.iter().map(|&burst| burst.clone()))
}

/// Whether bursts differ from those before them, at a place that was chosen from `places`.
fn differs(before: &[&Signature], after: &[&Signature], places: usize) -> bool {
    let earlier = batch(before);
    WINDOWS.iter().any(|&window| {
        let later = batch(&after[..window.min(after.len())]);
        let comparison = Comparison::new(&Sample::new([&earlier]), &Sample::new([&later]));
        comparison.is_significant_among(places)
    })
}

/// How many bursts after a mark the phase lasts that begins there: up to where the share of time in its traces returns to
/// that of the bursts before it. `after` is not empty.
fn length_of_phase(before: &[&Signature], after: &[&Signature]) -> usize {
    let (earlier, later) = (batch(before), batch(&after[..WINDOWS[0].min(after.len())]));
    let risen = Risen::of_samples(&Sample::new([&earlier]), &Sample::new([&later]));
    let share = before.iter().map(|burst| risen.share_of(burst)).sum::<f64>() / before.len().max(1) as f64;
    let (mut best, mut length, mut sum) = (f64::NEG_INFINITY, after.len(), 0.0);
    for (position, burst) in after.iter().enumerate() {
        sum += risen.share_of(burst) - share;
        let gain = sum.max(0.0).powi(2) / (position + 1) as f64;
        if gain > best {
            (best, length) = (gain, position + 1);
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::TraceShare;
    use proptest::prelude::*;

    /// A burst all of whose time is in one trace.
    fn burst(trace: u32, time_ns: u64) -> Signature {
        Signature {
            time_ns,
            traces: Box::new([TraceShare {
                trace,
                start: trace,
                share: 1.0,
            }]),
            time_per_branch: None,
            mispredicted: None,
        }
    }

    fn cuts(traces: &[u32], first_hits: &[u64]) -> Vec<usize> {
        let bursts: Vec<_> = (0..).zip(traces).map(|(at, &trace)| burst(trace, 10 * at)).collect();
        let times: Vec<_> = bursts.iter().map(|burst| burst.time_ns).collect();
        let bursts: Vec<_> = bursts.iter().collect();
        let cuts = changes(&bursts, &marks(&times, first_hits));
        cuts.iter().map(|cut| cut.burst).collect()
    }

    #[test]
    fn a_phase_too_short_for_an_interval_shows_by_its_mark() {
        let traces = [vec![1; 300], vec![2; 25], vec![1; 300]].concat();
        assert_eq!(cuts(&traces, &[2_995, 2_996]), [300, 325]);
        // A mark says nothing by itself, and no phase is looked for where none is.
        assert_eq!(cuts(&traces, &[1_005, 4_005]), [0; 0]);
        assert_eq!(cuts(&traces, &[]), [0; 0]);
    }

    #[test]
    fn the_start_of_a_program_is_told_from_what_follows() {
        let traces = [vec![1; 24], vec![2; 200]].concat();
        assert_eq!(cuts(&traces, &[3, 235, 236, 1_000]), [24]);
        // Too few bursts prove nothing.
        assert_eq!(cuts(&[vec![1; 5], vec![2; 200]].concat(), &[45]), [0; 0]);
        assert_eq!(cuts(&[vec![1; 200], vec![2; 5]].concat(), &[1_995]), [0; 0]);
    }

    #[test]
    fn the_end_of_a_phase_is_not_where_looking_for_it_ends() {
        // The phase after it is within the window that is compared.
        let traces = [vec![1; 300], vec![2; 320], vec![3; 300]].concat();
        assert_eq!(cuts(&traces, &[2_995]), [300]);
        let traces = [vec![1; 300], vec![2; 200], vec![3; 300]].concat();
        assert_eq!(cuts(&traces, &[2_995]), [300, 500]);
    }

    #[test]
    fn hits_between_the_same_bursts_are_one_mark() {
        let mark = |burst, time_ns, hits| Mark { burst, time_ns, hits };
        assert_eq!(
            marks(&[10, 20, 30], &[5, 11, 12, 25, 30, 31]),
            [mark(1, 11, 2), mark(2, 25, 2)]
        );
        assert_eq!(marks(&[], &[5]), []);
        let (times, hits): (Vec<u64>, Vec<u64>) = (0..2_000).map(|at| (10 * at, 10 * at + 5)).unzip();
        assert_eq!(marks(&times, &hits).len(), MAX_MARKS);
    }

    proptest! {
        #[test]
        fn marks_of_a_program_that_does_not_change_are_no_changes(
            traces in prop::collection::vec(0..4u32, 2..300),
            mut hits in prop::collection::vec(0..3_000u64, 0..40),
        ) {
            hits.sort_unstable();
            prop_assert_eq!(cuts(&traces, &hits), Vec::<usize>::new());
        }
    }
}
