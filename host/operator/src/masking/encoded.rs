//! Encoded forms of secret values: base64, percent encoding, and escapes of JSON.

use std::ops::Range;

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Value;

/// The minimum length, in bytes, of an encoded part that this module decodes.
const SHORTEST: usize = 8;

/// Reads and writes base64 with or without padding, because different clients use both.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_encode_padding(false)
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const ENGINES: [GeneralPurpose; 2] = [GeneralPurpose::new(&STANDARD, LENIENT), GeneralPurpose::new(&URL_SAFE, LENIENT)];

/// Returns the encoded forms of a value that can occur in another text.
pub(super) fn forms(value: &str) -> Vec<String> {
    let mut forms: Vec<String> = ENGINES.iter().map(|engine| engine.encode(value)).collect();
    // Remove the last character of the base64 form, because it also depends on the bytes after the value if the value
    // is a part of a longer text.
    for form in &mut forms {
        if !value.len().is_multiple_of(3) && form.len() > SHORTEST {
            form.pop();
        }
    }
    let escaped = Value::from(value).to_string();
    forms.extend(escaped.get(1..escaped.len() - 1).map(str::to_owned));
    forms.extend([percent(value, false), percent(value, true)]);
    forms.retain(|form| form != value);
    forms
}

/// Encodes a value as a part of a URL, with hexadecimal digits in lower or upper case.
fn percent(value: &str, is_lower: bool) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ if is_lower => encoded += &format!("%{byte:02x}"),
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

/// Decodes a base64 text.
pub(super) fn decoded(text: &str) -> Option<String> {
    let text = text.trim();
    let bytes = ENGINES.iter().find_map(|engine| engine.decode(text).ok())?;
    let text = String::from_utf8(bytes).ok()?;
    let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    (!text.is_empty() && text.chars().all(is_shown)).then_some(text)
}

/// Returns the parts of a text that contain another text in base64, each with the decoded text.
pub(super) fn parts(text: &str) -> Vec<(Range<usize>, String)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_');
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find(is_part) {
        let start = at + start;
        let end = text[start..].find(|c: char| !is_part(c)).map_or(text.len(), |length| start + length);
        if end - start >= SHORTEST
            && let Some(decoded) = decoded(&text[start..end])
        {
            let padding = text[end..].len() - text[end..].trim_start_matches('=').len();
            found.push((start..end + padding.min(2), decoded));
        }
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_found_with_and_without_padding() {
        for text in ["auth=dXNlcjpwYXNzd29yZA==;", "auth=dXNlcjpwYXNzd29yZA;", "auth=dXNlcjpwYXNzd29yZA"] {
            let [(range, decoded)] = &parts(text)[..] else { panic!("{text}") };
            assert_eq!((decoded.as_str(), &text[..range.start]), ("user:password", "auth="));
            assert!(!text[range.end..].contains('='));
        }
        assert!(parts("registry.example/agents/kaos-agent:2").is_empty());
    }

    #[test]
    fn a_value_is_known_in_its_encoded_forms() {
        let forms = forms("a \"b\" ü+1");
        for form in ["a \\\"b\\\" ü+1", "a%20%22b%22%20%C3%BC%2B1", "a%20%22b%22%20%c3%bc%2b1"] {
            assert!(forms.iter().any(|it| it == form), "{form}: {forms:?}");
        }
    }
}
