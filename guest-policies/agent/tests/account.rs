//! Tests the `ServiceAccount` of an Agent, and its token.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure must end the test

use kaos_agent::{Agent, Settings};
use kaos_policy_sdk::testing;
use kaos_policy_sdk::types::{Plan, Refusal};
use kaos_workload::schema::{leaves, with};
use serde_json::{Value, json};

/// Returns the plan of an Agent that has an account and a token for this audience.
fn planned(audience: &str) -> Result<Plan, Refusal> {
    let schema: Value = serde_json::from_str(&Settings::schema_text()).unwrap();
    let defaults = leaves(&schema).into_iter();
    let settings = defaults.fold(json!({}), |all, (path, leaf)| with(&all, &path, leaf["default"].clone()));
    let settings = with(&settings, "serviceAccount.enabled", json!(true));
    let settings = with(&settings, "serviceAccount.audience", json!(audience));
    let agent = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": {"name": "a", "namespace": "ns"},
        "spec": {"modelAPI": "llm", "model": "m", "container": {"env": [{"name": "B", "value": "1"}]}}});
    let api = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "ns"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": {"ready": true, "endpoint": "http://llm"}});
    let subject = testing::subject(&agent).settings(&settings).beside::<Agent>(&[api]).build();
    testing::plan::<Agent>(&subject)
}

#[test]
fn an_agent_gets_no_token_for_an_audience_that_no_setting_names() {
    let Err(Refusal::Invalid(wrong)) = planned("") else { panic!("the Agent has a token") };
    let [wrong] = &wrong[..] else { panic!("{wrong:?}") };
    assert_eq!(wrong.path, "settings.serviceAccount.audience");
    assert!(
        wrong.message.contains("In the settings for the cluster, either set serviceAccount.audience"),
        "{}",
        wrong.message
    );
}

#[test]
fn an_agent_with_an_account_mounts_one_token_and_none_for_the_cluster() {
    let plan = planned("kaos-gateway").unwrap();
    let account = testing::manifest(&plan, "ServiceAccount").value().clone();
    assert_eq!(account["metadata"]["name"], "kaos-agent-a");
    assert_eq!(account["metadata"]["labels"], json!({"app": "agent", "agent": "a", "kaos.tools/agent": "a"}));
    assert_eq!(account["automountServiceAccountToken"], false);
    let pod = testing::manifest(&plan, "Deployment").value()["spec"]["template"]["spec"].clone();
    assert_eq!(
        (&pod["serviceAccountName"], &pod["automountServiceAccountToken"]),
        (&json!("kaos-agent-a"), &json!(false))
    );
    let token = json!({"audience": "kaos-gateway", "expirationSeconds": 3600, "path": "token"});
    let volume = json!({"name": "agent-auth-token", "projected": {"sources": [{"serviceAccountToken": token}]}});
    assert_eq!(pod["volumes"], json!([volume]));
    let mount = json!({"name": "agent-auth-token", "mountPath": "/var/run/secrets/kaos-agent", "readOnly": true});
    assert_eq!(pod["containers"][0]["volumeMounts"], json!([mount]));
    let names: Vec<&str> = plan.env.iter().rev().take(2).map(|var| var.name.as_str()).collect();
    assert_eq!(names, ["AGENT_AUTH_TOKEN_FILE", "AGENT_AUTH_IDENTITY"]);
    assert_eq!(testing::env_value(&plan.env, "agent", "AGENT_AUTH_IDENTITY"), Some("kaos://agent/ns/a"));
}
