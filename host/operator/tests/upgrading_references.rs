//! Tests that `kaos-operator upgrade-check` names the `ReferenceGrants` that KAOS's operator leaves, and how to delete
//! them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::{
    support::{Folder, Ran},
    upgrading::check,
};

const SERVED: &str = "{gatewayAPI: {enabled: true}, security: {pdp: {enabled: true}, strictGatewayApi: {enabled: true}, \
                      gatewayHost: gw, agentAuth: {identity: {serviceAccount: {issuer: i, jwks: '{\"keys\": []}'}}}}}";

/// Returns a `ReferenceGrant` of KAOS for this namespace.
fn of_kaos(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
        "metadata": {"name": name, "namespace": "kaos-system"},
        "spec": {"from": [{"group": "gateway.envoyproxy.io", "kind": "SecurityPolicy", "namespace": namespace}],
            "to": [{"group": "", "kind": "Service", "name": "kaos-pdp"}]}})
}

/// Returns a user's SecurityPolicy that lets the gateway ask the decision point.
fn of_user() -> Value {
    json!({"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
        "metadata": {"name": "mine", "namespace": "team-a"},
        "spec": {"extAuth": {"grpc": {"backendRefs": [{"name": "kaos-pdp", "namespace": "kaos-system", "port": 9191}]}}}})
}

fn ran(objects: &[Value], values: &str) -> Ran {
    let folder = Folder::new("upgrade-references");
    let objects: Vec<String> = objects.iter().map(Value::to_string).collect();
    let objects = folder.write("objects.yaml", objects.join("\n---\n"));
    let values = folder.write("values.yaml", values);
    check(&["-f", &objects, "--values", &values, "-o", "json"])
}

/// Returns the sort, the subject and the advice of each finding about `ReferenceGrants`.
fn found(objects: &[Value], values: &str) -> Vec<[String; 3]> {
    let told = ran(objects, values).json();
    let all = told["findings"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |it: &Value| [text(&it["sort"]), text(&it["about"]), text(&it["do"])];
    all.filter(|it| it["about"].as_str().unwrap().starts_with("ReferenceGrant")).map(row).collect()
}

#[test]
fn reference_grants_of_kaos_are_named_with_the_command_that_deletes_them() {
    let both = [of_kaos("kaos-ext-auth-a", "team-a"), of_kaos("kaos-ext-auth-b", "team-b")];
    let command =
        "kubectl -n kaos-system delete referencegrants.gateway.networking.k8s.io kaos-ext-auth-a kaos-ext-auth-b";
    let replaced = found(&both, SERVED);
    assert!(replaced.len() == 1 && replaced[0][0] == "note" && replaced[0][2].ends_with(command), "{replaced:?}");
    assert!(replaced[0][1].starts_with("ReferenceGrant: 2 of KAOS in kaos-system"), "{replaced:?}");
    assert!(replaced[0][2].contains("authorizationpolicy/kaos-authz"), "{replaced:?}");
    assert_eq!(ran(&both, SERVED).code, 0, "this operator replaces them");
    let unprotected = found(&both, "{}");
    assert!(unprotected.len() == 1 && unprotected[0][0] == "lost", "{unprotected:?}");
    assert!(unprotected[0][2].ends_with(command), "{unprotected:?}");
}

#[test]
fn reference_grants_that_a_security_policy_needs_are_kept() {
    let one = of_kaos("kaos-ext-auth-a", "team-a");
    let keep = |found: Vec<[String; 3]>| {
        assert!(found.len() == 1 && found[0][0] == "lost" && found[0][2].starts_with("keep them"), "{found:?}");
    };
    keep(found(&[one.clone(), of_user()], "{}"));
    let external = SERVED
        .replace("pdp: {enabled: true}, ", "")
        .replace("agentAuth: {", "agentAuth: {extAuthzUrl: 'kaos-pdp.kaos-system.svc:9191', ");
    keep(found(std::slice::from_ref(&one), &external));
    for address in
        ["grpc://kaos-pdp.kaos-system.svc.cluster.local:9191", "grpc://kaos-pdp.kaos-system.svc:9191", "a.b:99999"]
    {
        keep(found(std::slice::from_ref(&one), &external.replace("kaos-pdp.kaos-system.svc:9191", address)));
    }
    // The operator creates no ReferenceGrant for a namespace without objects.
    keep(found(&[one.clone(), of_user()], SERVED));
    // The operator creates no ReferenceGrants for namespaces that the values do not list.
    let listed = SERVED.replace("agentAuth: {", "agentAuth: {projection: {namespaces: [team-b]}, ");
    keep(found(std::slice::from_ref(&one), &listed));
    let with_one = SERVED.replace("agentAuth: {", "agentAuth: {projection: {namespaces: [team-a]}, ");
    assert_eq!(found(&[one, of_user()], &with_one)[0][0], "note");
}

#[test]
fn reference_grants_for_an_external_decision_point_are_kept_while_security_policies_of_objects_ask_it() {
    let mut grant = of_kaos("kaos-ext-auth-a", "team-a");
    (grant["metadata"]["namespace"], grant["spec"]["to"][0]["name"]) = (json!("authz"), json!("opa"));
    let mut policy = of_user();
    policy["spec"]["extAuth"]["grpc"]["backendRefs"] = json!([{"name": "opa", "namespace": "authz", "port": 9191}]);
    policy["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "a", "uid": "u", "controller": true}]);
    let sort = |objects: &[Value], remedy: &str| {
        let found = found(objects, "{}");
        assert!(found.len() == 1 && found[0][2].starts_with(remedy), "{found:?}");
    };
    sort(&[grant.clone(), policy.clone()], "keep them");
    sort(&[grant], "after the upgrade, delete them");
    // The upgrade removes kaos-pdp, so nothing needs a ReferenceGrant for it.
    policy["spec"]["extAuth"]["grpc"]["backendRefs"] = of_user()["spec"]["extAuth"]["grpc"]["backendRefs"].clone();
    sort(&[of_kaos("kaos-ext-auth-a", "team-a"), policy], "after the upgrade, delete them");
}

#[test]
fn reference_grants_of_others_are_not_named() {
    assert!(found(&[of_kaos("kaos-pdp-team-a", "team-a")], SERVED).is_empty());
    for (field, kind) in [("from", "HTTPRoute"), ("to", "Secret")] {
        let mut other = of_kaos("kaos-ext-auth-a", "team-a");
        other["spec"][field][0]["kind"] = json!(kind);
        assert!(found(&[other], SERVED).is_empty(), "{kind}");
    }
}

#[test]
fn the_guide_for_a_rollback_waits_for_the_reference_grants_of_kaos() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/upgrade-from-kaos.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, rollback) = guide.split_once("## Back again").unwrap();
    // Deleting the AuthorizationPolicy also deletes this operator's ReferenceGrants.
    let waits = rollback.find("shows `kaos-ext-auth-…`").expect("the step that waits");
    let deletes = rollback.find("delete authorizationpolicy kaos-authz").expect("the step that deletes");
    assert!(waits < deletes);
}
