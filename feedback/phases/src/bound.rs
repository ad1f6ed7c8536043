//! How likely chance is to explain that one part of a sample has a larger mean than the rest.
//!
//! If bursts of two samples are exchangeable (one phase made both), each choice of n of all N bursts was as likely as
//! the one that was seen: the permutation test. Its probability is bounded as follows. Let each value be chosen
//! independently with probability π = n ÷ N. Given that n values are chosen, all choices are equally likely, so
//!
//! ```text
//! P(sum ≥ s | n chosen) ≤ P(sum ≥ s and n chosen) ÷ P(n chosen)
//!                       ≤ exp(Σᵢ ln(1 − π + π e^(λ xᵢ + μ)) − λ s − μ n) ÷ √(N ÷ (8 n (N − n)))
//! ```
//!
//! for every λ ≥ 0 and every μ: Chernoff's bound in two dimensions, and Stirling's of the binomial distribution. The
//! bound holds for each n and each distribution. No normal distribution is assumed, and no variance is estimated; the
//! exponent is that of the exact test.

/// Newton steps towards the best λ and μ. Any λ and μ give a valid bound.
const STEPS: u32 = 30;
/// An improvement of the exponent that is worth no further step.
const TOLERANCE: f64 = 1e-3;

/// The logarithm of a bound of the probability that chance gives `part` so much larger a mean than `others`. Values are
/// in 0…1. 0 if the mean is not larger, or the bound says nothing.
pub fn log_probability(part: &[f64], others: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if part.is_empty() || others.is_empty() || mean(part) <= mean(others) {
        return 0.0;
    }
    let (n, all) = (part.len() as f64, (part.len() + others.len()) as f64);
    let (odds, sum) = (n / (all - n), part.iter().sum::<f64>());
    let values = || part.iter().chain(others).copied();
    // The exponent, without the constant part: convex in (λ, μ).
    let exponent = |tilt: f64, shift: f64| -> f64 {
        let logs = values().map(|x| (tilt * x + shift + odds.ln()).exp().ln_1p());
        logs.sum::<f64>() - tilt * sum - shift * n + all * (1.0 - n / all).ln()
    };
    let (mut tilt, mut shift) = (0.0, 0.0);
    let mut best = exponent(tilt, shift);
    for _ in 0..STEPS {
        // Gradient and curvature, as in logistic regression: p is the probability that a value is chosen.
        let (mut g, mut h) = ([-sum, -n], [0.0; 3]);
        for x in values() {
            let e = (tilt * x + shift).exp() * odds;
            let p = e / (1.0 + e);
            let w = p * (1.0 - p);
            g = [g[0] + p * x, g[1] + p];
            h = [h[0] + w * x * x, h[1] + w * x, h[2] + w];
        }
        // A little more curvature keeps steps finite where the two parts are separated.
        h = [h[0] + 1e-9, h[1], h[2] + 1e-9];
        let determinant = h[0] * h[2] - h[1] * h[1];
        let step = [
            (h[2] * g[0] - h[1] * g[1]) / determinant,
            (h[0] * g[1] - h[1] * g[0]) / determinant,
        ];
        let Some((next, found)) = [1.0, 0.5, 0.25, 0.05].into_iter().find_map(|part: f64| {
            let next = (
                (tilt - part * step[0]).clamp(0.0, 200.0),
                (shift - part * step[1]).clamp(-300.0, 300.0),
            );
            let found = exponent(next.0, next.1);
            (found < best).then_some((next, found))
        }) else {
            break;
        };
        let gain = best - found;
        ((tilt, shift), best) = (next, found);
        if gain < TOLERANCE {
            break;
        }
    }
    let log_chosen = 0.5 * (all / (8.0 * n * (all - n))).ln();
    (best - log_chosen).min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Exact probability that n of N balls, k of them black, have b black ones or more.
    fn hypergeometric(all: u64, black: u64, chosen: u64, least: u64) -> f64 {
        let log_factorial = |n: u64| (1..=n).map(|i| (i as f64).ln()).sum::<f64>();
        let choose = |n: u64, k: u64| log_factorial(n) - log_factorial(k) - log_factorial(n - k);
        (least..=chosen.min(black))
            .filter(|b| chosen - b <= all - black)
            .map(|b| (choose(black, b) + choose(all - black, chosen - b) - choose(all, chosen)).exp())
            .sum()
    }

    #[test]
    fn a_sample_apart_from_the_others_is_no_chance() {
        // 50 of 200 values are 1, and just those were chosen: one choice of about 10⁴⁷.
        let found = log_probability(&[1.0; 50], &[0.0; 150]);
        let exact = hypergeometric(200, 50, 50, 50).ln();
        assert!(found >= exact && found < exact + 1.0, "{found} {exact}");
        assert_eq!(log_probability(&[0.5; 50], &[0.5; 50]), 0.0);
        assert_eq!(log_probability(&[], &[1.0]), 0.0);
    }

    proptest! {
        #[test]
        fn it_bounds_the_exact_probability(part in 1..60_u64, others in 1..60_u64, a in 0..60_u64, b in 0..60_u64) {
            let (a, b) = (a.min(part), b.min(others));
            let values = |ones: u64, all: u64| (0..all).map(|i| f64::from(u8::from(i < ones))).collect::<Vec<_>>();
            let bound = log_probability(&values(a, part), &values(b, others));
            let exact = hypergeometric(part + others, a + b, part, a);
            prop_assert!(bound <= 0.0);
            prop_assert!(bound.exp() >= exact * (1.0 - 1e-9), "{bound} {exact}");
        }
    }
}
