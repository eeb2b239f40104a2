//! The cells of Jobs and `PodDisruptionBudget`s.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::human;
use crate::clock;

/// Returns status, completions, duration and age of a Job.
pub(super) fn job(object: &Value, created: Value, now: Timestamp) -> [Value; 4] {
    let (spec, status) = (&object["spec"], &object["status"]);
    let holds = |of: &str| {
        let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        conditions.iter().any(|condition| condition["type"] == *of && condition["status"] == "True")
    };
    let state = match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if object["metadata"]["deletionTimestamp"].is_string() => "Terminating",
        () if spec["suspend"] == true => "Suspended",
        () => "Running",
    };
    let succeeded = status["succeeded"].as_i64().unwrap_or_default();
    let completions = match (spec["completions"].as_i64(), spec["parallelism"].as_i64().unwrap_or_default()) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let time = |field: &str| status[field].as_str().and_then(clock::parse);
    let duration = time("startTime").map_or_else(String::new, |start| {
        let end = time("completionTime").unwrap_or(now);
        human(u64::try_from(end.duration_since(start).as_secs()).unwrap_or_default())
    });
    [json!(state), json!(completions), json!(duration), created]
}

/// Returns the bounds, the allowed disruptions and the age of a `PodDisruptionBudget`.
pub(super) fn budget(object: &Value, created: Value) -> [Value; 4] {
    let bound = |field: &str| match &object["spec"][field] {
        Value::Null => json!("N/A"),
        Value::String(text) => json!(text),
        number => json!(number.to_string()),
    };
    let allowed = object["status"]["disruptionsAllowed"].as_i64().unwrap_or_default();
    [bound("minAvailable"), bound("maxUnavailable"), json!(allowed), created]
}
