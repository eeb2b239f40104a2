//! The memory of an Agent.

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults;

/// Memory of the Agent, and its storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Whether the Agent has memory.
    #[serde(
        default = "defaults::flag::<{ defaults::MEMORY_ENABLED }>",
        deserialize_with = "defaults::flag_or::<_, { defaults::MEMORY_ENABLED }>"
    )]
    pub enabled: bool,
    /// The storage of the memory. Not set: remote if the field memoryStore is set, local otherwise.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<MemoryType>,
    /// The maximum number of earlier messages that the model sees, 1 to 100. This field has an effect only on local
    /// memory, and only with the setting memory.local.limits of the policy.
    #[serde(
        default = "defaults::number::<{ defaults::MEMORY_CONTEXT_LIMIT }>",
        deserialize_with = "defaults::number_or::<_, { defaults::MEMORY_CONTEXT_LIMIT }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
    pub context_limit: i32,
    /// The maximum number of sessions in memory, 1 to 100000. This field has an effect only on local memory, and only
    /// with the setting memory.local.limits of the policy.
    #[serde(
        default = "defaults::number::<{ defaults::MEMORY_MAX_SESSIONS }>",
        deserialize_with = "defaults::number_or::<_, { defaults::MEMORY_MAX_SESSIONS }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100_000)))]
    pub max_sessions: i32,
    /// The maximum number of events of a session in memory, 1 to 10000. This field has an effect only on local memory,
    /// and only with the setting memory.local.limits of the policy.
    #[serde(
        default = "defaults::number::<{ defaults::MEMORY_MAX_SESSION_EVENTS }>",
        deserialize_with = "defaults::number_or::<_, { defaults::MEMORY_MAX_SESSION_EVENTS }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000)))]
    pub max_session_events: i32,
    /// The MemoryStore in the same namespace that keeps remote memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_store: Option<String>,
    /// The widest scope of memories that the Agent may read. Scopes wider than session need the field memoryStore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_read_scope: Option<ReadScope>,
    /// How the Agent uses remote memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_params: Option<MemoryClientParams>,
    /// The memory tools of the model. The tools need the field memoryStore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<MemoryTools>,
    /// The handling of a request when memory is unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<FailureMode>,
}

impl Memory {
    /// Returns the type in the spec. If the spec has no type, returns the type that follows from `memoryStore`.
    pub fn effective_type(&self) -> MemoryType {
        self.type_.unwrap_or(match self.memory_store {
            Some(_) => MemoryType::Remote,
            None => MemoryType::Local,
        })
    }
}

/// The storage of the memory. Not set: remote if the field memoryStore is set, local otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum MemoryType {
    /// The pod stores the memory. A restart of the pod deletes the memory.
    Local,
    /// A MemoryStore stores the memory.
    Remote,
}

/// The widest scope of memories that the Agent may read. Scopes wider than session need the field memoryStore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ReadScope {
    /// Memories of the session.
    Session,
    /// All memories of this Agent.
    Agent,
    /// All memories of the user, from any Agent.
    User,
}

/// The memory tools of the model. The tools need the field memoryStore.
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

/// The handling of a request when memory is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FailureMode {
    /// The request continues without memory.
    Soft,
    /// The request fails.
    Strict,
}

/// How the Agent uses remote memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MemoryClientParams {
    /// The maximum number of tokens of short-term memory that the model sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub token_budget: Option<i32>,
    /// Whether older messages are summarized instead of dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_summary: Option<bool>,
}
