//! Samples and what is told of them.

use std::time::Duration;

/// What is told of one measurement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// The median of the samples, or the one value.
    pub(crate) middle: f64,
    /// The value that 99 of 100 samples do not exceed; with fewer than 100 samples, the largest.
    pub(crate) p99: Option<f64>,
    /// How many samples.
    pub(crate) samples: usize,
    /// Requests of this measurement that were not answered with 200, or not with what was asked for.
    pub(crate) failed: usize,
}

impl Figure {
    /// A value that was counted, such as a rate or a size.
    pub(crate) fn single(value: f64, samples: usize, failed: usize) -> Self {
        Self { middle: value, p99: None, samples, failed }
    }

    /// Nothing, when there is no sample.
    pub(crate) fn of(mut samples: Vec<f64>, failed: usize) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let middle = percentile(&samples, 50)?;
        let p99 = percentile(&samples, 99);
        Some(Self { middle, p99, samples: samples.len(), failed })
    }
}

/// The nearest rank: a value that was really seen.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

/// Milliseconds.
pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let figure = Figure::of((1..=200).map(f64::from).rev().collect(), 3).expect("samples");
        assert_eq!(figure, Figure { middle: 100.0, p99: Some(198.0), samples: 200, failed: 3 });
    }

    #[test]
    fn with_few_samples_p99_is_the_largest() {
        let figure = Figure::of(vec![5.0, 1.0, 3.0], 0).expect("samples");
        assert_eq!((figure.middle, figure.p99), (3.0, Some(5.0)));
    }

    #[test]
    fn no_sample_is_no_figure() {
        assert_eq!(Figure::of(Vec::new(), 9), None);
    }
}
