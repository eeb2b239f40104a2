//! Escapes texts of users, policies and servers for terminals, tables and logs. Escapes control characters, and
//! characters that hide other characters.
//!
//! [`mod@crate::cut`] escapes every message, so conditions and Events are safe to print. Logs and the command line
//! escape all text that they write.

use std::{borrow::Cow, fmt::Write};

/// Escapes a text, including its line breaks, so that the result is one line.
pub fn printable(text: &str) -> Cow<'_, str> {
    written_out(text, |_| false, |shown, c| shown.extend(shortest(c)))
}

/// Escapes a text, but keeps line breaks and tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |c| matches!(c, '\n' | '\t'), |shown, c| shown.extend(shortest(c)))
}

/// Escapes JSON text without changing its meaning. In JSON, only strings can contain characters that this function
/// escapes.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    written_out(
        json,
        |c| matches!(c, '\n' | '\t' | '\r'),
        |shown, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        },
    )
}

/// Returns a text as a double-quoted YAML scalar. A YAML parser reads the original text from this scalar. Returns
/// `None` if the text has no character to escape.
pub fn quoted_yaml(text: &str) -> Option<String> {
    if matches!(printable_lines(text), Cow::Borrowed(_)) {
        return None;
    }
    let mut scalar = String::with_capacity(text.len() + 16);
    scalar.push('"');
    for c in text.chars() {
        let _ = match c {
            '"' | '\\' => write!(scalar, "\\{c}"),
            '\n' => write!(scalar, "\\n"),
            '\t' => write!(scalar, "\\t"),
            _ if !is_obeyed_or_unseen(c) => write!(scalar, "{c}"),
            '\u{10000}'.. => write!(scalar, "\\U{:08X}", u32::from(c)),
            _ => write!(scalar, "\\u{:04X}", u32::from(c)),
        };
    }
    scalar.push('"');
    Some(scalar)
}

/// Returns the shortest escape of a character, such as `\n` or `\u{1b}`.
fn shortest(c: char) -> impl Iterator<Item = char> {
    let (control, other) =
        if c.is_control() { (Some(c.escape_default()), None) } else { (None, Some(c.escape_unicode())) };
    control.into_iter().flatten().chain(other.into_iter().flatten())
}

fn written_out(text: &str, keep: fn(char) -> bool, write: fn(&mut String, char)) -> Cow<'_, str> {
    let is_hidden =
        |(at, c): (usize, char)| is_obeyed_or_unseen(c) && !keep(c) && !(is_joiner(c) && joins(text, at, c));
    let Some((first, _)) = text.char_indices().find(|found| is_hidden(*found)) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < first) {
        if is_hidden((at, c)) { write(&mut shown, c) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Returns whether a character controls a terminal or is invisible: control characters, line separators, changes of the
/// writing direction, and characters without width.
fn is_obeyed_or_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Returns whether a joiner is between letters of a writing system that uses joiners. ASCII letters never need joiners.
fn joins(text: &str, at: usize, joiner: char) -> bool {
    let is_foreign = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_obeyed_or_unseen(c));
    is_foreign(text[..at].chars().next_back()) && is_foreign(text[at + joiner.len_utf8()..].chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_controls_a_terminal_is_escaped_to_one_line() {
        for (text, shown) in [
            ("ready\u{1b}[2J", "ready\\u{1b}[2J"),
            ("a\r\n2026-01-01 ERROR forged", "a\\r\\n2026-01-01 ERROR forged"),
            ("a\tb\u{7}\u{7f}\u{9b}0m", "a\\tb\\u{7}\\u{7f}\\u{9b}0m"),
            ("\u{202e}ydaer\u{2066}", "\\u{202e}ydaer\\u{2066}"),
            ("re\u{200b}ady\u{feff}\u{2028}\u{e0041}", "re\\u{200b}ady\\u{feff}\\u{2028}\\u{e0041}"),
            ("re\u{200d}ady\u{200c}", "re\\u{200d}ady\\u{200c}"),
        ] {
            assert_eq!(printable(text), shown);
            assert_eq!(printable(shown), shown, "an escaped text does not change again");
        }
    }

    #[test]
    fn letters_of_every_script_stay_and_line_breaks_where_allowed() {
        for text in ["", "spec.a: é \\n 漢字 ✔", "می\u{200c}خواهم", "\u{1f468}\u{200d}\u{1f469}"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text}");
        }
        assert_eq!(printable_lines("a\n\tb\r\u{1b}"), "a\n\tb\\r\\u{1b}");
    }

    #[test]
    fn a_yaml_scalar_is_quoted_only_if_it_has_characters_to_escape() {
        assert_eq!(quoted_yaml("a\n\té \"\\"), None);
        let scalar = quoted_yaml("\u{202e}a\n\"\\\u{9b}\u{e0041}");
        assert_eq!(scalar.as_deref(), Some(r#""\u202Ea\n\"\\\u009B\U000E0041""#));
    }

    #[test]
    fn escaped_json_has_the_same_meaning() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}[2J\n", "\u{202e}", "\u{e0041}", "é"]});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = printable_json(&text).into_owned();
        assert!(shown.contains("\\u009b") && shown.contains("\\u202e") && shown.contains("\\udb40\\udc41"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
