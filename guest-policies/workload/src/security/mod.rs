//! Secures a workload: a SecurityPolicy at its route, and a NetworkPolicy around its pods.
//!
//! | step | module |
//! |---|---|
//! | the settings | `settings` |
//! | addresses of Services | `address` |
//! | the SecurityPolicy | `gateway` |
//! | the NetworkPolicy | `network` |
//!
//! If the operator cannot create one of these objects, the policy refuses the workload. So no workload silently stays
//! without protection.

mod address;
mod gateway;
mod network;
mod settings;

pub use gateway::{GATEWAY_POLICY_API, GATEWAY_POLICY_KIND};
pub use network::{NETWORK_POLICY_API, NETWORK_POLICY_KIND};
pub use settings::{AgentTokens, Egress, NetworkSettings, SecuritySettings, UserTokens};

use crate::kind::{Extra, Workload};
use alloc::{string::String, vec::Vec};
use kaos_policy_sdk::need::resource_type;
use kaos_policy_sdk::types::{Refusal, ResourceType, Subject};
use kaos_policy_sdk::{SubjectExt, refusal};
use serde_json::Value;

/// The header that names the resource to which a route leads.
pub const TARGET_HEADER: &str = "x-kaos-target-resource";

/// Returns the types of objects that protect a workload. A claim lists these types in `emits` and in `wishes`.
pub fn types() -> [ResourceType; 2] {
    [resource_type(GATEWAY_POLICY_API, GATEWAY_POLICY_KIND), resource_type(NETWORK_POLICY_API, NETWORK_POLICY_KIND)]
}

/// Returns the identifier of a workload in tokens, in the data of the decision point, and in headers.
pub fn resource(workload: &Workload<'_>) -> String {
    format!("kaos://{}/{}/{}", workload.kind.app, workload.namespace, workload.name)
}

/// The protection of one workload.
#[derive(Debug, Clone, Copy)]
pub struct Protection<'a> {
    /// The settings.
    pub settings: &'a SecuritySettings,
    /// The audience of the Agents' tokens.
    pub audience: &'a str,
    /// The connections that the pods are allowed to open. `None` if the workload gets no NetworkPolicy.
    pub network: Option<Egress>,
}

impl Protection<'_> {
    /// Builds the objects that protect a workload. Refuses the workload if the operator cannot create one of these
    /// objects.
    pub(crate) fn manifests(
        &self,
        workload: &Workload<'_>,
        subject: &Subject,
        extra: &Extra<'_>,
        has_route: bool,
    ) -> Result<Vec<Value>, Refusal> {
        let mut manifests = Vec::new();
        let Self { settings, audience, network } = *self;
        if has_route && settings.is_on() {
            require(subject, GATEWAY_POLICY_API, GATEWAY_POLICY_KIND)?;
            manifests.push(gateway::policy(settings, audience, workload, subject, extra)?);
        }
        if let Some(egress) = network {
            require(subject, NETWORK_POLICY_API, NETWORK_POLICY_KIND)?;
            manifests.push(network::policy(settings, egress, workload, subject, extra));
        }
        Ok(manifests)
    }
}

/// Refuses a workload if the cluster does not serve the kind of a protecting object, or if the operator's flag
/// `--without` excludes this kind.
fn require(subject: &Subject, api_version: &str, kind: &str) -> Result<(), Refusal> {
    if subject.serves(api_version, kind) {
        return Ok(());
    }
    Err(refusal::unsupported(format!(
        "the operator cannot create a {kind} of {api_version}, so this object would be open to every caller: install \
         this type and remove it from the operator's flag --without, or turn off the setting `security`"
    )))
}
