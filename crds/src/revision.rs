//! PolicyRevision: the state of one policy package. Only the operator writes PolicyRevisions.

use alloc::{string::String, vec::Vec};

#[cfg(feature = "schema")]
use kube::{CustomResource, KubeSchema};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, PolicyApproval, PolicyPreview, PolicyRollout};

/// The identity of the package. The operator never changes the identity.
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
        doc = "PolicyRevision records the state of one version of a policy package. Only the operator writes PolicyRevisions.",
        printcolumn(name = "Source", type_ = "string", json_path = ".spec.source.configMap"),
        printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy"),
        printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
        printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
        printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
        printcolumn(name = "Objects", type_ = "integer", json_path = ".status.objects"),
        printcolumn(name = "Rollout", type_ = "string", json_path = ".status.rollout.summary"),
        printcolumn(name = "Effect", type_ = "string", json_path = ".status.preview.summary"),
        printcolumn(name = "Since", type_ = "date", json_path = ".status.since"),
        printcolumn(name = "Kinds", type_ = "string", json_path = ".status.kinds", priority = 1),
        printcolumn(name = "Namespaces", type_ = "string", json_path = ".spec.scope.namespaces", priority = 1),
        printcolumn(name = "Digest", type_ = "string", json_path = ".spec.digest", priority = 1),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
    )
)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRevisionSpec {
    /// The source of the package.
    pub source: PolicySource,
    /// The digest of the whole package: policy.yaml and the component or script.
    pub package_digest: String,
    /// The digest of the component or script. Absent if the package has only settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The scope of the package.
    #[serde(default)]
    pub scope: PolicyScope,
}

/// A ConfigMap that a package came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicySource {
    /// The namespace of the ConfigMap.
    pub namespace: String,
    /// The name of the ConfigMap.
    pub config_map: String,
}

/// The scope of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyScope {
    /// The namespaces. Empty: the whole cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Whether the policy answers only for objects that pin it with the annotation kaos.tools/policy.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub pinned: bool,
}

/// The state of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyRevisionStatus {
    /// The state, in one word.
    #[serde(default)]
    pub state: RevisionState,
    /// The reason, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason and the remedy, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The policy's name. For a package with only settings, the name of the policy that uses the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The policy's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the script engine that runs the policy, if the policy is a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_engine: Option<String>,
    /// The digest of the policy's description, its policy.yaml and its answers for its own samples. Two builds of the
    /// same source have the same digest, although their bytes can differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers_digest: Option<String>,
    /// The kinds that the policy claims, as group/version Kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// The predecessor, which serves again if this revision fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<String>,
    /// The number of objects for which the revision answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<i64>,
    /// The number of objects that still wait for their first pass with this revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<i64>,
    /// The namespaces, at most ten, in which a budget of fuel or passes is used up, so that objects of this revision wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces_over_budget: Vec<String>,
    /// The time of the last change of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub since: Option<String>,
    /// The time at which the ConfigMap began to claim its place. If two ConfigMaps claim the same place, the ConfigMap
    /// with the earlier time serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub claimed: Option<String>,
    /// The number of checks that started and did not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
    /// The last value of the annotation kaos.tools/retry that the operator acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried: Option<String>,
    /// The effect on the objects of the cluster. Present if the package or the operator sets limits for the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<PolicyPreview>,
    /// The digest of the limits that held the package: the operator's limits and the limits of policy.yaml.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_digest: Option<String>,
    /// The approval. With an approval, the package serves although its effect exceeds the limits. The approval ends when
    /// the revision stops serving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<PolicyApproval>,
    /// The revision that this revision replaced without limits, because this revision had served before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned_from: Option<String>,
    /// The steps in which the package starts to serve. Present if the package serves in steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<PolicyRollout>,
    /// The generation that this status describes. -1 before the operator has seen the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Reconciling is present while the operator checks the revision or waits, and Stalled while a person must act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))
    )]
    pub conditions: Vec<Condition>,
}

/// The state of a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum RevisionState {
    /// The operator has seen the package.
    #[default]
    Pending,
    /// The gate checks the package.
    Checking,
    /// The package passed the gate, and the operator computes its effect.
    Previewing,
    /// The package passed the gate, and its effect exceeds a limit. The package waits for an approval.
    Held,
    /// The revision serves.
    Active,
    /// The revision serves the objects that the rollout of its successor has not moved yet.
    Yielding,
    /// The revision served earlier, and another revision serves now.
    Superseded,
    /// The package did not pass the gate.
    Refused,
    /// The package passed the gate, and the operator lacks the rights for its claims.
    NotPermitted,
    /// The package passed the gate, but an older package already holds the same place.
    Conflict,
    /// The revision served, failed, and is in quarantine.
    Quarantined,
}

impl PolicyRevisionStatus {
    /// Returns the rollout of a serving revision, or `None` if the revision serves all objects.
    pub fn open_rollout(&self) -> Option<&PolicyRollout> {
        self.rollout.as_ref().filter(|rollout| self.state == RevisionState::Active && rollout.is_open())
    }
}

impl RevisionState {
    /// All states.
    pub const ALL: [Self; 11] = [
        Self::Pending,
        Self::Checking,
        Self::Previewing,
        Self::Held,
        Self::Active,
        Self::Yielding,
        Self::Superseded,
        Self::Refused,
        Self::NotPermitted,
        Self::Conflict,
        Self::Quarantined,
    ];

    /// Returns the name of the state, as a status contains it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Checking => "Checking",
            Self::Previewing => "Previewing",
            Self::Held => "Held",
            Self::Active => "Active",
            Self::Yielding => "Yielding",
            Self::Superseded => "Superseded",
            Self::Refused => "Refused",
            Self::NotPermitted => "NotPermitted",
            Self::Conflict => "Conflict",
            Self::Quarantined => "Quarantined",
        }
    }

    /// Returns whether the revision passed the gate, and the operator has the rights for its claims. Such a revision
    /// serves if it is not in conflict with another revision.
    pub fn is_let_in(self) -> bool {
        matches!(self, Self::Active | Self::Conflict)
    }

    /// Returns whether the revision served and another revision replaces it, in steps or as a whole.
    pub fn is_replaced(self) -> bool {
        matches!(self, Self::Yielding | Self::Superseded)
    }
}
