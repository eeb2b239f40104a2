//! The values that the API server fills in, and that serde fills in where no API server was involved.
//!
//! A field has a default here only when "not written" and "written with the default" mean the same. Fields
//! whose absence says something (an older alias may be set instead, or the cluster's setting applies) have
//! none: `config.reasoningLoopMaxSteps`, `config.memory.type`, `telemetry.enabled`.
//!
//! `replicas` has one in the CRD only, since scaling needs a number. The API server fills it in, also in objects
//! that were stored before the CRD had it, so on a cluster the Deployment always gets a number, unless the
//! object's annotation `kaos.tools/replicas: external` leaves that to somebody else. Serde fills nothing in: of a
//! manifest that no API server has seen, only a number that stands there is written to the Deployment.

use alloc::string::String;

use serde::{Deserialize, Deserializer};

/// `agentNetwork.expose`.
pub const EXPOSE: bool = true;
/// `waitForDependencies`.
pub const WAIT_FOR_DEPENDENCIES: bool = true;
/// `config.memory.enabled`.
pub const MEMORY_ENABLED: bool = true;
/// `config.memory.contextLimit`.
pub const MEMORY_CONTEXT_LIMIT: i32 = 6;
/// `config.memory.maxSessions`.
pub const MEMORY_MAX_SESSIONS: i32 = 1000;
/// `config.memory.maxSessionEvents`.
pub const MEMORY_MAX_SESSION_EVENTS: i32 = 500;
/// `config.reasoningLoopMaxSteps` once `config` is there and neither the field nor its older alias is set.
pub const REASONING_LOOP_MAX_STEPS: i32 = 5;
/// `replicas`, in the CRD and not in serde.
pub const REPLICAS: i32 = 1;
/// `storage.local.persistentVolume.size` of a MemoryStore.
pub const STORE_SIZE: &str = "5Gi";
/// `storage.external.embeddingDims` of a MemoryStore.
pub const EMBEDDING_DIMS: i32 = 1536;
/// `longTerm.extraction.concurrency` of a MemoryStore.
pub const EXTRACTION_CONCURRENCY: i32 = 4;
/// The pods of a MemoryStore with external storage that sets no `replicas`.
pub const EXTERNAL_STORE_REPLICAS: i32 = 2;
/// `shortTerm.tokenBudget` of a MemoryStore, where the service fills it in.
pub const TOKEN_BUDGET: i32 = 4096;

pub(crate) const fn flag<const VALUE: bool>() -> bool {
    VALUE
}

pub(crate) const fn number<const VALUE: i32>() -> i32 {
    VALUE
}

pub(crate) fn store_size() -> String {
    STORE_SIZE.into()
}

/// An explicit `null` is the default too, as it is for the API server.
pub(crate) fn store_size_or<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_else(store_size))
}

/// An explicit `null` is the default too, as it is for the API server.
pub(crate) fn flag_or<'de, D: Deserializer<'de>, const VALUE: bool>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(VALUE))
}

/// An explicit `null` is the default too, as it is for the API server.
pub(crate) fn number_or<'de, D: Deserializer<'de>, const VALUE: i32>(from: D) -> Result<i32, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(VALUE))
}
