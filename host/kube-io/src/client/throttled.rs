//! Converts the answers with which an overloaded server asks the client to wait.
//!
//! The server's priority and fairness filter, and proxies in front of the server, send such answers: status 429 or 503,
//! with plain text and the header `Retry-After`. Clients read the wait only from a `Status`, so this module converts an
//! answer with this header to a `Status`.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use serde_json::json;

/// Returns the `Status` that replaces the body of an answer. Returns `None` if the body is already a `Status`, or if
/// the answer does not ask the client to wait.
pub(super) fn status_of(code: StatusCode, headers: &HeaderMap) -> Option<Bytes> {
    if !matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_status = text(CONTENT_TYPE).starts_with("application/json");
    // Ignore a date in this header: Kubernetes servers send only seconds.
    let seconds: u32 = text(RETRY_AFTER).trim().parse().ok()?;
    let reason = if code == StatusCode::TOO_MANY_REQUESTS { "TooManyRequests" } else { "ServiceUnavailable" };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code.as_u16(), "reason": reason,
        "message": format!("the server asks to wait {seconds} s before the next request"),
        "details": {"retryAfterSeconds": seconds},
    });
    (!is_status).then(|| Bytes::from(status.to_string()))
}

/// Adapts the headers of an answer whose body the client replaced.
pub(super) fn retell(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: u16, content_type: &'static str, retry_after: &'static str) -> Option<serde_json::Value> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if !retry_after.is_empty() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
        }
        let status = status_of(StatusCode::from_u16(code).unwrap(), &headers)?;
        Some(serde_json::from_slice(&status).unwrap())
    }

    #[test]
    fn a_line_of_text_with_a_wait_becomes_a_status_with_the_wait() {
        for code in [429, 503] {
            let status = told(code, "text/plain; charset=utf-8", "7").unwrap();
            assert_eq!((&status["details"]["retryAfterSeconds"], &status["code"]), (&json!(7), &json!(code)));
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        assert_eq!(told(429, "application/json", "7"), None);
        assert_eq!(told(429, "text/plain", ""), None);
        assert_eq!(told(429, "text/plain", "Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(told(500, "text/plain", "7"), None);
    }
}
