//! Texts of users, policies and servers in messages: in one line, without characters that a terminal obeys, and cut where
//! they get longer than anybody reads.

use std::borrow::Cow;

use crate::printable::printable;

/// Bytes of a value that a message repeats.
pub const VALUE: usize = 120;
/// Bytes of an Event's note, which may have a kilobyte.
pub const NOTE: usize = 1000;
/// Bytes of a message in a status: room for everything that is wrong with an ordinary object. An API server takes 32
/// kilobytes, and a list of a thousand objects has a thousand of them.
pub const STATUS: usize = 4000;

/// A [`printable`] text of at most `most` bytes: the text, or its beginning with a mark that there is more.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    const MORE: char = '…';
    // Written out it is longer and not shorter: one character more than there is room for is enough to look at.
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
    fn a_long_text_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "lo…");
        let cut = cut(&"ä".repeat(2000), NOTE).into_owned();
        assert!(cut.len() <= NOTE && cut.ends_with("ä…"), "{cut}");
    }

    #[test]
    fn a_text_that_would_steer_a_terminal_is_written_out_and_still_fits() {
        assert_eq!(cut("a\u{1b}[2J\r\n", 40), "a\\u{1b}[2J\\r\\n");
        let cut = cut(&"\u{1b}".repeat(NOTE), NOTE).into_owned();
        assert!(cut.len() <= NOTE && cut.ends_with('…') && !cut.contains('\u{1b}'), "{cut}");
    }
}
