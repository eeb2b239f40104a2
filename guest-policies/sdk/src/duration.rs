//! Parses durations in the format of Go and in the format of the Gateway API.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

/// An invalid duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text does not follow Go's format.
    #[error("must be a duration such as 1h30m, 90s or 500ms")]
    NotGo,
    /// The text does not follow the Gateway API's format.
    #[error("must be one to four parts such as 1h, 30m, 10s or 500ms, each with at most five digits")]
    NotGateway,
    /// The duration is longer than Go can represent, or than the Gateway API can express.
    #[error("must be shorter than 292 years, and in fields of the Gateway API shorter than 100000h")]
    TooLong,
}

/// Parses a Go duration such as `1h30m`, `1.5s` or `0`. Negative durations are errors.
pub fn parse_go(text: &str) -> Result<Duration, Error> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut nanos = 0_u128;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(Error::NotGo)?;
        let (number, tail) = rest.split_at(end);
        let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len()));
        let unit = unit_nanos(unit).ok_or(Error::NotGo)?;
        nanos = nanos.saturating_add(part(number, unit)?);
        rest = tail;
    }
    if text.is_empty() {
        return Err(Error::NotGo);
    }
    match u64::try_from(nanos) {
        Ok(nanos) if i64::try_from(nanos).is_ok() => Ok(Duration::from_nanos(nanos)),
        _ => Err(Error::TooLong),
    }
}

/// The largest number of parts in a Gateway API duration.
const PARTS: usize = 4;
/// The largest number of digits in one part.
const DIGITS: usize = 5;
/// The units that a part can have, each with its length in milliseconds.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Parses a duration of the Gateway API (the timeouts of an `HTTPRoute`): one to four parts of at most five digits
/// each, with the units `h`, `m`, `s` or `ms`.
pub fn parse_gateway(text: &str) -> Result<Duration, Error> {
    let parts = parts(text)?;
    if parts.iter().all(|(digits, _)| digits.len() <= DIGITS) {
        sum(&parts).map(Duration::from_millis)
    } else {
        Err(Error::NotGateway)
    }
}

/// Returns `text` in a form that the Gateway API accepts, unchanged if possible. Splits a number with too many digits:
/// `100000s` becomes `27h46m40s`. Returns [`Error::TooLong`] if the new text would need more than 99999 hours.
pub fn for_gateway(text: &str) -> Result<Cow<'_, str>, Error> {
    let parts = parts(text)?;
    if parts.iter().all(|(digits, _)| digits.len() <= DIGITS) {
        return Ok(Cow::Borrowed(text));
    }
    let mut rest = sum(&parts)?;
    let mut spelled = String::new();
    for (unit, size) in UNITS {
        let number = rest / size;
        rest %= size;
        if number > 99_999 {
            return Err(Error::TooLong);
        }
        if number > 0 {
            spelled.push_str(&number.to_string());
            spelled.push_str(unit);
        }
    }
    Ok(if spelled.is_empty() { Cow::Borrowed("0s") } else { Cow::Owned(spelled) })
}

/// Splits a duration into its parts. Returns the digits of each part, and the length of its unit in milliseconds.
fn parts(mut text: &str) -> Result<Vec<(&str, u64)>, Error> {
    let mut found = Vec::new();
    while !text.is_empty() {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at(digits);
        let letters = rest.bytes().take_while(|byte| !byte.is_ascii_digit()).count();
        // This split never cuts a character, because `letters` ends before an ASCII digit or at the end of the text.
        let (unit, rest) = rest.split_at(letters);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(Error::NotGateway)?;
        if digits == 0 || found.len() == PARTS {
            return Err(Error::NotGateway);
        }
        found.push((number, *size));
        text = rest;
    }
    if found.is_empty() { Err(Error::NotGateway) } else { Ok(found) }
}

/// Adds up all parts, in milliseconds.
fn sum(parts: &[(&str, u64)]) -> Result<u64, Error> {
    parts.iter().try_fold(0_u64, |sum, (digits, unit)| {
        let number: u64 = digits.parse().map_err(|_| Error::TooLong)?;
        number.checked_mul(*unit).and_then(|millis| sum.checked_add(millis)).ok_or(Error::TooLong)
    })
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Multiplies `number`, which can have a fraction, by `unit`. Rounds the result down to whole nanoseconds.
fn part(number: &str, unit: u128) -> Result<u128, Error> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(Error::NotGo);
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| Error::TooLong)? };
    let (mut nanos, mut unit) = (whole.checked_mul(unit).ok_or(Error::TooLong)?, unit * 1_000_000);
    for digit in fraction.bytes() {
        unit /= 10;
        nanos = nanos.saturating_add(u128::from(digit - b'0') * unit / 1_000_000);
    }
    Ok(nanos)
}

#[cfg(test)]
mod tests {
    use super::{Error, for_gateway, parse_gateway, parse_go};
    use std::borrow::Cow;
    use std::time::Duration;

    #[test]
    fn durations_of_go_are_read() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("500ms", 500),
            (".5s", 500),
            ("1.s", 1_000),
            ("1000us", 1),
            ("1000000ns", 1),
            ("+2s", 2_000),
            ("1m1m", 120_000),
            ("100000s", 100_000_000),
        ] {
            assert_eq!(parse_go(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "1", "s", "1x", "-1s", ".s", "1.2.3s", "1 s", "1s ", "1h30"] {
            assert_eq!(parse_go(bad), Err(Error::NotGo), "{bad}");
        }
        assert_eq!(parse_go("9999999h"), Err(Error::TooLong));
        assert_eq!(parse_go(&format!("{}h", "9".repeat(60))), Err(Error::TooLong));
    }

    #[test]
    fn route_timeouts_have_four_parts_of_five_digits_at_most() {
        for (text, millis) in [("0s", 0), ("0m", 0), ("300s", 300_000), ("1h2m3s4ms", 3_723_004), ("99999ms", 99_999)] {
            assert_eq!(parse_gateway(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "0", "100000s", "1.5s", "1h1h1h1h1h", "1us", "s", "1s1", "-1s", "1 s", "1d"] {
            assert_eq!(parse_gateway(bad), Err(Error::NotGateway), "{bad}");
        }
    }

    #[test]
    fn durations_that_the_gateway_api_accepts_stay_unchanged() {
        for text in ["120s", "1h30m", "0m", "0s", "99999s", "1h1m1s1ms", "007s"] {
            assert_eq!(for_gateway(text), Ok(Cow::Borrowed(text)));
        }
    }

    #[test]
    fn longer_numbers_are_rewritten() {
        assert_eq!(for_gateway("100000s").unwrap(), "27h46m40s");
        assert_eq!(for_gateway("000000s").unwrap(), "0s");
        assert_eq!(for_gateway("123456ms").unwrap(), "2m3s456ms");
    }

    #[test]
    fn a_duration_beyond_the_largest_number_is_too_long() {
        for text in ["360000000s", "100000h", "99999999999999999999999999999999999999999999s"] {
            assert_eq!(for_gateway(text).unwrap_err(), Error::TooLong, "{text}");
        }
    }

    #[test]
    fn anything_else_is_malformed() {
        for text in ["", "5 minutes", "s", "5", "5d", "1s1s1s1s1s", "-1s", "1.5s", "5é", "é5s"] {
            assert_eq!(for_gateway(text).unwrap_err(), Error::NotGateway, "{text}");
        }
    }
}
