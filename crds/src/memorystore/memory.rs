//! The forms of memory of a store: verbatim messages, summaries, and long-term memories.

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::defaults;

/// Verbatim memory of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShortTerm {
    /// The maximum number of tokens of short-term memory in a request. Not set: the service's own default, 4096.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub token_budget: Option<i32>,
    /// The maximum number of events of a session in memory. Not set: the service's own default, 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub hard_event_cap: Option<i32>,
}

/// Summaries of older parts of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MediumTerm {
    /// Whether the service summarizes older parts of a conversation. Not set: the service's own default, off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The number of tokens that triggers a summary. Not set, or 0: the token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub compaction_trigger: Option<i32>,
    /// The number of tokens that remain after a summary. Not set, or 0: half the token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub compaction_target: Option<i32>,
    /// The maximum number of summaries of a session. Not set: the service's own default, 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub digest_retention: Option<i32>,
    /// The prompt for summaries. Not set: the service's own prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

/// Memory beyond a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LongTerm {
    /// Whether long-term memory is enabled. Not set: the service's own default, on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The maximum number of results of a search. Not set: the service's own default, 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub default_top_k: Option<i32>,
    /// The minimum similarity of a result to the query, 0 to 1. Not set: no minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::share"))]
    pub score_threshold: Option<Value>,
    /// Whether the model reranks the results. Not set: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<bool>,
    /// Extraction of memories from conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extraction: Option<Extraction>,
}

/// Extraction of memories from conversations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Extraction {
    /// The maximum number of extractions at the same time.
    #[serde(
        default = "defaults::number::<{ defaults::EXTRACTION_CONCURRENCY }>",
        deserialize_with = "defaults::number_or::<_, { defaults::EXTRACTION_CONCURRENCY }>"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub concurrency: i32,
    /// The maximum number of retries of a failed extraction. Not set: the service's own default, 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub max_retries: Option<i32>,
    /// The prompt for extraction. Not set: the service's own prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}
