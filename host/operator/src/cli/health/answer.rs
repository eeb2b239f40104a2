//! The answers of the commands `why`, `status`, `tree` and `events` in the formats for programs, such as JSON.
//! `docs/reference/output` publishes their schemas.

use serde::Serialize;
use serde_json::Value;

use super::{
    graph::last_seen,
    object_health::{Health, HealthState},
    rights::MissingRight,
    trace::{Chain, Relation, TraceStep},
};
use crate::input::Identity;

/// The name of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::cli) struct ObjectName {
    /// The API group; empty for the core group.
    pub(in crate::cli) group: String,
    /// The kind.
    pub(in crate::cli) kind: String,
    /// The namespace; missing for cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) namespace: Option<String>,
    /// The name.
    pub(in crate::cli) name: String,
}

impl From<&Identity> for ObjectName {
    fn from(Identity { group, kind, namespace, name }: &Identity) -> Self {
        Self { group: group.clone(), kind: kind.clone(), namespace: namespace.clone(), name: name.clone() }
    }
}

/// Returns the name of an object as `kubectl -o name` prints it, such as `agent.kaos.tools/writer`.
pub(super) fn short(Identity { group, kind, name, .. }: &Identity) -> String {
    let kind = kind.to_lowercase();
    if group.is_empty() { format!("{kind}/{name}") } else { format!("{kind}.{group}/{name}") }
}

/// A root cause, and the objects on the way to this cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct CauseAnswer {
    /// The objects on the way: from the requested object to the object with the cause.
    pub(in crate::cli) steps: Vec<StepAnswer>,
    /// The cause in one word. Scripts may rely on it.
    pub(in crate::cli) reason: String,
    /// The cause for people.
    pub(in crate::cli) message: String,
    /// What a person can do.
    pub(in crate::cli) remedy: String,
}

/// An object on the way to a root cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct StepAnswer {
    pub(in crate::cli) object: ObjectName,
    /// Whether the previous object uses this object (`uses`) or owns it (`owns`); missing for the first object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) relation: Option<&'static str>,
    pub(in crate::cli) state: HealthState,
    /// The state for people.
    pub(in crate::cli) message: String,
}

impl From<&Chain> for CauseAnswer {
    fn from(Chain { steps, cause }: &Chain) -> Self {
        Self {
            steps: steps.iter().map(StepAnswer::from).collect(),
            reason: cause.reason().to_owned(),
            message: cause.to_string(),
            remedy: cause.remedy(),
        }
    }
}

impl From<&TraceStep> for StepAnswer {
    fn from(TraceStep { object, relation, health: Health { state, line } }: &TraceStep) -> Self {
        Self { object: object.into(), relation: relation_word(*relation), state: *state, message: line.clone() }
    }
}

fn relation_word(relation: Relation) -> Option<&'static str> {
    match relation {
        Relation::Top => None,
        Relation::Used => Some("uses"),
        Relation::Child => Some("owns"),
    }
}

/// The answer of `why`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct WhyAnswer {
    pub(in crate::cli) object: ObjectName,
    pub(in crate::cli) state: HealthState,
    /// The state for people.
    pub(in crate::cli) message: String,
    /// The root causes; for a ready object, the causes in the objects that it uses.
    pub(in crate::cli) causes: Vec<CauseAnswer>,
    /// Rights that the user lacks. Without these rights, the answer may be incomplete.
    pub(in crate::cli) missing_rights: Vec<MissingRight>,
}

/// The answer of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct StatusAnswer {
    /// The number of objects that are ready.
    pub(in crate::cli) ready: usize,
    /// The number of all objects.
    pub(in crate::cli) total: usize,
    /// Every object, sorted by namespace, kind and name.
    pub(in crate::cli) items: Vec<StatusItem>,
    /// Rights that the user lacks. Without these rights, the answer may be incomplete.
    pub(in crate::cli) missing_rights: Vec<MissingRight>,
}

/// One object in the answer of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct StatusItem {
    pub(in crate::cli) object: ObjectName,
    pub(in crate::cli) state: HealthState,
    /// The state for people.
    pub(in crate::cli) message: String,
    /// The root causes.
    pub(in crate::cli) causes: Vec<CauseAnswer>,
}

/// An object in the answer of `tree`, with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct TreeAnswer {
    pub(in crate::cli) object: ObjectName,
    /// Whether the object above uses this object (`uses`) or owns it (`owns`); missing for the first object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) relation: Option<&'static str>,
    pub(in crate::cli) state: HealthState,
    /// The state for people.
    pub(in crate::cli) message: String,
    /// The objects that this object uses, and its children.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::cli) below: Vec<TreeAnswer>,
}

impl TreeAnswer {
    /// Creates an entry without anything below it.
    pub(super) fn new(object: &Identity, relation: Relation, Health { state, line }: Health) -> Self {
        Self { object: object.into(), relation: relation_word(relation), state, message: line, below: Vec::new() }
    }

    /// Returns the object's name for people. Leaves out the namespace if the object above has the same namespace.
    pub(super) fn named(&self, above: Option<&Self>) -> String {
        let ObjectName { kind, namespace, name, .. } = &self.object;
        let is_same = above.is_some_and(|above| above.object.namespace == *namespace);
        let uses = if self.relation == Some("uses") { "uses " } else { "" };
        match namespace.as_ref().filter(|_| !is_same) {
            Some(namespace) => format!("{uses}{kind} {namespace}/{name}"),
            None => format!("{uses}{kind} {name}"),
        }
    }
}

/// One Event in the answer of `events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct EventAnswer {
    /// The time when the Event was last seen.
    pub(in crate::cli) last_seen: String,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub(in crate::cli) of: String,
    pub(in crate::cli) reason: String,
    /// The object that the Event is about.
    pub(in crate::cli) object: ObjectName,
    /// The number of times that the Event was seen.
    pub(in crate::cli) count: i64,
    pub(in crate::cli) message: String,
    /// The program that wrote the Event.
    pub(in crate::cli) source: String,
    /// The name of the Event itself.
    pub(in crate::cli) name: String,
}

impl EventAnswer {
    /// Reads an Event of the core group.
    pub(super) fn of(event: &Value, object: &Identity) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let count = [&event["series"]["count"], &event["count"]].into_iter().find_map(Value::as_i64).unwrap_or(1);
        let writers = [&event["source"]["component"], &event["reportingComponent"]];
        let source = writers.into_iter().map(text).find(|name| !name.is_empty()).unwrap_or_default();
        Self {
            last_seen: last_seen(event).to_owned(),
            of: text(&event["type"]),
            reason: text(&event["reason"]),
            object: object.into(),
            count,
            message: text(&event["message"]),
            source,
            name: text(&event["metadata"]["name"]),
        }
    }

    /// Returns the kind and the name of the Event's object, for people.
    pub(super) fn about(&self) -> String {
        format!("{} {}", self.object.kind, self.object.name)
    }
}
