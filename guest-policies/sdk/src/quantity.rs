//! Parses Kubernetes quantities: `500m`, `1Gi`, `2e3`.

/// The number of billionths in one.
const NANOS: u128 = 1_000_000_000;

/// A quantity of Kubernetes, exact to a billionth. [`Quantity::parse`] rounds smaller fractions up, as Kubernetes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    nanos: i128,
}

/// The error for a text that is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a quantity such as 500m, 1.5 or 2Gi")]
pub struct Error;

impl Quantity {
    /// Parses `text`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(Error);
        }
        let (base, exponent) = scale(suffix).ok_or(Error)?;
        let nanos = nanos(whole, fraction, base, exponent).ok_or(Error)?;
        Ok(Self { nanos: if negative { -nanos } else { nanos } })
    }

    /// Returns whether the quantity is negative.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Returns the quantity as a whole number, for example the bytes of `1Gi`. Rounds a fraction up, as the function
    /// `Value` of Kubernetes does. Returns `None` if the quantity is negative or larger than a `u64`.
    pub fn to_u64(&self) -> Option<u64> {
        let nanos = u128::try_from(self.nanos).ok()?;
        u64::try_from(nanos.div_ceil(NANOS)).ok()
    }
}

/// Returns the factor of a suffix as a base and an exponent, such as 1024 and 2 for `Mi`. `None` for an unknown suffix.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (10, 0),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (1024, 1),
        "Mi" => (1024, 2),
        "Gi" => (1024, 3),
        "Ti" => (1024, 4),
        "Pi" => (1024, 5),
        "Ei" => (1024, 6),
        _ => (10, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

/// Returns `whole.fraction * base^exponent` in billionths, rounded up. If the result is too large for the type, returns
/// the largest value of the type.
fn nanos(whole: &str, fraction: &str, base: i128, exponent: i32) -> Option<i128> {
    let digits = |text: &str| {
        text.bytes().try_fold(0_i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(digit - b'0')))
    };
    let fraction = fraction.trim_end_matches('0');
    let Some(mantissa) = digits(&format!("{whole}{fraction}")) else { return too_much(whole, fraction, exponent) };
    let shift = i32::try_from(fraction.len()).ok()?;
    let (up, down) = if base == 10 { (exponent.checked_sub(shift)?.checked_add(9)?, 0) } else { (9 - shift, exponent) };
    let Some(scaled) = power(base, down).and_then(|factor| mantissa.checked_mul(factor)) else {
        return Some(i128::MAX);
    };
    Some(if up >= 0 {
        power(10, up).and_then(|factor| scaled.checked_mul(factor)).unwrap_or(if scaled == 0 { 0 } else { i128::MAX })
    } else {
        match power(10, -up) {
            Some(factor) => scaled / factor + i128::from(scaled % factor != 0),
            None => i128::from(scaled != 0),
        }
    })
}

/// Handles a number with more digits than the type can represent. If the exponent is not negative and most digits are
/// before the point, returns the largest value of the type. Otherwise returns `None`.
fn too_much(whole: &str, fraction: &str, exponent: i32) -> Option<i128> {
    (exponent >= 0 && whole.trim_start_matches('0').len() > fraction.len()).then_some(i128::MAX)
}

fn power(base: i128, exponent: i32) -> Option<i128> {
    base.checked_pow(u32::try_from(exponent).ok()?)
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    fn q(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn equal_quantities_are_equal_however_they_are_written() {
        for (one, two) in [
            ("1000m", "1"),
            ("1Gi", "1024Mi"),
            ("2e3", "2k"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("+1", "1."),
            ("1E", "1e18"),
            ("-0", "0"),
            (".5", "0.50"),
            ("1E3", "1k"),
            ("0.1n", "1n"),
            ("0Ei", "0"),
            ("0e99", "0"),
        ] {
            assert_eq!(q(one), q(two), "{one} {two}");
        }
    }

    #[test]
    fn quantities_have_an_order() {
        for (less, more) in [("999m", "1"), ("1G", "1Gi"), ("-1", "0"), ("1Ei", "9Ei"), ("1e-3", "2m")] {
            assert!(q(less) < q(more), "{less} {more}");
        }
        assert!(q("-1m").is_negative() && !q("0").is_negative());
    }

    #[test]
    fn a_text_that_is_no_quantity_is_refused() {
        for bad in ["", "x", "1x", "1.2.3", "m", "-", "1 Gi", "1gi", "1e", "1ee3", "--1", "e3", ".", "1_000", "١"] {
            assert!(Quantity::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_whole_number_is_rounded_up() {
        for (text, number) in [
            ("0", 0),
            ("1n", 1),
            ("500m", 1),
            ("1", 1),
            ("1001m", 2),
            ("1.5Ki", 1536),
            ("0.1Ki", 103),
            ("512Mi", 512 << 20),
            ("1Gi", 1 << 30),
            ("2e3", 2000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(q(text).to_u64(), Some(number), "{text}");
        }
        for text in ["-1", "-1n", "18446744073709551616", "18446744073709551615.1", "1e400"] {
            assert_eq!(q(text).to_u64(), None, "{text}");
        }
    }

    #[test]
    fn huge_quantities_do_not_overflow() {
        assert!(q(&"9".repeat(100)) > q("1Ei"));
        assert!(q("1e400") > q("1Ei"));
        assert_eq!(q("1e-400"), q("1n"));
    }
}
