//! Formats numbers for messages.

/// Formats a number with commas, such as `40,000`.
pub fn count(number: impl ToString + Copy) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Formats a size, such as `120 bytes` or `36.4 MiB`. Rounds the number up, so that a size above a limit never looks
/// equal to the limit.
pub fn bytes(number: usize) -> String {
    let (unit, name) = match number {
        0..1024 => return format!("{number} bytes"),
        1024..1_048_576 => (1 << 10, "KiB"),
        _ => (1 << 20, "MiB"),
    };
    let tenths = number.saturating_mul(10).div_ceil(unit);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{} {name}", count(whole)),
        (whole, rest) => format!("{}.{rest} {name}", count(whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_sizes_have_units() {
        assert_eq!([count(7), count(999), count(40_000), count(500_000_000)], ["7", "999", "40,000", "500,000,000"]);
        let sizes = [bytes(1023), bytes(1024), bytes(32 << 20), bytes((32 << 20) + 1), bytes(38_076_416)];
        assert_eq!(sizes, ["1023 bytes", "1 KiB", "32 MiB", "32.1 MiB", "36.4 MiB"]);
    }
}
