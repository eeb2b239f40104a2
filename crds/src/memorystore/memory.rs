//! The forms of memory of a store: verbatim messages, summaries, and long-term memories.

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::defaults;

/// What is kept of a conversation word by word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShortTerm {
    /// How many tokens of it a request gets at most. Not set: the service's own default, 4096.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub token_budget: Option<i32>,
    /// How many events of a session are kept at most. Not set: the service's own default, 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub hard_event_cap: Option<i32>,
}

/// How older parts of a conversation are summed up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MediumTerm {
    /// Whether older parts are summed up. Not set: the service's own default, off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// At how many tokens older parts are summed up. Not set, or 0: at the token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub compaction_trigger: Option<i32>,
    /// How many tokens are left then. Not set, or 0: half the token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub compaction_target: Option<i32>,
    /// How many summaries of a session are kept. Not set: the service's own default, 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub digest_retention: Option<i32>,
    /// What the model is told when it sums up. Not set: the service's own prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

/// What is kept beyond a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LongTerm {
    /// Whether anything is kept beyond a conversation. Not set: the service's own default, on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How many memories a search brings. Not set: the service's own default, 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub default_top_k: Option<i32>,
    /// How like a memory must be to what is searched, 0 to 1. Not set: anything is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::share"))]
    pub score_threshold: Option<Value>,
    /// Whether what was found is put in order once more by the model. Not set: it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<bool>,
    /// How memories are extracted from conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extraction: Option<Extraction>,
}

/// How memories are extracted from conversations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Extraction {
    /// How many extractions run at a time.
    #[serde(
        default = "defaults::number::<{ defaults::EXTRACTION_CONCURRENCY }>",
        deserialize_with = "defaults::number_or::<_, { defaults::EXTRACTION_CONCURRENCY }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub concurrency: i32,
    /// How often a failed extraction is tried again. Not set: the service's own default, 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub max_retries: Option<i32>,
    /// What the model is told when it extracts. Not set: the service's own prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}
