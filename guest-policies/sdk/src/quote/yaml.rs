//! Quotes for YAML.

use alloc::string::String;
use core::fmt::Write;

/// Returns `text` as a double-quoted YAML scalar on one line.
pub fn scalar(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if is_plain(c) => quoted.push(c),
            c => {
                let _ = match u32::from(c) {
                    code @ 0..=0xff => write!(quoted, "\\x{code:02x}"),
                    code @ 0x100..=0xffff => write!(quoted, "\\u{code:04x}"),
                    code => write!(quoted, "\\U{code:08x}"),
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether YAML defines `c` as printable, and `c` is neither a line break of YAML 1.1 nor a byte-order mark.
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}
