//! The state of an object, and the condition that explains it. The module `state` reads the state of each kind.

use serde::Serialize;
use serde_json::Value;

use crate::status::conditions::{ACCEPTED, APPLIED, READY, RESOLVED, condition, is_true};

/// Whether an object serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::cli) enum HealthState {
    /// The object serves, or is complete.
    Ready,
    /// The object exists, and its kind has no state.
    Exists,
    /// The object does not serve yet. This may change without an action of a person.
    NotReady,
    /// The object does not serve until a person acts.
    Stalled,
    /// The object does not exist.
    Missing,
    /// The state is unknown, because the user may not read the object.
    Unknown,
}

impl HealthState {
    /// Returns the word for people.
    pub(in crate::cli) fn word(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Exists => "Exists",
            Self::NotReady => "NotReady",
            Self::Stalled => "Stalled",
            Self::Missing => "Missing",
            Self::Unknown => "Unknown",
        }
    }

    /// Returns whether the object needs attention.
    pub(in crate::cli) fn is_open(self) -> bool {
        matches!(self, Self::NotReady | Self::Stalled | Self::Missing)
    }
}

/// The state of an object, and a line about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    pub(super) state: HealthState,
    pub(super) line: String,
}

impl Health {
    /// Creates a state with a line about it.
    pub(super) fn new(state: HealthState, line: impl Into<String>) -> Self {
        Self { state, line: line.into() }
    }

    /// Creates the state of an object that is ready or not ready yet, with a line about it.
    pub(super) fn ready_if(is_ready: bool, line: impl Into<String>) -> Self {
        Self::new(if is_ready { HealthState::Ready } else { HealthState::NotReady }, line)
    }
}

/// Returns the condition that best explains why an object with a policy is not ready. Prefers a refusal (`Accepted` is
/// `False`), and then `Resolved`. Otherwise, returns the first condition that is not true, in the order in which a pass
/// sets the conditions.
pub(super) fn first_open(object: &Value) -> Option<&Value> {
    let is_open = |condition: &&Value| condition["status"] != "True";
    // While the object waits for another object, `Accepted` is `Unknown`, and `Resolved` names the other object.
    let order = [ACCEPTED, RESOLVED, APPLIED, READY];
    let open: Vec<&Value> = order.iter().filter_map(|of| condition(object, of)).filter(is_open).collect();
    let refused = open.iter().find(|condition| condition["type"] == ACCEPTED && condition["status"] == "False");
    let is_ready = is_true(object, READY);
    refused.or_else(|| open.iter().find(|it| it["type"] == RESOLVED && !is_ready)).or(open.first()).copied()
}

/// Returns whether the operator has worked on the newest generation of an object.
pub(super) fn is_seen(object: &Value) -> bool {
    let seen = object["status"]["observedGeneration"].as_i64();
    let newest = object["metadata"]["generation"].as_i64();
    !object["status"].is_null() && seen.is_some_and(|seen| seen >= 0 && newest.is_none_or(|newest| seen >= newest))
}

/// Formats a condition: its reason, and its message if it has one.
pub(super) fn told(condition: &Value) -> String {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    match (text("reason"), text("message")) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}
