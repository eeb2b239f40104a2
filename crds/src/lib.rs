//! The spec and status types of the KAOS kinds (`kaos.tools/v1alpha1`): Agent, ModelAPI, MCPServer and MemoryStore;
//! AccessGrant and AuthorizationPolicy; and PolicyRevision, in which the operator records the state of a policy package.
//!
//! Each type is declared once. Policies decode objects through the types with `kaos_decode`, which keeps components
//! small. With the feature `schema`, this crate generates the CustomResourceDefinitions from the same structs. The doc
//! comments become the descriptions that `kubectl explain` shows. Decoding ignores unknown fields. Large sub-objects of
//! Kubernetes itself (`podSpec`, `resources`, `securityContext` …) stay raw JSON, so that no field of the user is lost.
//!
//! The policies decide how a field affects the workload. Some fields are older names of other fields. The description
//! of an older field starts with `Deprecated`. Policies use the value of an older field, and warn the user.
// `kubectl explain` prints descriptions as plain text, so URLs in descriptions have no markup.
#![allow(rustdoc::bare_urls, rustdoc::invalid_html_tags)]
// `kubectl explain` prints doc comments as plain text, so names in doc comments have no backticks.
#![allow(clippy::doc_markdown)]
// These lints are wrong here: the first lint mistakes the printer columns for repeated attributes, and the second lint
// does not see that a derived kind exports its spec.
#![cfg_attr(feature = "schema", allow(clippy::duplicated_attributes, unreachable_pub))]
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

extern crate alloc;

pub mod access;
pub mod agent;
mod common;
mod container;
pub mod defaults;
#[cfg(feature = "schema")]
pub mod generate;
#[cfg(feature = "manifests")]
pub mod manifests;
pub mod mcpserver;
pub mod memorystore;
pub mod modelapi;
mod preview;
mod revision;
mod rollout;
#[cfg(feature = "schema")]
mod schema;
mod status;

pub use agent::AgentSpec;
pub use common::{GatewayRoute, KeySelector, Telemetry};
pub use container::{Container, EnvVar};
pub use mcpserver::MCPServerSpec;
pub use memorystore::MemoryStoreSpec;
pub use modelapi::ModelAPISpec;
pub use preview::{
    PolicyApproval, PolicyPreview, PreviewExample, PreviewFuel, PreviewInputs, PreviewPath, PreviewProblem,
};
#[cfg(feature = "schema")]
pub use revision::PolicyRevision;
pub use revision::{PolicyRevisionSpec, PolicyRevisionStatus, PolicyScope, PolicySource, RevisionState};
pub use rollout::{PolicyRollout, PolicyRolloutLoss, PolicyRolloutPart, PolicyRolloutPause, PolicyRolloutStep};
pub use status::{Condition, DeploymentStatus, NOT_OBSERVED, Phase, PolicyStatus, Status};

/// The API group of the KAOS kinds.
pub const GROUP: &str = "kaos.tools";
/// The only version of the KAOS kinds. The API server serves and stores this version.
pub const VERSION: &str = "v1alpha1";
/// The `apiVersion` of every object of the KAOS kinds.
pub const API_VERSION: &str = "kaos.tools/v1alpha1";
