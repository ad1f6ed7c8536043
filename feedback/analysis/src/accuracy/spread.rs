//! Median and extremes of repeated measurements.

use serde::Serialize;

/// Median and extremes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The middle value, or the mean of the two middle ones.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Number of values.
    pub n: usize,
}

impl Spread {
    /// The spread of values; `None` if there are none.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let n = sorted.len();
        Some(Self {
            median: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
            min,
            max,
            n,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers_of_values() {
        let spread = |median, min, max, n| Some(Spread { median, min, max, n });
        assert_eq!(Spread::from_values(&[3.0, 1.0, 2.0]), spread(2.0, 1.0, 3.0, 3));
        assert_eq!(Spread::from_values(&[4.0, 1.0, 2.0, 3.0]), spread(2.5, 1.0, 4.0, 4));
        assert_eq!(Spread::from_values(&[7.0]), spread(7.0, 7.0, 7.0, 1));
        assert_eq!(Spread::from_values(&[]), None);
    }
}
