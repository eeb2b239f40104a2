//! Times as Kubernetes writes them.

use std::time::Duration;

use jiff::Timestamp;

/// A time as Kubernetes writes it.
pub(crate) fn written(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time that was written so; none where no time stands there.
pub(crate) fn parsed(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

/// How long ago a time was that was written; no time at all where none was, or it is yet to come.
pub(crate) fn passed(since: Option<&str>, now: Timestamp) -> Duration {
    let passed = parsed(since).map(|since| now.duration_since(since));
    passed.and_then(|passed| Duration::try_from(passed).ok()).unwrap_or_default()
}
