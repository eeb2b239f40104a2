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

/// What the MemoryStore should be.
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
    /// What manages the memories.
    #[serde(default)]
    pub engine: Engine,
    /// Where the memories are kept.
    pub storage: Storage,
    /// How many pods run. Not set: 1 with local storage, which takes no more, and 2 with external storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub replicas: Option<i32>,
    /// The models that the store works with.
    pub models: Models,
    /// What is kept of a conversation word by word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_term: Option<ShortTerm>,
    /// How older parts of a conversation are summed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium_term: Option<MediumTerm>,
    /// What is kept beyond a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_term: Option<LongTerm>,
    /// How many requests are worked on at a time. Not set: the service's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub request_concurrency: Option<i32>,
    /// What happens to a request of an Agent that sets no failureMode, when memory fails.
    #[serde(default)]
    pub default_failure_mode: DefaultFailureMode,
    /// The widest scope that Agents may read memories of.
    #[serde(default)]
    pub max_read_scope: MaxReadScope,
    /// The route through the cluster's Gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_route: Option<GatewayRoute>,
    /// OpenTelemetry export. Not set: as the cluster's settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// Changes to the container named memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
}

impl MemoryStoreSpec {
    /// The number of pods, if no other client sets it.
    pub fn pods(&self) -> i32 {
        self.replicas.unwrap_or(match self.storage.type_ {
            StorageType::Local => 1,
            StorageType::External => defaults::EXTERNAL_STORE_REPLICAS,
        })
    }
}

/// The models that the store works with. One ModelAPI serves both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Models {
    /// Sums up conversations and extracts memories from them.
    pub summarization: Model,
    /// Makes memories comparable, so that they are found again.
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
    /// The model, as the ModelAPI calls it.
    pub model: String,
}

/// What manages the memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Engine {
    /// Mem0.
    #[default]
    Mem0,
}

/// What happens to a request of an Agent that sets no failureMode, when memory fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum DefaultFailureMode {
    /// The request goes on without memory.
    #[default]
    Soft,
    /// The request fails.
    Strict,
}

impl DefaultFailureMode {
    /// The value in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Strict => "strict",
        }
    }
}

/// The widest scope that Agents may read memories of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum MaxReadScope {
    /// A session's own.
    Session,
    /// All of one Agent.
    #[default]
    Agent,
    /// All of a user, whichever Agent made them.
    User,
}
