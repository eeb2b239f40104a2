//! The NetworkPolicy around the pods of a workload.

use alloc::vec::Vec;
use kaos_policy_sdk::object;
use kaos_policy_sdk::types::Subject;
use serde_json::Value;

use super::address;
use super::gateway::authorizer;
use super::settings::{Egress, SecuritySettings};
use crate::kind::{Extra, Workload};

/// API version of [`NETWORK_POLICY_KIND`].
pub const NETWORK_POLICY_API: &str = "networking.k8s.io/v1";
/// The kind of the object that protects pods.
pub const NETWORK_POLICY_KIND: &str = "NetworkPolicy";

/// The namespace of the pods of Envoy Gateway.
const GATEWAY: &str = "envoy-gateway-system";

/// Builds the NetworkPolicy.
pub(super) fn policy(
    settings: &SecuritySettings,
    egress: Egress,
    workload: &Workload<'_>,
    subject: &Subject,
    extra: &Extra<'_>,
) -> Value {
    let operator = match settings.operator_namespace.as_str() {
        "" => subject.cluster.operator_namespace.as_str(),
        namespace => namespace,
    };
    let gateway = match settings.gateway_namespace.as_str() {
        "" => GATEWAY,
        namespace => namespace,
    };
    let mut trusted = vec![gateway, operator];
    trusted.dedup();
    let mut spec = object! {
        "podSelector": object! { "matchLabels": workload.selector() },
        "policyTypes": ["Ingress"],
        "ingress": vec![object! { "from": namespaces(&trusted) }],
    };
    if settings.network_policy.egress {
        let authorizer = authorizer(settings, subject);
        let users = &settings.users;
        // The pods do not call the issuer of Agents' tokens, because the settings contain the issuer's keys.
        let issuers = [users.issuer.as_str(), &users.jwks_uri].into_iter().filter_map(address::namespace);
        let decision_point = Some(&*authorizer).filter(|_| settings.is_on()).and_then(address::namespace_of_service);
        for namespace in issuers.chain(decision_point) {
            if !trusted.contains(&namespace) {
                trusted.push(namespace);
            }
        }
        spec["policyTypes"] = ["Ingress", "Egress"].into();
        spec["egress"] = rules(egress, &trusted).into();
    }
    object! {
        "apiVersion": NETWORK_POLICY_API,
        "kind": NETWORK_POLICY_KIND,
        "metadata": workload.metadata(&workload.route_name(), extra),
        "spec": spec,
    }
}

fn rules(egress: Egress, trusted: &[&str]) -> Vec<Value> {
    let port = |protocol: &str| object! { "protocol": protocol, "port": 53 };
    let dns = object! { "to": namespaces(&["kube-system"]), "ports": vec![port("UDP"), port("TCP")] };
    let mut rules = vec![dns, object! { "to": namespaces(trusted) }];
    if egress == Egress::Anywhere {
        // Allow only IPv4, as KAOS does: an upgrade must not open connections that were closed.
        rules.push(object! { "to": vec![object! { "ipBlock": object! { "cidr": "0.0.0.0/0" } }] });
    }
    rules
}

/// Returns the peers of a NetworkPolicy that match all pods of these namespaces.
fn namespaces(names: &[&str]) -> Vec<Value> {
    let peer = |name: &&str| {
        let labels = object! { "kubernetes.io/metadata.name": *name };
        object! { "namespaceSelector": object! { "matchLabels": labels } }
    };
    names.iter().map(peer).collect()
}
