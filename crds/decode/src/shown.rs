//! Shortens and escapes texts of users for messages.

use alloc::string::String;
use core::fmt::Write;

/// The maximum number of characters of a user's text in a message. Without this limit, a text of a megabyte would not
/// fit into a status.
pub const SHOWN: usize = 200;

/// Returns at most `most` characters of `text` on one line. Escapes characters that control a terminal or are
/// invisible. Unlike `escape_debug`, the function needs no Unicode tables, which would add kilobytes to a component.
pub fn shown(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for c in text.chars().take(most) {
        match c {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_control() || is_hidden(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Returns whether a character joins other characters, changes the direction of text, or has no width.
const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_text_is_shown_on_one_line_with_nothing_hidden() {
        assert_eq!(shown("größe 'a' \"b\" \\", 99), "größe 'a' \\\"b\\\" \\\\");
        assert_eq!(shown("a\nb\t\u{1b}[31m\u{202e}x\u{85}", 99), "a\\nb\\t\\u{1b}[31m\\u{202e}x\\u{85}");
        assert_eq!(shown("äbc", 2), "äb");
    }
}
