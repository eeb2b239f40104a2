//! MemoryStore: a service that keeps the memories of several Agents.

mod memory;
mod storage;

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use kube::{CustomResource, KubeSchema};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use memory::{Extraction, LongTerm, MediumTerm, ShortTerm};
pub use storage::{External, ExternalProvider, Local, LocalProvider, PersistentVolume, Storage, StorageType};

use crate::{Container, GatewayRoute, Telemetry, defaults};

/// The desired state of the MemoryStore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(CustomResource, KubeSchema))]
#[cfg_attr(
    feature = "schema",
    kube(
        group = "kaos.tools",
        version = "v1alpha1",
        kind = "MemoryStore",
        plural = "memorystores",
        singular = "memorystore",
        shortname = "memstore",
        shortname = "memstores",
        category = "kaos",
        namespaced,
        status = "crate::Status",
        doc = "MemoryStore keeps what Agents remember, in a volume or in a database.",
        printcolumn(name = "Engine", type_ = "string", json_path = ".spec.engine"),
        printcolumn(name = "Storage", type_ = "string", json_path = ".spec.storage.type"),
        printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
        printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
        printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint", priority = 1),
        printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy.version", priority = 1),
        printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
    )
)]
#[cfg_attr(
    feature = "schema",
    x_kube(
        validation = crate::schema::rules::local_replicas(),
        validation = crate::schema::rules::compaction_marks()
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStoreSpec {
    /// The engine that manages the memories.
    #[serde(default)]
    pub engine: Engine,
    /// The storage of the memories.
    pub storage: Storage,
    /// The number of pods. Not set: 2 pods with external storage. With local storage, the store always has 1 pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub replicas: Option<i32>,
    /// The models of the store.
    pub models: Models,
    /// Verbatim memory of a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_term: Option<ShortTerm>,
    /// Summaries of older parts of a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium_term: Option<MediumTerm>,
    /// Memory beyond a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_term: Option<LongTerm>,
    /// The maximum number of requests at the same time. Not set: the service's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub request_concurrency: Option<i32>,
    /// The handling of a request when memory fails, for Agents that do not set the field failureMode.
    #[serde(default)]
    pub default_failure_mode: DefaultFailureMode,
    /// The widest scope of memories that Agents may read.
    #[serde(default)]
    pub max_read_scope: MaxReadScope,
    /// The route through the cluster's Gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_route: Option<GatewayRoute>,
    /// OpenTelemetry export. Not set: the cluster's settings apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// Changes to the container named memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
}

impl MemoryStoreSpec {
    /// Returns the number of pods. This number applies if no other client sets the number of pods.
    pub fn pods(&self) -> i32 {
        self.replicas.unwrap_or(match self.storage.type_ {
            StorageType::Local => 1,
            StorageType::External => defaults::EXTERNAL_STORE_REPLICAS,
        })
    }
}

/// The models of the store. One ModelAPI serves both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Models {
    /// The model that summarizes conversations and extracts memories.
    pub summarization: Model,
    /// The embedding model, which makes memories searchable.
    pub embedding: Model,
}

/// One model of a ModelAPI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The ModelAPI in the same namespace that serves the model.
    #[serde(rename = "modelAPI")]
    pub model_api: String,
    /// The name of the model in the ModelAPI.
    pub model: String,
}

/// The engine that manages the memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Engine {
    /// Mem0.
    #[default]
    Mem0,
}

/// The handling of a request when memory fails, for Agents that do not set the field failureMode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum DefaultFailureMode {
    /// The request continues without memory.
    #[default]
    Soft,
    /// The request fails.
    Strict,
}

impl DefaultFailureMode {
    /// Returns this value as a spec spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Strict => "strict",
        }
    }
}

/// The widest scope of memories that Agents may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum MaxReadScope {
    /// Memories of the session.
    Session,
    /// All memories of one Agent.
    #[default]
    Agent,
    /// All memories of a user, from any Agent.
    User,
}
