//! Shortens texts of users, policies and servers for messages. The result is one line that people can read in full,
//! without characters that control a terminal.

use std::borrow::Cow;

use crate::printable::printable;

/// The maximum length of a value in a message, in bytes.
pub const VALUE: usize = 120;
/// The maximum length of an Event's note, in bytes. Kubernetes accepts a kilobyte.
pub const NOTE: usize = 1000;
/// The maximum length of a message in a status, in bytes. All problems of an ordinary object fit into one message. An
/// API server accepts 32 kilobytes. But then the messages in a list of a thousand objects could have 32 megabytes.
pub const STATUS: usize = 4000;

/// Escapes a text as [`printable`] does, and cuts it to at most `most` bytes. A cut text ends with `…`.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    const MORE: char = '…';
    // Escaping never makes a text shorter. So this function reads no more than one character beyond the limit.
    let shown = printable(&text[..text.floor_char_boundary(most.saturating_add(char::MAX.len_utf8()))]);
    if shown.len() <= most {
        return shown;
    }
    let end = shown.floor_char_boundary(most.saturating_sub(MORE.len_utf8()));
    Cow::Owned(format!("{}{MORE}", &shown[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_marked() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "lo…");
        let cut = cut(&"ä".repeat(2000), NOTE).into_owned();
        assert!(cut.len() <= NOTE && cut.ends_with("ä…"), "{cut}");
    }

    #[test]
    fn a_text_that_controls_a_terminal_is_escaped_within_the_limit() {
        assert_eq!(cut("a\u{1b}[2J\r\n", 40), "a\\u{1b}[2J\\r\\n");
        let cut = cut(&"\u{1b}".repeat(NOTE), NOTE).into_owned();
        assert!(cut.len() <= NOTE && cut.ends_with('…') && !cut.contains('\u{1b}'), "{cut}");
    }
}
