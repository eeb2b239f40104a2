//! AccessGrant: who may call which resources through the gateway.

use alloc::collections::BTreeMap;
use alloc::{string::String, vec::Vec};
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use kube::CustomResource;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of the AccessGrant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(CustomResource, JsonSchema))]
#[cfg_attr(
    feature = "schema",
    kube(
        group = "kaos.tools",
        version = "v1alpha1",
        kind = "AccessGrant",
        plural = "accessgrants",
        singular = "accessgrant",
        category = "kaos",
        namespaced,
        status = "crate::access::AccessStatus",
        doc = "AccessGrant lets users, groups and Agents call resources of its namespace through the gateway.",
        printcolumn(
            name = "Enforced",
            type_ = "string",
            json_path = ".status.conditions[?(@.type==\"Enforced\")].status"
        ),
        printcolumn(
            name = "Reason",
            type_ = "string",
            json_path = ".status.conditions[?(@.type==\"Enforced\")].reason"
        ),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy.version", priority = 1),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AccessGrantSpec {
    /// The callers.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub subjects: Vec<SubjectRef>,
    /// The resources in the same namespace that the callers may call.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub resources: Vec<ResourceRef>,
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubjectRef {
    /// The kind of the caller.
    pub kind: SubjectKind,
    /// The name of the caller. For a User, the claim sub or the verified claim email of the user's token. For a Group, a
    /// value of the claim groups. For an Agent, its name in the same namespace.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub name: String,
}

/// The kind of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum SubjectKind {
    /// A person with a token of the identity provider for users.
    User,
    /// All persons of a group.
    Group,
    /// An Agent of the same namespace.
    Agent,
}

/// Resources that the callers may call: one by its name, or all with certain labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// The kind of the resource.
    pub kind: GrantedKind,
    /// The name of the resource. Give either the field name or the field selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The labels of the resources. Give either the field name or the field selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
}

impl ResourceRef {
    /// Returns the name, or `None` if the name is missing or empty.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| !name.is_empty())
    }
}

/// The kind of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum GrantedKind {
    /// An Agent.
    Agent,
    /// An MCPServer.
    MCPServer,
    /// A ModelAPI.
    ModelAPI,
    /// A MemoryStore.
    MemoryStore,
}

impl GrantedKind {
    /// Returns this value as a spec spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "Agent",
            Self::MCPServer => "MCPServer",
            Self::ModelAPI => "ModelAPI",
            Self::MemoryStore => "MemoryStore",
        }
    }
}

/// The labels of the resources. Give either the field name or the field selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// Labels that the resources have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels. All must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
}

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Expression {
    /// The name of the label.
    pub key: String,
    /// The relation of the label to the values.
    pub operator: Operator,
    /// The values. Exists and DoesNotExist take no values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// The relation of the label to the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is missing, or has none of the values.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
}
