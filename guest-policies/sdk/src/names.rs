//! Shortens and checks names and labels.

use alloc::{borrow::ToOwned, string::String};

/// The maximum length of a Service's name and of a label's value.
pub const LABEL_MAX: usize = 63;

const SUBDOMAIN_MAX: usize = 253;
const HASH_LEN: usize = 8;

/// Returns `name` if it has at most `max` bytes. Otherwise returns the beginning of `name` and a hash of the whole
/// name, so that different names stay different. A valid name stays valid if `max` is at least 10.
pub fn shorten(name: &str, max: usize) -> String {
    if name.len() <= max {
        return name.to_owned();
    }
    let room = max.saturating_sub(HASH_LEN + 1);
    let end = (0..=room).rev().find(|end| name.is_char_boundary(*end)).unwrap_or_default();
    let kept = name[..end].trim_end_matches(['-', '.', '_']);
    format!("{kept}-{:08x}", hash(name))
}

/// Returns the 64-bit FNV-1a hash of `text`, folded to 32 bits. Accidental collisions are unlikely. Deliberate
/// collisions are possible.
fn hash(text: &str) -> u32 {
    let long = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    u32::try_from((long >> 32) ^ (long & 0xffff_ffff)).unwrap_or_default()
}

/// Returns why `name` is not a DNS-1123 label (the name of a container or namespace). `None` if `name` is valid.
pub fn dns1123_label(name: &str) -> Option<String> {
    label(name, LABEL_MAX, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), "a lower-case letter or a digit")
}

/// Returns why `name` is not a DNS-1035 label (the name of a Service). `None` if `name` is valid.
pub fn dns1035_label(name: &str) -> Option<String> {
    label(name, LABEL_MAX, |c| c.is_ascii_lowercase(), "a lower-case letter")
}

/// Returns why `name` is not a DNS-1123 subdomain (the name of most objects). `None` if `name` is valid.
pub fn dns1123_subdomain(name: &str) -> Option<String> {
    if name.len() > SUBDOMAIN_MAX {
        return Some(too_long(name, SUBDOMAIN_MAX));
    }
    name.split('.').find_map(|part| {
        label(part, SUBDOMAIN_MAX, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), "a lower-case letter or a digit")
    })
}

/// Returns whether `name` is a DNS-1123 subdomain, without building a message.
pub fn is_dns1123_subdomain(name: &str) -> bool {
    name.len() <= SUBDOMAIN_MAX && name.split('.').all(|part| is_label(part, SUBDOMAIN_MAX, true))
}

/// Returns whether `name` is a DNS-1035 label, without building a message.
pub fn is_dns1035_label(name: &str) -> bool {
    is_label(name, LABEL_MAX, false)
}

fn is_label(name: &str, max: usize, digit_first: bool) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = |byte: &u8| byte.is_ascii_lowercase() || (digit_first && byte.is_ascii_digit());
    let bytes = name.as_bytes();
    bytes.len() <= max
        && bytes.first().is_some_and(begins)
        && bytes.iter().all(|byte| is_inner(*byte))
        && !name.ends_with('-')
}

/// Returns why `value` is not a label value. `None` if `value` is valid. The empty text is a valid label value.
pub fn label_value(value: &str) -> Option<String> {
    if value.is_empty() { None } else { word(value) }
}

/// Returns why `key` is not a key of a label or annotation. `None` if `key` is valid.
pub fn qualified_name(key: &str) -> Option<String> {
    match key.split_once('/') {
        Some((prefix, name)) => dns1123_subdomain(prefix).or_else(|| word(name)),
        None => word(key),
    }
}

fn word(text: &str) -> Option<String> {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.len() > LABEL_MAX {
        Some(too_long(text, LABEL_MAX))
    } else if !text.chars().all(inner) {
        Some("must consist of letters, digits, '-', '_' and '.'".to_owned())
    } else if text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    {
        None
    } else {
        Some("must start and end with a letter or a digit".to_owned())
    }
}

fn label(name: &str, max: usize, first: fn(char) -> bool, starts: &str) -> Option<String> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() > max {
        Some(too_long(name, max))
    } else if !name.starts_with(first) {
        Some(format!("must start with {starts}"))
    } else if !name.chars().all(inner) {
        Some("must consist of lower-case letters, digits and '-'".to_owned())
    } else if name.ends_with('-') {
        Some("must end with a lower-case letter or a digit".to_owned())
    } else {
        None
    }
}

fn too_long(name: &str, max: usize) -> String {
    format!("must be at most {max} characters long, not {length}", length = name.len())
}

#[cfg(test)]
mod tests {
    use super::{LABEL_MAX, dns1035_label, dns1123_label, dns1123_subdomain, label_value, qualified_name, shorten};

    #[test]
    fn short_names_stay_and_long_ones_stay_apart() {
        assert_eq!(shorten("agent-a", LABEL_MAX), "agent-a");
        let (one, two) = ("x".repeat(70), format!("{}y", "x".repeat(69)));
        let (one, two) = (shorten(&one, LABEL_MAX), shorten(&two, LABEL_MAX));
        assert_eq!((one.len(), two.len()), (LABEL_MAX, LABEL_MAX));
        assert_ne!(one, two);
        assert_eq!(dns1123_label(&one), None);
        let dashes = format!("a{}b", "-".repeat(80));
        assert_eq!(dns1035_label(&shorten(&dashes, LABEL_MAX)), None);
        assert!(shorten(&"é".repeat(60), LABEL_MAX).len() <= LABEL_MAX);
    }

    #[test]
    fn a_shortened_name_is_the_same_on_every_machine() {
        assert_eq!(shorten(&"kaos".repeat(20), 20), shorten(&"kaos".repeat(20), 20));
        assert_eq!(shorten("abcdefghijklmnopqrstuvwxyz", 20), "abcdefghijk-49935c13");
    }

    #[test]
    fn names_are_checked_with_the_rules_of_an_api_server() {
        for good in ["a", "a-1", "a1"] {
            assert_eq!((dns1123_label(good), dns1035_label(good)), (None, None), "{good}");
        }
        assert!(dns1123_label("1a").is_none() && dns1035_label("1a").is_some());
        for bad in ["", "A", "a-", "-a", "a_b", "a.b", "é", &"a".repeat(64)] {
            assert!(dns1123_label(bad).is_some() && dns1035_label(bad).is_some(), "{bad}");
        }
        assert!(dns1123_subdomain("a.b-c.1d").is_none());
        for bad in ["a..b", ".a", "a.", "A.b", &"a".repeat(254)] {
            assert!(dns1123_subdomain(bad).is_some(), "{bad}");
        }
        assert!(label_value("").is_none() && label_value("A_b.c-1").is_none());
        assert!(label_value("-a").is_some() && label_value("a b").is_some() && label_value(&"a".repeat(64)).is_some());
        assert!(qualified_name("kaos.tools/A_b").is_none() && qualified_name("app").is_none());
        for bad in ["/a", "a/", "A.b/c", "a/b/c", ""] {
            assert!(qualified_name(bad).is_some(), "{bad}");
        }
    }
}
