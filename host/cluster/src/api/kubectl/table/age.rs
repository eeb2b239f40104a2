//! Formats ages as `kubectl get` does.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock;

/// Returns the age of a timestamp in kubectl's format: `5m12s`, `3d4h`.
pub(super) fn age(time: &Value, now: Timestamp) -> Value {
    let Some(then) = time.as_str().and_then(clock::parse) else { return json!("<unknown>") };
    let since = Duration::try_from(now.duration_since(then)).unwrap_or_default();
    json!(human(since.as_secs()))
}

pub(super) fn human(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let pair = |whole: u64, unit: &str, part: u64, small: &str| {
        if part == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{part}{small}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn ages_get_coarser_as_they_grow() {
        for (seconds, text) in [
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (130, "2m10s"),
            (3600, "60m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
            (864_000, "10d"),
        ] {
            assert_eq!(human(seconds), text);
        }
    }
}
