//! Timeouts as KAOS writes them, in the spelling that the Gateway API takes.
//!
//! Both allow up to four numbers with a unit (`1h30m`); the Gateway API allows five digits a number and no
//! more. A longer number is spelled anew when it can be: `100000s` is `27h46m40s`.

use alloc::borrow::Cow;
use alloc::{
    string::{String, ToString},
    vec::Vec,
};

const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
/// Numbers of one duration.
const PARTS: usize = 4;
/// Digits of one number in the Gateway API.
const DIGITS: usize = 5;

/// Why a text is no timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// Not of the form `1h30m`.
    Malformed,
    /// Longer than the Gateway API can say (99999 hours).
    TooLong,
}

/// `text` as the Gateway API takes it: itself whenever possible.
pub fn for_gateway(text: &str) -> Result<Cow<'_, str>, Unusable> {
    let parts = parts(text).ok_or(Unusable::Malformed)?;
    if parts.iter().all(|(digits, _)| digits.len() <= DIGITS) {
        return Ok(Cow::Borrowed(text));
    }
    let mut rest: u64 = 0;
    for (digits, unit) in parts {
        let number: u64 = digits.parse().map_err(|_| Unusable::TooLong)?;
        rest = number.checked_mul(unit).and_then(|ms| rest.checked_add(ms)).ok_or(Unusable::TooLong)?;
    }
    let mut spelled = String::new();
    for (unit, size) in UNITS {
        let number = rest / size;
        rest %= size;
        if number > 99_999 {
            return Err(Unusable::TooLong);
        }
        if number > 0 {
            spelled.push_str(&number.to_string());
            spelled.push_str(unit);
        }
    }
    Ok(if spelled.is_empty() { Cow::Borrowed("0s") } else { Cow::Owned(spelled) })
}

/// The numbers of a duration with what their units are worth.
fn parts(mut text: &str) -> Option<Vec<(&str, u64)>> {
    let mut found = Vec::new();
    while !text.is_empty() {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at(digits);
        let letters = rest.bytes().take_while(|c| !c.is_ascii_digit()).count();
        // Between digits and the next digit lies whole characters, so this is always a boundary.
        let (unit, rest) = (rest.get(..letters)?, rest.get(letters..)?);
        let size = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        if digits == 0 || found.len() == PARTS {
            return None;
        }
        found.push((number, size));
        text = rest;
    }
    if found.is_empty() { None } else { Some(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_gateway_api_takes_stays_as_it_was_written() {
        for text in ["120s", "1h30m", "0m", "0s", "99999s", "1h1m1s1ms", "007s"] {
            assert_eq!(for_gateway(text), Ok(Cow::Borrowed(text)));
        }
    }

    #[test]
    fn longer_numbers_are_spelled_anew() {
        assert_eq!(for_gateway("100000s").unwrap(), "27h46m40s");
        assert_eq!(for_gateway("000000s").unwrap(), "0s");
        assert_eq!(for_gateway("123456ms").unwrap(), "2m3s456ms");
    }

    #[test]
    fn what_nobody_can_say_is_too_long() {
        for text in ["360000000s", "100000h", "99999999999999999999999999999999999999999999s"] {
            assert_eq!(for_gateway(text).unwrap_err(), Unusable::TooLong, "{text}");
        }
    }

    #[test]
    fn anything_else_is_malformed() {
        for text in ["", "5 minutes", "s", "5", "5d", "1s1s1s1s1s", "-1s", "1.5s", "5é", "é5s"] {
            assert_eq!(for_gateway(text).unwrap_err(), Unusable::Malformed, "{text}");
        }
    }
}
