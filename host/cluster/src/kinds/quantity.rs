//! Resource quantities in the form that the server writes: no fraction, the largest suffix that loses nothing.

/// The canonical form of a quantity; `None` when it is none.
pub(super) fn canonical(text: &str) -> Option<String> {
    const DECIMAL: [(&str, i32); 9] =
        [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6)];
    const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let length = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, suffix) = rest.split_at(length);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    if digits == 0 {
        return Some("0".into());
    }
    if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        let scaled = digits.checked_shl(*bits)? / 10_i128.checked_pow(places.unsigned_abs())?;
        let (name, bits) = BINARY.iter().find(|(_, bits)| scaled % (1_i128 << bits) == 0).unwrap_or(&("", 0));
        return Some(format!("{sign}{}{name}", scaled >> bits));
    }
    let (mut exponent, scientific) = match suffix.strip_prefix(['e', 'E']) {
        Some(power) if !power.is_empty() => (power.parse::<i32>().ok()?, true),
        _ => (
            DECIMAL
                .iter()
                .find(|(name, _)| *name == suffix)
                .map(|(_, power)| *power)
                .or_else(|| (suffix == "n").then_some(-9))?,
            false,
        ),
    };
    exponent -= places;
    let mut mantissa = digits;
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    // Suffixes stand for powers of a thousand.
    let shift = exponent.rem_euclid(3);
    mantissa = mantissa.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?;
    exponent -= shift;
    if scientific {
        return Some(if exponent == 0 { format!("{sign}{mantissa}") } else { format!("{sign}{mantissa}e{exponent}") });
    }
    let name = DECIMAL.iter().find(|(_, power)| *power == exponent).map(|(name, _)| *name);
    let name = name.or((exponent == -9).then_some("n"))?;
    Some(format!("{sign}{mantissa}{name}"))
}

/// How two quantities compare; `None` when one of them is none.
pub(super) fn compare(one: &str, other: &str) -> Option<std::cmp::Ordering> {
    Some(nanos(one)?.cmp(&nanos(other)?))
}

/// A quantity in billionths.
fn nanos(text: &str) -> Option<i128> {
    const SUFFIXES: [(&str, i128); 16] = [
        ("", 1_000_000_000),
        ("n", 1),
        ("u", 1_000),
        ("m", 1_000_000),
        ("k", 1_000_000_000_000),
        ("M", 10_i128.pow(15)),
        ("G", 10_i128.pow(18)),
        ("T", 10_i128.pow(21)),
        ("P", 10_i128.pow(24)),
        ("E", 10_i128.pow(27)),
        ("Ki", 1_000_000_000 << 10),
        ("Mi", 1_000_000_000 << 20),
        ("Gi", 1_000_000_000 << 30),
        ("Ti", 1_000_000_000 << 40),
        ("Pi", 1_000_000_000 << 50),
        ("Ei", 1_000_000_000 << 60),
    ];
    let text = canonical(text)?;
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-').len();
    let (number, suffix) = text.split_at(digits);
    let factor = match SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        Some((_, factor)) => *factor,
        None => 10_i128.checked_pow(suffix.strip_prefix('e')?.parse::<u32>().ok()?.checked_add(9)?)?,
    };
    number.parse::<i128>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{canonical, compare};

    #[test]
    fn quantities_compare_by_what_they_amount_to() {
        for (one, other, wanted) in [
            ("1", "1000m", Ordering::Equal),
            ("1Gi", "1G", Ordering::Greater),
            ("0.5", "600m", Ordering::Less),
            ("1e3", "1k", Ordering::Equal),
            ("2Mi", "1Gi", Ordering::Less),
            ("-1", "0", Ordering::Less),
        ] {
            assert_eq!(compare(one, other), Some(wanted), "{one} and {other}");
        }
        assert_eq!(compare("lots", "1"), None);
    }

    #[test]
    fn quantities_are_written_as_the_server_writes_them() {
        for (text, wanted) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("100m", "100m"),
            ("1000", "1k"),
            ("0", "0"),
            ("2000Ki", "2000Ki"),
            ("1e3", "1e3"),
            ("1100", "1100"),
            ("0.1", "100m"),
            ("1Gi", "1Gi"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(canonical("lots"), None);
    }
}
