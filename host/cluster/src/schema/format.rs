//! The string formats that the API server checks. The API server ignores all other formats.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns whether `text` has the named format. Unknown formats always match.
pub(super) fn holds(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
        "duration" => is_duration(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "uri" => text.split_once(':').is_some_and(|(scheme, _)| !scheme.is_empty()) || text.starts_with('/'),
        "uuid" => {
            text.len() == 36
                && text.bytes().enumerate().all(|(at, byte)| {
                    if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() }
                })
        }
        "byte" => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.decode(text).is_ok()
        }
        _ => true,
    }
}

/// Returns whether `text` is a Go duration: signed numbers with units, such as `1h30m` or `250ms`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"].into_iter().filter(|unit| rest[number..].starts_with(unit));
        let Some(unit) = unit.max_by_key(|unit| unit.len()) else { return false };
        if number == 0 {
            return false;
        }
        rest = &rest[number + unit.len()..];
        parts += 1;
    }
    parts > 0
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn go_durations_are_distinguished_from_other_text() {
        assert!(["30s", "1h30m", "250ms", "1.5h", "0"].iter().all(|text| holds("duration", text)));
        assert!(!["", "30", "s", "5 s", "1d"].iter().any(|text| holds("duration", text)));
    }
}
