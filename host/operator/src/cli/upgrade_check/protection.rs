//! Finds objects for which the upgrade changes `SecurityPolicies` or `NetworkPolicies`. The table of variables does not
//! cover settings in the chart value `policies`. This check also reports the effect of these settings on protection.

use std::sync::Arc;

use kaos_policy::{contract::Reference, render::Verdict, stamp::owners};
use serde_json::{Map, Value, json};

use super::{
    reference_grants::services,
    report::{Sort, UpgradeFinding},
};
use crate::{
    input::Document,
    offline::Entry,
    plan::{Field, fields},
};

const REMEDY: &str = "set the values, and the settings in policies, to the protection of the earlier release";

/// Returns the findings about one object. `asked` is the decision point that the values name, as the name and the
/// namespace of its Service.
pub(super) fn findings(
    object: &Document,
    entry: &Arc<Entry>,
    documents: &[Document],
    asked: Option<(&str, &str)>,
) -> Vec<UpgradeFinding> {
    let Verdict::Planned(planned) = &entry.rendered.verdict else { return Vec::new() };
    let finding = |live: &Document| {
        let Reference { kind, name, .. } = Reference::of_object(&live.object);
        let is_it = |wanted: &&Value| Reference::of_object(wanted) == Reference::of_object(&live.object);
        let Some(wanted) = planned.manifests.iter().find(is_it) else {
            let message = format!("{kind} {name}: the values no longer ask for it, so no operator keeps it up to date");
            return Some(UpgradeFinding::new(Sort::Breaks, object.identity.to_string(), message, REMEDY));
        };
        let fields = changes(&kind, &live.object, wanted, asked);
        let message = format!("{kind} {name}: the upgrade changes who can call the object, or what its pods can call");
        (!fields.is_empty()).then(|| UpgradeFinding {
            fields,
            ..UpgradeFinding::new(Sort::Breaks, object.identity.to_string(), message, REMEDY)
        })
    };
    documents.iter().filter(|live| protects(live, object)).filter_map(finding).collect()
}

/// Returns whether a live object protects the pods or the route of `object`, and belongs to `object`.
fn protects(live: &Document, object: &Document) -> bool {
    let is_owner = |owner: &Value| {
        owner["apiVersion"].as_str().is_some_and(|it| it.starts_with("kaos.tools/"))
            && owner["kind"] == *object.identity.kind
            && owner["name"] == *object.identity.name
    };
    ["SecurityPolicy", "NetworkPolicy"].contains(&&*live.identity.kind)
        && live.identity.namespace == object.identity.namespace
        && owners(&live.object).iter().any(is_owner)
}

/// Returns the changed fields that decide about access.
fn changes(kind: &str, live: &Value, wanted: &Value, asked: Option<(&str, &str)>) -> Vec<Field> {
    let namespace = live["metadata"]["namespace"].as_str().unwrap_or_default();
    let of = |object: &Value| {
        if kind == "SecurityPolicy" { gateway_policy(&object["spec"], namespace) } else { ordered(&object["spec"]) }
    };
    let mut found = fields(&json!({"spec": of(live)}), &json!({"spec": of(wanted)}));
    // Another finding already reports that the values name another decision point.
    let now = services(&wanted["spec"]["extAuth"], namespace).first().copied();
    if now.is_some() && now == asked {
        found.retain(|field| !field.path.starts_with("spec.extAuth.services"));
    }
    found
}

/// Returns the parts of a SecurityPolicy that decide about access. Leaves out keys, because issuers can change them.
fn gateway_policy(spec: &Value, namespace: &str) -> Value {
    let provider = |provider: &Value| {
        let name = provider["name"].as_str().unwrap_or_default().to_owned();
        (name, json!({"issuer": provider["issuer"], "audiences": ordered(&provider["audiences"])}))
    };
    let providers: Map<String, Value> =
        spec["jwt"]["providers"].as_array().into_iter().flatten().map(provider).collect();
    let asked: Vec<String> =
        services(&spec["extAuth"], namespace).iter().map(|(name, namespace)| format!("{name}.{namespace}")).collect();
    json!({
        "extAuth": {
            "services": asked,
            "failOpen": spec["extAuth"]["failOpen"] == true,
            "headersToExtAuth": ordered(&spec["extAuth"]["headersToExtAuth"]),
        },
        "jwt": {"optional": spec["jwt"]["optional"] == true, "providers": providers},
    })
}

/// Sorts lists and removes the default of `protocol`, so that equal rules compare as equal.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let counts = |(name, value): &(&String, &Value)| *name != "protocol" || **value != "TCP";
            fields.iter().filter(counts).map(|(name, value)| (name.clone(), ordered(value))).collect()
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(ordered).collect();
            items.sort_by_key(Value::to_string);
            items.into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(kind: &str, live: &Value, wanted: &Value) -> Vec<String> {
        let of = |spec: &Value| json!({"kind": kind, "metadata": {"name": "x", "namespace": "team"}, "spec": spec});
        let asked = Some(("kaos-pdp", "home"));
        changes(kind, &of(live), &of(wanted), asked).into_iter().map(|field| field.path).collect()
    }

    fn gateway(service: &str, optional: bool, audience: &str, keys: &str) -> Value {
        json!({
            "extAuth": {"failOpen": false, "headersToExtAuth": ["authorization", "x-agent-authorization"],
                "grpc": {"backendRefs": [{"name": service, "namespace": "home", "port": 9191}]}},
            "jwt": {"optional": optional, "providers": [{"name": "agent", "issuer": "i", "audiences": [audience],
                "localJWKS": {"inline": keys}}]},
        })
    }

    #[test]
    fn only_fields_about_access_are_changes_of_a_security_policy() {
        let live = gateway("kaos-pdp", false, "a", "old");
        let changed = |wanted: &Value| paths("SecurityPolicy", &live, wanted);
        assert_eq!(changed(&gateway("kaos-pdp", false, "a", "new")), [""; 0], "the issuer has new keys");
        assert_eq!(changed(&gateway("kaos-pdp", true, "a", "old")), ["spec.jwt.optional"]);
        let path = changed(&gateway("kaos-pdp", false, "b", "old"));
        assert!(path.len() == 1 && path[0].contains("audiences"), "{path:?}");
        let path = changed(&gateway("opa", false, "a", "old"));
        assert!(path.len() == 1 && path[0].starts_with("spec.extAuth.services"), "{path:?}");
        let other = gateway("opa", false, "a", "old");
        assert_eq!(paths("SecurityPolicy", &other, &live), [""; 0], "the values name this decision point");
        let mut open = live.clone();
        open["extAuth"]["failOpen"] = json!(true);
        open["extAuth"]["headersToExtAuth"] = json!(["x-agent-authorization", "authorization"]);
        assert_eq!(changed(&open), ["spec.extAuth.failOpen"]);
    }

    #[test]
    fn the_order_of_peers_is_no_change_of_a_network_policy_and_another_peer_is() {
        let from = |namespaces: &[&str]| {
            let peer =
                |name: &&str| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}});
            let from: Vec<Value> = namespaces.iter().map(peer).collect();
            json!({"policyTypes": ["Ingress"], "ingress": [{"from": from, "ports": [{"port": 8000, "protocol": "TCP"}]}]})
        };
        let mut short = from(&["b", "a"]);
        short["ingress"][0]["ports"] = json!([{"port": 8000}]);
        assert_eq!(paths("NetworkPolicy", &from(&["a", "b"]), &short), [""; 0]);
        assert!(!paths("NetworkPolicy", &from(&["a", "b"]), &from(&["a"])).is_empty());
        assert!(
            !paths("NetworkPolicy", &from(&["a"]), &json!({"policyTypes": ["Ingress"], "ingress": [{}]})).is_empty()
        );
    }
}
