//! Reads amounts in Kubernetes' notation: `500m`, `1Gi`, `2e3`. All host crates use this parser.

mod canonical;
mod parts;

pub use canonical::canonical;

use parts::{Parts, Scale};

/// The amount `1`, in billionths.
pub const UNIT: i128 = 1_000_000_000;

/// Returns an amount in billionths, rounded away from zero as an API server does. Returns the largest `i128` if the
/// amount is larger than any `i128`, and `None` if the text is not an amount.
pub fn nanos(text: &str) -> Option<i128> {
    let Parts { is_negative, whole, fraction, scale } = Parts::of(text)?;
    let amount = scaled(whole, fraction.trim_end_matches('0'), scale);
    Some(if is_negative { -amount } else { amount })
}

/// Returns whether two texts are the same amount. Two texts that are not amounts are the same only if the texts are
/// equal.
pub fn same(one: &str, other: &str) -> bool {
    one == other || matches!((nanos(one), nanos(other)), (Some(one), Some(other)) if one == other)
}

/// Compares two amounts. Returns `None` if one of the texts is not an amount.
pub fn compare(one: &str, other: &str) -> Option<std::cmp::Ordering> {
    Some(nanos(one)?.cmp(&nanos(other)?))
}

/// Returns the number `whole.fraction` times `scale`, in billionths.
fn scaled(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // If the number has too many digits for an `i128`, drop the least significant digits.
    let kept = &digits[..digits.len().min(27)];
    let lost = i64::try_from(digits.len() - kept.len()).unwrap_or(i64::MAX);
    let mantissa: i128 = kept.parse().unwrap_or(i128::MAX);
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let power = |exponent: i64| u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent));
    let (factor, tens) = match scale {
        Scale::Tens(exponent) | Scale::Scientific(exponent) => (1, i64::from(exponent)),
        Scale::Bits(bits) => (1_i128 << bits, 0),
    };
    let tens = tens.saturating_sub(places).saturating_add(lost).saturating_add(9);
    let amount = mantissa.checked_mul(factor);
    if tens >= 0 {
        return amount.and_then(|amount| amount.checked_mul(power(tens)?)).unwrap_or(i128::MAX);
    }
    let amount = amount.unwrap_or(i128::MAX);
    power(-tens).map_or(1, |by| amount / by + i128::from(amount % by != 0))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn equal_amounts_are_the_same_however_they_are_written() {
        for (one, other) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1Gi", "1024Mi"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("2e3", "2k"),
            ("0", "0m"),
            ("-0", "0"),
            ("+1", "1"),
            ("-1", "-1000m"),
            ("0.1n", "1n"),
        ] {
            assert!(same(one, other), "{one} {other}");
            assert_eq!(compare(one, other), Some(Ordering::Equal), "{one} {other}");
        }
    }

    #[test]
    fn smaller_amounts_compare_as_smaller_up_to_the_largest() {
        for (less, more) in [
            ("999m", "1"),
            ("1G", "1Gi"),
            ("600m", "1"),
            ("2Mi", "1Gi"),
            ("-1", "0"),
            ("1Ei", "1e400"),
            ("9", &"9".repeat(100)),
            ("1", "999999999999999999999999999999E"),
        ] {
            assert_eq!(compare(less, more), Some(Ordering::Less), "{less} {more}");
            assert!(!same(less, more), "{less} {more}");
        }
    }

    #[test]
    fn texts_that_are_not_amounts_equal_only_themselves() {
        for bad in ["", "x", "1.2.3", "m", "-", "1 Gi", "1gi", "1e", "--1", ".", "1_000", "١", "1Q", "lots", "1e+-3"] {
            assert_eq!((nanos(bad), canonical(bad), compare(bad, "1")), (None, None, None), "{bad}");
            assert!(same(bad, bad) && !same(bad, "1"), "{bad}");
        }
    }

    #[test]
    fn amounts_are_read_in_billionths() {
        assert_eq!(nanos("3k"), Some(3_000 * UNIT));
        assert_eq!(nanos("1500m"), Some(UNIT + UNIT / 2));
    }
}
