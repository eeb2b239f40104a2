//! The state of a rollout: how far a policy package has moved the objects of the cluster, as the status of its
//! PolicyRevision shows it.

use alloc::{string::String, vec::Vec};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyRollout {
    /// The state in one line.
    pub summary: String,
    /// The time at which the rollout began. It also identifies the rollout.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub started: String,
    /// The time at which the rollout ended. Afterwards, the package serves all objects, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub ended: Option<String>,
    /// Whether a step moves single objects or namespaces: object or namespace.
    pub by: String,
    /// The minimum duration of a step.
    pub pause: String,
    /// The time for which a moved object may be not ready.
    pub patience: String,
    /// The maximum number of pods of moved objects that are not ready at the same time: a number, or a percentage of
    /// the pods of all objects that the package concerns.
    #[serde(default)]
    pub max_unavailable: String,
    /// The text that is hashed together with an object's name. The objects with the smallest hashes move first.
    pub salt: String,
    /// The steps. A step without a start time has not begun.
    #[serde(default)]
    pub steps: Vec<PolicyRolloutStep>,
    /// The number of objects that the package concerns.
    #[serde(default)]
    pub objects: i64,
    /// The number of objects that the package has moved.
    #[serde(default)]
    pub moved: i64,
    /// Why the rollout is paused. Absent while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PolicyRolloutPause>,
    /// The number of requests of persons that the operator has handled.
    #[serde(default)]
    pub requests: i64,
    /// The time up to which a person accepted that moved objects became not ready. Such objects count neither for nor
    /// against the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub accepted: Option<String>,
    /// Objects that became not ready more than once since their move, the longest first. At most 20 objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsteady: Vec<PolicyRolloutLoss>,
}

/// A step of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyRolloutStep {
    /// How many objects or namespaces are moved at the end of the step: a number, or a percentage of all.
    pub share: String,
    /// The time at which the step began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub since: Option<String>,
    /// The largest hash of a moved object, as 16 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to: Option<String>,
    /// The largest hash of a moved object at the end of the step. Absent when the step has moved all its objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The time at which the step moved further objects. Absent if all objects moved at the start of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub moved_at: Option<String>,
    /// The parts in which the step moved its objects. Absent if all objects moved at the start of the step. At most 32
    /// parts: the operator joins the two parts with the shortest time between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PolicyRolloutPart>,
}

/// A part of a step: the objects that moved at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyRolloutPart {
    /// The largest hash of an object that moved, as 16 hexadecimal digits.
    pub up_to: String,
    /// The time at which the objects moved.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub since: String,
}

/// An object that became not ready more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyRolloutLoss {
    /// The kind, namespace and name of the object.
    pub object: String,
    /// The time at which the object first became not ready.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub since: String,
}

/// Why a rollout is paused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyRolloutPause {
    /// The reason, in one word.
    pub reason: String,
    /// The reason, for people.
    #[serde(default)]
    pub message: String,
    /// The name of the person who paused the rollout. Absent if the operator paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time at which the pause began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub since: Option<String>,
}

impl PolicyRollout {
    /// Returns whether the rollout goes on.
    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns the number of steps that have begun.
    pub fn begun(&self) -> usize {
        self.steps.iter().take_while(|step| step.since.is_some()).count()
    }

    /// Returns the current step, or `None` before the first step.
    pub fn current(&self) -> Option<&PolicyRolloutStep> {
        self.steps.get(self.begun().checked_sub(1)?)
    }
}
