//! The names of the policy's two kinds, and the ids that requests through the gateway have for callers and resources.

use alloc::string::String;
use kaos_crds::access::GrantedKind;

/// The kind of an AccessGrant.
pub(crate) const GRANT: &str = "AccessGrant";
/// The kind whose objects become the projection.
pub(crate) const PROJECTION: &str = "AuthorizationPolicy";

/// Returns the id of a resource, for example `kaos://mcpserver/team/sums`.
pub(crate) fn resource(kind: GrantedKind, namespace: &str, name: &str) -> String {
    let kind = match kind {
        GrantedKind::Agent => "agent",
        GrantedKind::MCPServer => "mcpserver",
        GrantedKind::ModelAPI => "modelapi",
        GrantedKind::MemoryStore => "memorystore",
    };
    format!("kaos://{kind}/{namespace}/{name}")
}

/// Returns the id of an Agent.
pub(crate) fn agent(namespace: &str, name: &str) -> String {
    resource(GrantedKind::Agent, namespace, name)
}

/// Returns the claim `sub` in the token of an Agent's own ServiceAccount.
pub(crate) fn account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:kaos-agent-{name}")
}
