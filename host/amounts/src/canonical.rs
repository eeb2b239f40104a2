//! Writes amounts in the API server's form: without a fraction, and with the largest suffix that keeps the exact value.

use crate::parts::{BITS, Parts, Scale, TENS};

/// Returns the canonical form of an amount. Returns `None` if the text is not an amount, or if the amount is too large
/// for an API server.
pub fn canonical(text: &str) -> Option<String> {
    let Parts { is_negative, whole, fraction, scale } = Parts::of(text)?;
    let sign = if is_negative { "-" } else { "" };
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    if digits == 0 {
        return Some("0".to_owned());
    }
    match scale {
        Scale::Bits(bits) => {
            let scaled = digits.checked_mul(1 << bits)? / 10_i128.checked_pow(places)?;
            let (name, bits) = BITS.iter().find(|(_, bits)| scaled % (1_i128 << bits) == 0).unwrap_or(&("", 0));
            Some(format!("{sign}{}{name}", scaled >> bits))
        }
        Scale::Tens(exponent) => {
            let (mantissa, exponent) = by_thousands(digits, exponent.checked_sub_unsigned(places)?)?;
            let (name, _) = TENS.iter().find(|(_, power)| *power == exponent)?;
            Some(format!("{sign}{mantissa}{name}"))
        }
        Scale::Scientific(exponent) => {
            let (mantissa, exponent) = by_thousands(digits, exponent.checked_sub_unsigned(places)?)?;
            Some(if exponent == 0 { format!("{sign}{mantissa}") } else { format!("{sign}{mantissa}e{exponent}") })
        }
    }
}

/// Removes trailing zeros from a number, and makes the exponent a multiple of three, because suffixes stand for powers
/// of one thousand.
fn by_thousands(mut mantissa: i128, mut exponent: i32) -> Option<(i128, i32)> {
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent = exponent.checked_add(1)?;
    }
    let shift = exponent.rem_euclid(3);
    Some((mantissa.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?, exponent.checked_sub(shift)?))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn amounts_are_written_as_the_server_writes_them() {
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
            ("-5n", "-5n"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(wanted), "{text}");
        }
        for beyond in ["lots", "1e2147483647000", "1.5e-2147483648", "99999999999999999999999999999999999999999"] {
            assert_eq!(canonical(beyond), None, "{beyond}");
        }
    }
}
