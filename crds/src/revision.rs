//! PolicyRevision: the state of one policy package. Only the operator writes it.

use alloc::{string::String, vec::Vec};

#[cfg(feature = "schema")]
use kube::{CustomResource, KubeSchema};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which package this is. Never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(CustomResource, KubeSchema))]
#[cfg_attr(
    feature = "schema",
    kube(
        group = "kaos.tools",
        version = "v1alpha1",
        kind = "PolicyRevision",
        plural = "policyrevisions",
        singular = "policyrevision",
        shortname = "polrev",
        category = "kaos",
        namespaced,
        status = "crate::PolicyRevisionStatus",
        doc = "PolicyRevision tells what became of one content of a policy ConfigMap. The operator writes it.",
        printcolumn(name = "Source", type_ = "string", json_path = ".spec.source.configMap"),
        printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy"),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
        printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
        printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
        printcolumn(name = "Objects", type_ = "integer", json_path = ".status.objects"),
        printcolumn(name = "Since", type_ = "date", json_path = ".status.since"),
        printcolumn(name = "Kinds", type_ = "string", json_path = ".status.kinds", priority = 1),
        printcolumn(name = "Namespaces", type_ = "string", json_path = ".spec.scope.namespaces", priority = 1),
        printcolumn(name = "Digest", type_ = "string", json_path = ".spec.digest", priority = 1),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
    )
)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRevisionSpec {
    /// Where the package lay.
    pub source: PolicySource,
    /// The digest of the whole package: policy.yaml and the component.
    pub package_digest: String,
    /// The digest of the component. Absent when the package is settings alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Where it holds.
    #[serde(default)]
    pub scope: PolicyScope,
}

/// A ConfigMap that a package came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicySource {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub config_map: String,
}

/// Where a policy holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyScope {
    /// These namespaces. Empty: the whole cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Whether it holds only for objects that name it in the annotation kaos.tools/policy.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub pinned: bool,
}

/// What became of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyRevisionStatus {
    /// Where it stands, in one word.
    #[serde(default)]
    pub state: RevisionState,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The policy's name. Of a package of settings alone, the policy that the settings are for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The policy's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The kinds that it claims, as group/version Kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// The revision that served its place before, and serves it again if this one fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<String>,
    /// How many objects it answers for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<i64>,
    /// How many of the objects that it is to answer for were not looked at again yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<i64>,
    /// Since when the state is what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub since: Option<String>,
    /// Since when its ConfigMap claims its place. Of two that claim one place, the one that did first serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub claimed: Option<String>,
    /// How many checks of it were begun and did not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
    /// The value of the annotation kaos.tools/retry that was acted on last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried: Option<String>,
}

/// Where a revision stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum RevisionState {
    /// It was seen.
    #[default]
    Pending,
    /// It is being checked.
    Checking,
    /// It answers.
    Active,
    /// It answered, and something else does now.
    Superseded,
    /// It did not pass the checks.
    Refused,
    /// It passed the checks, and the operator lacks the rights that its claims take.
    NotPermitted,
    /// It passed the checks, and an older package holds its place.
    Conflict,
    /// It answered, failed, and was put aside.
    Quarantined,
}

impl RevisionState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Checking,
        Self::Active,
        Self::Superseded,
        Self::Refused,
        Self::NotPermitted,
        Self::Conflict,
        Self::Quarantined,
    ];

    /// The state's name in a status.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Checking => "Checking",
            Self::Active => "Active",
            Self::Superseded => "Superseded",
            Self::Refused => "Refused",
            Self::NotPermitted => "NotPermitted",
            Self::Conflict => "Conflict",
            Self::Quarantined => "Quarantined",
        }
    }

    /// Whether the revision passed the gate and has the rights it needs. It serves, unless it is in conflict with
    /// another revision.
    pub fn is_let_in(self) -> bool {
        matches!(self, Self::Active | Self::Conflict)
    }
}
