//! Treats the raw text of a body as a real server's YAML parser does. A real server's parser refuses most control
//! characters. The parser also treats U+0085 as a line break, and converts a line break within a text to a space.

use std::borrow::Cow;

use crate::status::ApiError;

/// Returns the text in the form that the real server's parser reads.
pub(super) fn read(text: &str) -> Result<Cow<'_, str>, ApiError> {
    let is_refused = |c: char| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(is_refused) {
        return Err(ApiError::bad_request(
            "error decoding YAML: error converting YAML to JSON: yaml: control characters are not allowed",
        ));
    }
    Ok(if text.contains('\u{85}') { Cow::Owned(text.replace('\u{85}', " ")) } else { Cow::Borrowed(text) })
}
