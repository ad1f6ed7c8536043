//! Medians, geometric and arithmetic means, with their intervals.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::{Data, OrderStatistics, Statistics};

/// The middle value, or the mean of the two middle ones; `NaN` for none.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// A quantile, as [`statrs`] estimates it (type 8 of Hyndman and Fan); `NaN` for no values.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    Data::new(values.to_vec()).quantile(q)
}

/// The geometric mean, the right one for ratios; `NaN` for none.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    Statistics::geometric_mean(values)
}

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Resamples per bootstrap interval.
const RESAMPLES: usize = 2_000;
/// The same values shall always give the same interval.
const BOOTSTRAP_SEED: u64 = 1;

/// The median with its 95 % percentile-bootstrap interval. The same values always give the same interval.
pub fn bootstrap_median(values: &[f64]) -> Interval {
    bootstrap(values, median)
}

/// The geometric mean with its 95 % percentile-bootstrap interval.
pub fn bootstrap_geometric_mean(values: &[f64]) -> Interval {
    bootstrap(values, |values| geometric_mean(values.iter().copied()))
}

/// The mean with its 95 % interval by Student's t: for values, such as those of a few programs, that are too few to
/// resample. One value has no interval.
pub fn student_mean(values: &[f64]) -> Interval {
    let value = Statistics::mean(values);
    let error = Statistics::std_dev(values) / (values.len() as f64).sqrt();
    let quantile = StudentsT::new(0.0, 1.0, values.len() as f64 - 1.0).map_or(f64::NAN, |t| t.inverse_cdf(0.975));
    Interval {
        value,
        low: value - quantile * error,
        high: value + quantile * error,
    }
}

fn bootstrap(values: &[f64], statistic: impl Fn(&[f64]) -> f64) -> Interval {
    let value = statistic(values);
    if values.is_empty() {
        return Interval {
            value,
            low: f64::NAN,
            high: f64::NAN,
        };
    }
    let mut random = SmallRng::seed_from_u64(BOOTSTRAP_SEED);
    let statistics: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let sample: Vec<f64> = values
                .iter()
                .map(|_| values[random.random_range(..values.len())])
                .collect();
            statistic(&sample)
        })
        .collect();
    Interval {
        value,
        low: quantile(&statistics, 0.025),
        high: quantile(&statistics, 0.975),
    }
}

/// Median and extremes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Number of values.
    pub n: usize,
}

impl Spread {
    /// Of the values given; all `NaN` for none.
    pub fn from_values(values: &[f64]) -> Self {
        Self {
            median: median(values),
            min: quantile(values, 0.0),
            max: quantile(values, 1.0),
            n: values.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
        assert!((quantile(&[10.0, 20.0, 30.0], 0.25) - 35.0 / 3.0).abs() < 1e-12);
        assert_eq!(quantile(&[10.0, 20.0, 30.0], 0.0), 10.0);
        assert_eq!(quantile(&[10.0, 20.0, 30.0], 1.0), 30.0);
    }

    #[test]
    fn a_ratio_and_its_inverse_average_to_one() {
        assert!((geometric_mean([0.5, 2.0]) - 1.0).abs() < 1e-12);
        assert!((geometric_mean([0.9]) - 0.9).abs() < 1e-12);
        assert!(geometric_mean([]).is_nan());
    }

    #[test]
    fn means_of_few_have_wide_intervals() {
        let of_four = student_mean(&[1.0, 2.0, 3.0, 4.0]);
        // 3.182 standard errors of 1.291 / 2.
        assert!(
            (of_four.value - 2.5).abs() < 1e-12 && (of_four.high - 4.554).abs() < 1e-3,
            "{of_four:?}"
        );
        let of_one = student_mean(&[1.0]);
        assert!(of_one.value == 1.0 && of_one.low.is_nan());
    }

    #[test]
    fn intervals_hold_the_median_and_shrink_with_more_values() {
        let noisy = |n: usize| -> Vec<f64> { (0..n).map(|i| 1.0 + ((i * 37) % 101) as f64 / 1000.0).collect() };
        let few = bootstrap_median(&noisy(8));
        let many = bootstrap_median(&noisy(400));
        for interval in [few, many] {
            assert!(
                interval.low <= interval.value && interval.value <= interval.high,
                "{interval:?}"
            );
        }
        assert!(many.high - many.low < few.high - few.low);
        assert_eq!(
            bootstrap_median(&noisy(8)),
            few,
            "the same values give the same interval"
        );
    }

    #[test]
    fn a_mean_of_ratios_lies_among_them() {
        let mean = bootstrap_geometric_mean(&[0.5, 1.0, 2.0]);
        assert!((mean.value - 1.0).abs() < 1e-12, "{mean:?}");
        assert!(
            0.5 <= mean.low && mean.low < 1.0 && 1.0 < mean.high && mean.high <= 2.0,
            "{mean:?}"
        );
    }

    #[test]
    fn constant_values_have_no_spread() {
        let interval = bootstrap_median(&[0.97; 5]);
        assert_eq!((interval.low, interval.value, interval.high), (0.97, 0.97, 0.97));
        assert_eq!(
            Spread::from_values(&[2.0, 2.0]),
            Spread {
                median: 2.0,
                min: 2.0,
                max: 2.0,
                n: 2
            }
        );
    }

    /// About 95 of 100 intervals must hold the true median.
    #[test]
    fn coverage_of_the_interval() {
        let mut random = SmallRng::seed_from_u64(1);
        let covering = (0..200)
            .filter(|_| {
                let values: Vec<f64> = (0..25).map(|_| random.random::<f64>()).collect();
                let interval = bootstrap_median(&values);
                interval.low <= 0.5 && 0.5 <= interval.high
            })
            .count();
        assert!((180..=200).contains(&covering), "{covering} of 200");
    }
}
