//! The effect of a policy package, as the status of its PolicyRevision shows it.

use alloc::{string::String, vec::Vec};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effect that a package has, or would have, on the objects of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyPreview {
    /// The effect in one line.
    pub summary: String,
    /// The number of objects that the package concerns: the objects that get other policies or other settings.
    #[serde(default)]
    pub objects: i64,
    /// The number of objects that change: a child changes, or the answer of the policies changes.
    #[serde(default)]
    pub changed: i64,
    /// The number of objects that do not change.
    #[serde(default)]
    pub unchanged: i64,
    /// The number of children that the package would add, change or delete.
    #[serde(default)]
    pub children: i64,
    /// The number of pods of all these objects.
    #[serde(default)]
    pub pods: i64,
    /// The number of pods that Kubernetes would replace or delete.
    #[serde(default)]
    pub pods_replaced: i64,
    /// The number of objects that the policies accept now, and that the package refuses or that get no policy any more.
    #[serde(default)]
    pub refused: i64,
    /// The number of objects on which only the package fails.
    #[serde(default)]
    pub failed: i64,
    /// The number of objects whose effect is not known, because the operator does not keep what the package reads.
    #[serde(default)]
    pub unknown: i64,
    /// The fuel of a pass, before and after.
    #[serde(default)]
    pub fuel: PreviewFuel,
    /// The changed fields, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PreviewPath>,
    /// The number of changed fields that paths leaves out.
    #[serde(default)]
    pub more_paths: i64,
    /// The objects that the package refuses or fails on, or whose effect is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<PreviewProblem>,
    /// The number of objects that problems leaves out.
    #[serde(default)]
    pub more_problems: i64,
    /// The state of the cluster for which the effect was computed.
    #[serde(default)]
    pub inputs: PreviewInputs,
}

/// The fuel of a pass, before and after a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreviewFuel {
    /// The median of the policies that answer now.
    #[serde(default)]
    pub median_before: i64,
    /// The median with the package.
    #[serde(default)]
    pub median_after: i64,
    /// The maximum of the policies that answer now.
    #[serde(default)]
    pub max_before: i64,
    /// The maximum with the package.
    #[serde(default)]
    pub max_after: i64,
}

/// A field that changes in the same way in one or more children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreviewPath {
    /// The kind of the objects.
    pub kind: String,
    /// The kind of the children. Absent if the answer for the object itself changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// The path of the field. Absent if the whole child changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The kind of change: Added, Removed, Changed or Renamed.
    pub change: String,
    /// The type of the value: string, number, boolean, list, object or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The number of children, or of objects, that change in this way.
    #[serde(default)]
    pub count: i64,
    /// The first examples. Secret values are masked, and long values are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<PreviewExample>,
}

/// An example of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreviewExample {
    /// The object, as namespace/name.
    pub object: String,
    /// The name of the child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// The value before the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// An object that a package would not serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreviewProblem {
    /// The object, as Kind namespace/name.
    pub object: String,
    /// The problem: Refused, Failed or Unknown.
    pub problem: String,
    /// The message.
    pub message: String,
}

/// The state of the cluster for which an effect was computed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreviewInputs {
    /// The time at which the last object was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub at: Option<String>,
    /// The PolicyRevision that the package replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The other PolicyRevisions that would start to serve together with the package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<String>,
    /// The digest of the policies that the package replaces, and of the package. An approval holds only for this basis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// The number of objects that the operator computed again, because they changed meanwhile.
    #[serde(default)]
    pub repeated: i64,
    /// The number of objects that still changed after the last repetition.
    #[serde(default)]
    pub outdated: i64,
}

/// The approval of a package by a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyApproval {
    /// The user who approved the package.
    pub by: String,
    /// The time at which the operator saw the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub at: Option<String>,
}
