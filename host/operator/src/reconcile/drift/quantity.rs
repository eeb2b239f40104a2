//! Amounts as Kubernetes writes them: `1000m` and `1` are the same.

/// Digits after the point that an amount can have.
const NANO: u32 = 9;

/// Whether two texts are the same amount; texts that are no amounts are the same only if they are equal.
pub(super) fn same(a: &str, b: &str) -> bool {
    a == b || matches!((nanos(a), nanos(b)), (Some(a), Some(b)) if a == b)
}

/// The amount in billionths; what is smaller is rounded up, as the API server does it.
fn nanos(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 30 {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    let (factor, exponent) = scale(suffix)?;
    let shift = exponent - places + i32::try_from(NANO).ok()?;
    let amount = digits.checked_mul(factor)?;
    let amount = if shift >= 0 {
        amount.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)?
    } else {
        let by = 10_i128.checked_pow(u32::try_from(-shift).ok()?)?;
        amount / by + i128::from(amount % by != 0)
    };
    Some(if negative { -amount } else { amount })
}

/// A suffix as a factor and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| Some((1_i128 << (10 * power), 0));
    match suffix {
        "" => Some((1, 0)),
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (-18..=18).contains(&exponent).then_some((1, exponent))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_amounts_are_the_same_however_they_are_written() {
        for (a, b) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1Gi", "1024Mi"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("1.5Gi", "1536Mi"),
            ("0", "0m"),
            (".5", "500m"),
            ("+1", "1"),
            ("-1", "-1000m"),
            ("0.1n", "1n"),
        ] {
            assert!(same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn different_amounts_and_texts_that_are_no_amounts_are_not() {
        for (a, b) in [("1", "1m"), ("1G", "1Gi"), ("", "0"), ("1.1.1", "1"), ("x", "y"), ("1Q", "1"), ("-1", "1")] {
            assert!(!same(a, b), "{a} {b}");
        }
        let long = "9".repeat(80);
        assert!(!same(&long, "1"));
        assert!(same(&long, &long));
        assert!(!same("999999999999999999999999999999E", "1"));
        assert!(!same("1e999", "1"));
    }
}
