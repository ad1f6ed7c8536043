//! What it costs to contradict evidence: the Poisson deviance, in linear pieces.

use super::simplex::{LinearPiece, UNBOUNDED};

/// Cost of a deviance of 1.
pub(super) const COST_UNIT: f64 = (1u32 << 20) as f64;
/// Slope, per sample, of lowering a positive count to nothing: the deviance itself would be infinite there.
const STEEPEST: f64 = 64.0;
/// The first breakpoints lie this many standard deviations from the evidence; each next one is [`SPREAD`] times as far.
const FIRST_DEVIATIONS: f64 = 0.5;
const SPREAD: f64 = 3.0;
/// … but not nearer than this share of it, where slopes would round to nothing.
const NEAREST: f64 = 1e-4;
/// Beyond e³ ≈ 20 times the evidence the slope is taken to be constant.
const FARTHEST: f64 = 3.0;

/// A constant slope, in deviance per sample, as the last or only piece.
pub(super) fn linear(slope: f64) -> LinearPiece {
    LinearPiece {
        end: UNBOUNDED,
        slope: fixed(slope),
    }
}

/// Slopes stay per sample: dividing all of them by the units of flow in one would only lose precision.
fn fixed(slope: f64) -> i64 {
    (slope * COST_UNIT).round() as i64
}

/// Fills `pieces` with the cost of a flow where `samples` were observed with probability `completeness`.
///
/// Half the deviance is `κf − x ln f` up to a constant: convex, with its minimum at `x/κ`. Pieces are its secants
/// between breakpoints whose distance from the minimum grows geometrically, from a fraction of the standard deviation
/// on.
pub(super) fn deviance(samples: f64, completeness: f64, units: f64, pieces: &mut Vec<LinearPiece>) {
    pieces.clear();
    let last = if samples > 0.0 {
        breakpoints(samples, completeness, units, pieces)
    } else {
        0.0
    };
    let slope = if last > 0.0 {
        completeness - samples / last
    } else {
        completeness
    };
    pieces.push(linear(slope.max(0.0)));
    flatten(pieces);
}

/// Adds the bounded pieces and returns where the last one ends, in samples.
fn breakpoints(samples: f64, completeness: f64, units: f64, pieces: &mut Vec<LinearPiece>) -> f64 {
    let best = samples / completeness;
    // Below this flow the slope is cut off.
    let cut = samples / (completeness + STEEPEST);
    let value = |f: f64| {
        if f < cut {
            completeness * cut - samples * cut.ln() + STEEPEST * (cut - f)
        } else {
            completeness * f - samples * f.ln()
        }
    };
    let first = (FIRST_DEVIATIONS / samples.sqrt()).clamp(NEAREST, 0.5);
    let deepest = (best / cut).ln();
    let distances = || std::iter::successors(Some(first), |t| Some(t * SPREAD));
    let below: Vec<f64> = distances()
        .take_while(|&t| t < deepest)
        .chain([deepest])
        .map(|t| best * (-t).exp())
        .collect();
    let above = distances().take_while(|&t| t < FARTHEST).map(|t| best * t.exp());
    let (mut from, mut from_value) = (0i64, value(0.0));
    for point in below.into_iter().rev().chain([best]).chain(above) {
        let end = (point * units).round() as i64;
        if end > from {
            let end_value = value(end as f64 / units);
            let slope = (end_value - from_value) / ((end - from) as f64 / units);
            pieces.push(LinearPiece {
                end,
                slope: fixed(slope),
            });
            (from, from_value) = (end, end_value);
        }
    }
    from as f64 / units
}

/// Restores convexity where rounding and cancellation disturbed it.
fn flatten(pieces: &mut [LinearPiece]) {
    for at in 1..pieces.len() {
        pieces[at].slope = pieces[at].slope.max(pieces[at - 1].slope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(samples: f64, completeness: f64, units: f64) -> Vec<LinearPiece> {
        let mut pieces = Vec::new();
        deviance(samples, completeness, units, &mut pieces);
        pieces
    }

    fn minimum(pieces: &[LinearPiece]) -> i64 {
        pieces.iter().take_while(|p| p.slope < 0).last().map_or(0, |p| p.end)
    }

    #[test]
    fn zero_costs_one_per_sample() {
        assert_eq!(
            pieces(0.0, 1.0, 1000.0),
            [LinearPiece {
                end: UNBOUNDED,
                slope: 1 << 20
            }]
        );
    }

    #[test]
    fn transitions_that_were_partly_lost_count_for_more() {
        assert_eq!(minimum(&pieces(50.0, 0.5, 1000.0)), 100_000);
    }

    #[test]
    fn large_counts_give_way_more_easily() {
        let slope_at = |samples: f64| {
            pieces(samples, 1.0, 1000.0)
                .iter()
                .find(|p| p.slope > 0)
                .map(|p| p.slope)
        };
        assert!(slope_at(10_000.0) < slope_at(100.0));
    }

    proptest! {
        #[test]
        fn convex_and_least_at_the_evidence(
            samples in prop_oneof![0.0..10.0f64, 0.0..1e4f64, 0.0..1e12f64],
            completeness in 0.05..=1.0f64,
            units in prop_oneof![Just(1.0), 0.5..2000.0f64],
        ) {
            let pieces = pieces(samples, completeness, units);
            prop_assert!(pieces.windows(2).all(|p| p[0].end < p[1].end && p[0].slope <= p[1].slope));
            prop_assert!(pieces.last().is_some_and(|p| p.end == UNBOUNDED && p.slope >= 0));
            if samples < 1e8 {
                let best = samples / completeness * units;
                prop_assert!((minimum(&pieces) as f64 - best).abs() <= 1.0, "{pieces:?} {best}");
            }
        }
    }
}
