//! The spec and status types of the KAOS kinds (`kaos.tools/v1alpha1`): Agent, ModelAPI, MCPServer, MemoryStore; and of
//! PolicyRevision, in which the operator tells what became of a policy.
//!
//! The types exist once. Policies read objects through them (`kaos_decode`, so that a guest stays small), and
//! with the feature `schema` the CustomResourceDefinitions are generated from the same structs, doc comments
//! included: those are what `kubectl explain` shows. Unknown fields are ignored; Kubernetes' own large
//! sub-objects (`podSpec`, `resources`, `securityContext` …) stay raw JSON, so that nothing a user wrote is lost.
//!
//! What a field makes of the workload is the policies' business. Fields that are older names of others are
//! marked `Deprecated` in their description; policies use their value and tell the user.
// Descriptions are what `kubectl explain` prints: plain text, also where it has an address in it.
#![allow(rustdoc::bare_urls, rustdoc::invalid_html_tags)]
// Doc comments are what kubectl shows, as plain text.
#![allow(clippy::doc_markdown)]
// The lints take columns for repeated attributes, and do not see that a derived kind exports its spec.
#![cfg_attr(feature = "schema", allow(clippy::duplicated_attributes, unreachable_pub))]
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

extern crate alloc;

pub mod agent;
mod common;
mod container;
pub mod defaults;
#[cfg(feature = "manifests")]
pub mod manifests;
pub mod mcpserver;
pub mod memorystore;
pub mod modelapi;
mod revision;
#[cfg(feature = "schema")]
pub mod schema;
mod status;

pub use agent::AgentSpec;
pub use common::{GatewayRoute, KeySelector, Telemetry};
pub use container::{Container, EnvVar};
pub use mcpserver::MCPServerSpec;
pub use memorystore::MemoryStoreSpec;
pub use modelapi::ModelAPISpec;
#[cfg(feature = "schema")]
pub use revision::PolicyRevision;
pub use revision::{PolicyRevisionSpec, PolicyRevisionStatus, PolicyScope, PolicySource, RevisionState};
pub use status::{Condition, DeploymentStatus, Phase, PolicyStatus, Status};

/// The API group of the KAOS kinds.
pub const GROUP: &str = "kaos.tools";
/// The one version that is served and stored.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of every object of these kinds.
pub const API_VERSION: &str = "kaos.tools/v1alpha1";
