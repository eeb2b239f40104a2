//! Settings for an Agent that runs in a coding harness.

use alloc::string::String;
use kaos_decode::Decode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KeySelector;

/// Runs the Agent in a coding harness instead of the default runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Harness {
    /// The harness: a key of the ConfigMap kaos-harness-runtimes in the operator's namespace.
    pub runtime: String,
    /// The Git repository to work on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
}

/// A Git repository. An init container clones the repository to /workspace before the Agent starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Decode)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    /// The https URL of the repository.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// The branch to check out. Not set: main.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The key of a Secret in the same namespace that holds an access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<KeySelector>,
}
