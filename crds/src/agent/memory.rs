//! The memory of an Agent.

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults;

/// What the Agent remembers, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Whether the Agent remembers anything.
    #[serde(
        default = "defaults::flag::<{ defaults::MEMORY_ENABLED }>",
        deserialize_with = "defaults::flag_or::<_, { defaults::MEMORY_ENABLED }>"
    )]
    pub enabled: bool,
    /// Where memory is kept. Not set: remote when memoryStore is set, else local.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<MemoryType>,
    /// How many earlier messages the model sees, 1 to 100. Local memory only.
    #[serde(
        default = "defaults::number::<{ defaults::MEMORY_CONTEXT_LIMIT }>",
        deserialize_with = "defaults::number_or::<_, { defaults::MEMORY_CONTEXT_LIMIT }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
    pub context_limit: i32,
    /// How many sessions are kept, 1 to 100000. Local memory only.
    #[serde(
        default = "defaults::number::<{ defaults::MEMORY_MAX_SESSIONS }>",
        deserialize_with = "defaults::number_or::<_, { defaults::MEMORY_MAX_SESSIONS }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100_000)))]
    pub max_sessions: i32,
    /// How many events of a session are kept, 1 to 10000. Local memory only.
    #[serde(
        default = "defaults::number::<{ defaults::MEMORY_MAX_SESSION_EVENTS }>",
        deserialize_with = "defaults::number_or::<_, { defaults::MEMORY_MAX_SESSION_EVENTS }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000)))]
    pub max_session_events: i32,
    /// The MemoryStore in the same namespace that keeps remote memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_store: Option<String>,
    /// The widest scope that the Agent may read memories of. More than session needs a memoryStore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_read_scope: Option<ReadScope>,
    /// How the Agent uses remote memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_params: Option<MemoryClientParams>,
    /// Which memory tools the model gets. Needs a memoryStore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<MemoryTools>,
    /// What happens to a request when memory cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<FailureMode>,
}

impl Memory {
    /// The type as written; without one, the type that follows from `memoryStore`.
    pub fn effective_type(&self) -> MemoryType {
        self.type_.unwrap_or(match self.memory_store {
            Some(_) => MemoryType::Remote,
            None => MemoryType::Local,
        })
    }
}

/// Where memory is kept. Not set: remote when memoryStore is set, else local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum MemoryType {
    /// In the pod; lost when it restarts.
    Local,
    /// In a MemoryStore.
    Remote,
}

/// The widest scope that the Agent may read memories of. More than session needs a memoryStore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ReadScope {
    /// The session's own.
    Session,
    /// All of this Agent.
    Agent,
    /// All of the user, whichever Agent made them.
    User,
}

/// Which memory tools the model gets. Needs a memoryStore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum MemoryTools {
    /// Reading and writing.
    All,
    /// Reading only.
    Read,
    /// Writing only.
    Write,
}

/// What happens to a request when memory cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FailureMode {
    /// The request goes on without memory.
    Soft,
    /// The request fails.
    Strict,
}

/// How the Agent uses remote memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MemoryClientParams {
    /// How many tokens of short-term memory the model sees at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub token_budget: Option<i32>,
    /// Whether older messages are summed up instead of dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_summary: Option<bool>,
}
