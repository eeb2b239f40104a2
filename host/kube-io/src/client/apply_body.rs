//! Escapes the body of a server-side apply, so that the API server reads the intended text.
//!
//! The API server reads these bodies as YAML, even if they are JSON. The server's YAML parser turns U+0085 into a
//! space, and rejects other control characters without naming the field. But the parser accepts a JSON escape in place
//! of each of these characters, and restores the character. Characters beyond U+FFFF stay unescaped: JSON escapes such
//! a character as a pair of escapes, and YAML does not support these pairs.

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderValue, Request, header::CONTENT_LENGTH, header::CONTENT_TYPE};
use kube::client::Body;

const APPLY_CONTENT_TYPE: &str = "application/apply-patch+yaml";

/// Returns the request, with an escaped body if the server reads the body as YAML.
pub(super) fn escaped(request: Request<Body>) -> Request<Body> {
    if request.headers().get(CONTENT_TYPE).is_none_or(|media_type| media_type != APPLY_CONTENT_TYPE) {
        return request;
    }
    let (mut parts, body) = request.into_parts();
    // The operator sends every body as bytes and never as a stream. So the whole body is available without waiting.
    let Some(copy) = body.try_clone() else { return Request::from_parts(parts, body) };
    let Some(Ok(text)) = copy.collect_bytes().now_or_never() else { return Request::from_parts(parts, body) };
    match escape(&text) {
        Some(escaped) => {
            if parts.headers.contains_key(CONTENT_LENGTH) {
                parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(escaped.len()));
            }
            Request::from_parts(parts, Body::from(Bytes::from(escaped)))
        }
        None => Request::from_parts(parts, body),
    }
}

/// Escapes every character that YAML would change or reject. Returns `None` if no character must be escaped. Such
/// characters occur only inside strings, because JSON outside of strings is ASCII.
fn escape(json: &[u8]) -> Option<Vec<u8>> {
    // In UTF-8, every character that must be escaped begins with one of the bytes below.
    if !json.iter().any(|byte| matches!(byte, 0x7f | 0xc2 | 0xe2 | 0xef)) {
        return None;
    }
    let text = std::str::from_utf8(json).ok()?;
    if !text.chars().any(is_special) {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_special(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    Some(escaped.into_bytes())
}

fn is_special(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_escaped_body_is_the_same_json() {
        let text: String = ('\u{1}'..='\u{10ffff}').collect();
        let body = json!({"data": {"k": text}}).to_string();
        let escaped = escape(body.as_bytes()).unwrap();
        assert!(!String::from_utf8(escaped.clone()).unwrap().chars().any(is_special));
        let (before, after): (Value, Value) =
            (serde_json::from_str(&body).unwrap(), serde_json::from_slice(&escaped).unwrap());
        assert!(before == after);
    }

    #[test]
    fn a_body_without_such_characters_is_sent_as_it_is() {
        for text in ["", "plain", "grüß dich", "日本語", "😀"] {
            assert_eq!(escape(json!({"k": text}).to_string().as_bytes()), None, "{text}");
        }
    }

    #[tokio::test]
    async fn only_bodies_that_are_read_as_yaml_are_changed() {
        let body = "{\"k\":\"a\u{85}b\"}";
        for (media_type, wanted) in
            [(APPLY_CONTENT_TYPE, r#"{"k":"a\u0085b"}"#), ("application/merge-patch+json", body)]
        {
            let request = Request::patch("/").header(CONTENT_TYPE, media_type).header(CONTENT_LENGTH, body.len());
            let sent = escaped(request.body(Body::from(body.as_bytes().to_vec())).unwrap());
            assert_eq!(sent.headers()[CONTENT_LENGTH], wanted.len().to_string());
            assert_eq!(sent.into_body().collect_bytes().await.unwrap(), wanted);
        }
    }
}
