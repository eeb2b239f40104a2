//! Quotes for POSIX shells.

use alloc::{borrow::ToOwned, string::String};

/// Returns `text` as one word of a POSIX shell. Plain words stay unchanged. Removes each NUL character, because an
/// argument of a program cannot contain it.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '+' | ',' | '-' | '.' | '/' | ':' | '@' | '_');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        match c {
            '\'' => quoted.push_str("'\\''"),
            '\0' => {}
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}
