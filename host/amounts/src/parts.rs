//! Splits an amount into sign, digits and the scale of its suffix.

/// The factor of a suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// A power of ten: the amount has a suffix letter, or no suffix.
    Tens(i32),
    /// A power of ten: the amount has an exponent, such as `e3`.
    Scientific(i32),
    /// A power of two: the amount has a suffix such as `Ki`.
    Bits(u32),
}

/// Suffixes of powers of ten, the largest first.
pub(crate) const TENS: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];
/// Suffixes of powers of two, the largest first.
pub(crate) const BITS: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

/// The parts of an amount.
pub(crate) struct Parts<'a> {
    pub(crate) is_negative: bool,
    pub(crate) whole: &'a str,
    pub(crate) fraction: &'a str,
    pub(crate) scale: Scale,
}

impl<'a> Parts<'a> {
    /// Splits an amount. Returns `None` if the text is not an amount.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
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
        Some(Self { is_negative, whole, fraction, scale: scale(suffix)? })
    }
}

fn scale(suffix: &str) -> Option<Scale> {
    if let Some((_, exponent)) = TENS.iter().find(|(name, _)| *name == suffix) {
        return Some(Scale::Tens(*exponent));
    }
    if let Some((_, bits)) = BITS.iter().find(|(name, _)| *name == suffix) {
        return Some(Scale::Bits(*bits));
    }
    Some(Scale::Scientific(suffix.strip_prefix(['e', 'E'])?.parse().ok()?))
}
