//! Amounts as Kubernetes writes them: `500m`, `1Gi`, `2e3`.

use super::{
    found::{Found, shown},
    place::Place,
};
use serde_json::Value;

/// What one unit is in billionths.
const UNIT: i128 = 1_000_000_000;

/// The amount of a text or number in billionths, rounded up; the most that there is for one that is larger. None if it is
/// no amount.
pub(super) fn amount(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => nanos(text),
        Value::Number(number) => nanos(&number.to_string()),
        _ => None,
    }
}

fn nanos(text: &str) -> Option<i128> {
    let (is_negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (base, exponent) = scale(suffix)?;
    let amount = scaled(whole, fraction.trim_end_matches('0'), base, exponent);
    Some(if is_negative { -amount } else { amount })
}

/// What a suffix multiplies with: a base and its exponent.
fn scale(suffix: &str) -> Option<(i128, i64)> {
    const DECIMAL: [(&str, i64); 10] =
        [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((10, *exponent));
    }
    if let Some(at) = BINARY.iter().position(|name| *name == suffix) {
        return Some((1024, i64::try_from(at).ok()? + 1));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((10, i64::from(exponent)))
}

/// `whole.fraction * base^exponent` in billionths.
fn scaled(whole: &str, fraction: &str, base: i128, exponent: i64) -> i128 {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // Where more digits stand than can be counted with, those at the end say the least.
    let kept = &digits[..digits.len().min(27)];
    let lost = i64::try_from(digits.len() - kept.len()).unwrap_or(i64::MAX);
    let mantissa: i128 = kept.parse().unwrap_or(i128::MAX);
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let power = |exponent: i64| u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent));
    let (factor, tens) = if base == 10 { (1, exponent) } else { (base.pow(u32::try_from(exponent).unwrap_or(0)), 0) };
    let tens = tens.saturating_sub(places).saturating_add(lost).saturating_add(9);
    let amount = mantissa.checked_mul(factor);
    if tens >= 0 {
        return amount.and_then(|amount| amount.checked_mul(power(tens)?)).unwrap_or(i128::MAX);
    }
    let amount = amount.unwrap_or(i128::MAX);
    power(-tens).map_or(1, |by| amount / by + i128::from(amount % by != 0))
}

/// Whether an amount is one of whole units.
pub(super) fn is_whole(amount: i128) -> bool {
    amount % UNIT == 0
}

/// An amount that is not negative. Gives it.
pub(super) fn check(at: &Place<'_>, found: &mut Found) -> Option<i128> {
    let Some(amount) = amount(at.value()) else {
        found.add(at, format!("{} is not an amount: write one such as 500m, 1.5 or 2Gi", shown(at)));
        return None;
    };
    if amount < 0 {
        found.add(at, format!("{} is negative: write an amount of 0 or more", shown(at)));
    }
    Some(amount)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_read_as_kubernetes_reads_them() {
        let same = [
            ("1000m", "1"),
            ("1Gi", "1024Mi"),
            ("2e3", "2k"),
            (".5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("-0", "0"),
            ("0.1n", "1n"),
        ];
        for (one, other) in same {
            assert_eq!(nanos(one), nanos(other), "{one} {other}");
        }
        for (less, more) in [("999m", "1"), ("1G", "1Gi"), ("-1", "0"), ("1Ei", "1e400"), ("9", &"9".repeat(100))] {
            assert!(nanos(less) < nanos(more), "{less} {more}");
        }
        for bad in ["", "x", "1.2.3", "m", "-", "1 Gi", "1gi", "1e", "--1", ".", "1_000", "١"] {
            assert_eq!(nanos(bad), None, "{bad}");
        }
        assert!(is_whole(nanos("3k").unwrap()) && !is_whole(nanos("1500m").unwrap()));
        assert_eq!((amount(&json!(2)), amount(&json!(0.5)), amount(&json!(true))), (nanos("2"), nanos("500m"), None));
    }
}
