//! The default values. The API server sets the defaults in stored objects. Serde sets the defaults when it decodes
//! objects that no API server has processed.
//!
//! A field has a default here only if "unset" and "set to the default" mean the same. Some fields have no default,
//! because an absent field has a meaning of its own. The value of an absent field then comes from an older alias, or
//! from the cluster's settings. The fields without a default are `config.reasoningLoopMaxSteps`, `config.memory.type`
//! and `telemetry.enabled`.
//!
//! `replicas` has a default in the CRD only, because `kubectl scale` needs a number. The API server also sets this
//! default in objects that were stored before the CRD had a default. So on a cluster, the Deployment always gets a
//! number, unless the object's annotation `kaos.tools/replicas: external` leaves the number to another client. Serde
//! sets no default for `replicas`. If no API server has processed a manifest, the Deployment gets a number only if the
//! manifest contains a number.

use alloc::string::String;

use serde::{Deserialize, Deserializer};

/// Default of `agentNetwork.expose`.
pub const EXPOSE: bool = true;
/// Default of `waitForDependencies`.
pub const WAIT_FOR_DEPENDENCIES: bool = true;
/// Default of `config.memory.enabled`.
pub const MEMORY_ENABLED: bool = true;
/// Default of `config.memory.contextLimit`.
pub const MEMORY_CONTEXT_LIMIT: i32 = 6;
/// Default of `config.memory.maxSessions`.
pub const MEMORY_MAX_SESSIONS: i32 = 1000;
/// Default of `config.memory.maxSessionEvents`.
pub const MEMORY_MAX_SESSION_EVENTS: i32 = 500;
/// The maximum number of steps if `config` sets neither `reasoningLoopMaxSteps` nor its older alias.
pub const REASONING_LOOP_MAX_STEPS: i32 = 5;
/// Default of `replicas` in the CRD. Serde sets no default.
pub const REPLICAS: i32 = 1;
/// Default of `storage.local.persistentVolume.size` of a MemoryStore.
pub const STORE_SIZE: &str = "5Gi";
/// Default of `storage.external.embeddingDims` of a MemoryStore.
pub const EMBEDDING_DIMS: i32 = 1536;
/// Default of `longTerm.extraction.concurrency` of a MemoryStore.
pub const EXTRACTION_CONCURRENCY: i32 = 4;
/// The number of pods of a MemoryStore with external storage and without `replicas`.
pub const EXTERNAL_STORE_REPLICAS: i32 = 2;
/// Default of `shortTerm.tokenBudget` of a MemoryStore. The memory service applies this default, not the API server.
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

/// Treats an explicit `null` as unset, as the API server does.
pub(crate) fn store_size_or<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_else(store_size))
}

/// Treats an explicit `null` as unset, as the API server does.
pub(crate) fn flag_or<'de, D: Deserializer<'de>, const VALUE: bool>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(VALUE))
}

/// Treats an explicit `null` as unset, as the API server does.
pub(crate) fn number_or<'de, D: Deserializer<'de>, const VALUE: i32>(from: D) -> Result<i32, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(VALUE))
}
