//! Generates the CustomResourceDefinitions from the types.
//!
//! In a generated schema, the description of an enum replaces the description of its field. So in this crate, the enum
//! and the field have the same text.

mod tidy;

use std::io;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

pub use crate::access::{AccessGrant, AuthorizationPolicy};
pub use crate::agent::Agent;
pub use crate::mcpserver::MCPServer;
pub use crate::memorystore::MemoryStore;
pub use crate::modelapi::ModelAPI;

const HEADER: &str = "# Generated from the types in crds/src by:\n\
                      #   cargo run -p kaos-crds --features schema --bin crdgen\n";

/// Returns the CustomResourceDefinitions of the kinds that users write, in the form that the API server receives.
pub fn definitions() -> serde_json::Result<[Value; 6]> {
    let made = |crd: CustomResourceDefinition| serde_json::to_value(crd).map(tidy::tidy).map(with_new_status);
    Ok([
        made(Agent::crd())?,
        made(ModelAPI::crd())?,
        made(MCPServer::crd())?,
        made(MemoryStore::crd())?,
        made(AccessGrant::crd())?,
        made(AuthorizationPolicy::crd())?,
    ])
}

/// Returns the CustomResourceDefinition of PolicyRevision.
pub fn revision() -> serde_json::Result<Value> {
    serde_json::to_value(crate::PolicyRevision::crd()).map(tidy::tidy).map(with_new_status)
}

/// Adds a default status to a CustomResourceDefinition, so that every new object begins with the status "not observed
/// yet". A default for the field `observedGeneration` alone would not apply, because a new object has no status.
fn with_new_status(mut crd: Value) -> Value {
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(status) = version.pointer_mut("/schema/openAPIV3Schema/properties/status") {
            status["default"] = json!({"observedGeneration": crate::NOT_OBSERVED});
        }
    }
    crd
}

/// Returns the generated files, each with its name and text.
pub fn files() -> io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for crd in definitions()?.into_iter().chain([revision()?]) {
        let name = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let yaml = serde_saphyr::to_string(&crd).map_err(io::Error::other)?;
        files.push((format!("{name}.yaml"), format!("{HEADER}{yaml}")));
    }
    Ok(files)
}
