//! Percentiles of a set of numbers.

use serde::Serialize;

/// Percentiles by the nearest rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The median: at least half of the numbers are at most this number.
    pub p50: u64,
    /// At least 90 percent of the numbers are at most this number.
    pub p90: u64,
    /// At least 99 percent of the numbers are at most this number.
    pub p99: u64,
    /// The largest number.
    pub most: u64,
}

impl Spread {
    /// Returns the percentiles; `None` without numbers.
    pub fn of(mut numbers: Vec<u64>) -> Option<Self> {
        numbers.sort_unstable();
        let most = *numbers.last()?;
        let at = |percent: usize| {
            let rank = (numbers.len() * percent).div_ceil(100).max(1);
            numbers.get(rank - 1).copied().unwrap_or(most)
        };
        Some(Self { p50: at(50), p90: at(90), p99: at(99), most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_numbers_of_the_set() {
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(Spread::of(vec![7]), Some(Spread { p50: 7, p90: 7, p99: 7, most: 7 }));
        let hundred = (1..=100).rev().collect();
        assert_eq!(Spread::of(hundred), Some(Spread { p50: 50, p90: 90, p99: 99, most: 100 }));
        assert_eq!(Spread::of(vec![3, 1, 2]), Some(Spread { p50: 2, p90: 3, p99: 3, most: 3 }));
    }
}
