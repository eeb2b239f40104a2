//! Converts times to and from the format of Kubernetes.

use std::time::Duration;

use jiff::Timestamp;

/// Formats a time as Kubernetes does.
pub(crate) fn written(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Parses a time. Returns `None` if the text is missing or is not a time.
pub(crate) fn parsed(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

/// Returns the duration from the time in a text until now. Returns zero if the time is missing, invalid or in the
/// future.
pub(crate) fn passed(since: Option<&str>, now: Timestamp) -> Duration {
    let passed = parsed(since).map(|since| now.duration_since(since));
    passed.and_then(|passed| Duration::try_from(passed).ok()).unwrap_or_default()
}
