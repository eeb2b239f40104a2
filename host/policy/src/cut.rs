//! Texts of users, policies and servers in messages: cut where they get longer than anybody reads.

use std::borrow::Cow;

/// Bytes of a value that a message repeats.
pub const VALUE: usize = 120;
/// Bytes of an Event's note, which may have a kilobyte.
pub const NOTE: usize = 1000;
/// Bytes of a message in a status: room for everything that is wrong with an ordinary object. An API server takes 32
/// kilobytes, and a list of a thousand objects has a thousand of them.
pub const STATUS: usize = 4000;

/// A text of at most `most` bytes: the text, or its beginning with a mark that there is more.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    const MORE: char = '…';
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most.saturating_sub(MORE.len_utf8()));
    Cow::Owned(format!("{}{MORE}", &text[..end]))
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
}
