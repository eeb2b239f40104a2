//! Tests that `kaos-operator upgrade-check` names each change of protection that the user accepted.
//!
//! The value `security.acceptUnserved` lists these changes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::{
    support::Folder,
    today::sample,
    upgrading::{check, of},
};

#[test]
fn a_change_that_the_values_accept_says_so_and_a_name_without_effect_is_told() {
    let folder = Folder::new("upgrade-accepted");
    let with = |values: &str| {
        let values = folder.write("values.yaml", values);
        check(&["-f", &sample("19-operator-config.yaml"), "--values", &values, "-o", "json"]).json()
    };
    let remedy = |told: &Value| {
        let found = told["findings"].as_array().unwrap();
        let it = found.iter().find(|it| it["about"].as_str().unwrap().starts_with("security.pdp.enabled:")).unwrap();
        it["do"].as_str().unwrap().to_owned()
    };
    assert!(remedy(&with("{}")).ends_with("unless security.acceptUnserved lists security.pdp.enabled"));
    let accepted = with("{security: {acceptUnserved: [security.pdp.enabled, security.tls.mode]}}");
    assert!(remedy(&accepted).ends_with("security.acceptUnserved accepts this change"));
    let stale: Vec<&Value> = accepted["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["about"] == "security.acceptUnserved")
        .map(|it| &it["message"])
        .collect();
    assert_eq!(stale, ["lists security.tls.mode, but the upgrade does not change this protection"]);
    let all = with("{security: {acceptUnserved: true}}");
    let stops = |it: &Value| it["sort"] == "stops" && it["about"] == "security.acceptUnserved";
    assert!(all["findings"].as_array().unwrap().iter().any(stops), "{all}");
    let broker = with("{security: {agentAuth: {adminUrl: 'http://broker'}}}");
    let is_broker =
        |it: &Value| it["about"] == "security.agentAuth.identity.provider, because of security.agentAuth.adminUrl,";
    assert!(broker["findings"].as_array().unwrap().iter().any(is_broker), "{broker}");
}

#[test]
fn an_accepted_change_does_not_stop_later_upgrades() {
    let folder = Folder::new("upgrade-forgets");
    let owners = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "a", "uid": "u"}]);
    let left = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {},
        "metadata": {"name": "agent-a", "namespace": "team", "ownerReferences": owners}});
    let with = |data: &Value, mode: &str| {
        let annotations =
            json!({"kaos.tools/compatibility": "kaos-0.8", "kaos.tools/accepted": "security.tls.mode=selfSigned"});
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata":
            {"name": "kaos-operator-config", "namespace": "kaos-system", "annotations": annotations}});
        let objects = folder.write("objects.yaml", format!("{config}\n---\n{left}"));
        let values = folder.write("values.yaml", format!("{{security: {{tls: {{mode: {mode}}}}}}}"));
        let ran = check(&["-f", &objects, "--values", &values, "-o", "json"]);
        let breaks: Vec<String> = of(&ran, "breaks").into_iter().map(|(about, _)| about).collect();
        let notes = of(&ran, "note").len();
        (breaks, notes, ran.stdout)
    };
    let (breaks, notes, told) = with(&json!({"A": "b"}), "selfSigned");
    assert!(breaks.is_empty() && notes >= 2 && told.contains("an earlier upgrade accepted this"), "{told}");
    let (breaks, _, told) = with(&json!({"A": "b"}), "provided");
    assert_eq!(breaks, ["security.tls.mode"], "{told}");
    let (breaks, _, told) = with(&json!({"SECURITY_PDP_ENABLED": "true"}), "selfSigned");
    assert!(breaks.iter().any(|about| about.starts_with("NetworkPolicy: 1 of KAOS objects")), "{told}");
}
