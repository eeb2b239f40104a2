//! Tests that the committed schema matches the code, and that each setting changes exactly the parts of the decision
//! point's data that the table lists.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/committed.rs"]
mod committed;

use kaos_authorization::{Authorization, Settings};
use kaos_policy_sdk::Policy;
use kaos_policy_sdk::testing::{self, defaults};
use kaos_workload::schema::{leaves, with};
use serde_json::{Value, json};

const KEYS: &str = r#"{"keys":[{"kty":"RSA","kid":"1","n":"AQAB","e":"AQAB"}]}"#;

#[test]
fn the_committed_schema_equals_that_of_the_code() {
    committed::assert_schema(&Settings::schema_text());
}

/// Returns the decision point's data for a single Agent, with these settings.
fn data(settings: &Value) -> Value {
    let meta = |name: &str| json!({"name": name, "namespace": "kaos-system"});
    let kaos = "kaos.tools/v1alpha1";
    let object = json!({"apiVersion": kaos, "kind": "AuthorizationPolicy", "metadata": meta("kaos-authz"),
        "spec": {"namespaces": ["kaos-system"]}});
    let agent = json!({"apiVersion": kaos, "kind": "Agent", "metadata": meta("a"), "spec": {"modelAPI": "llm"}});
    let subject = testing::subject(&object).settings(settings).beside::<Authorization>(&[agent]).build();
    let plan = testing::plan::<Authorization>(&subject).unwrap();
    let config = testing::manifest(&plan, "ConfigMap");
    serde_json::from_str(config.str_at(&["data", "data.json"]).unwrap()).unwrap()
}

#[test]
fn every_setting_changes_exactly_its_own_part_of_the_data() {
    let mut settings = defaults(&Authorization::describe().settings_schema);
    settings["agents"]["issuer"] = json!("https://cluster");
    settings["agents"]["jwks"] = json!(KEYS);
    settings["users"] = json!({"issuer": "https://people", "audience": "kaos", "jwks": KEYS});
    let base = data(&settings)["kaos"].clone();
    let other = KEYS.replace("\"1\"", "\"2\"");
    let rows = [
        // These settings change only the status of AccessGrants.
        ("enabled", json!(true), ""),
        ("authorizer", json!("pdp.authz.svc:9191"), ""),
        ("agents.provider", json!("oidc"), "agent agents grants jwks"),
        ("agents.issuer", json!("https://other"), "agent agents jwks"),
        ("agents.audience", json!("other"), "agent"),
        ("agents.jwks", json!(other), "jwks"),
        ("users.issuer", json!("https://other"), "jwks user"),
        ("users.audience", json!("other"), "user"),
        ("users.jwks", json!(other), "jwks"),
    ];
    let schema: Value = serde_json::from_str(&Authorization::describe().settings_schema).unwrap();
    let all: Vec<String> = leaves(&schema).into_iter().map(|(path, _)| path).collect();
    let mut listed: Vec<&str> = rows.iter().map(|(path, ..)| *path).collect();
    listed.sort_unstable();
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(sorted, listed, "a setting without a row");
    for (path, value, parts) in rows {
        let changed = data(&with(&settings, path, value))["kaos"].clone();
        let differs = |part: &&String| changed[part.as_str()] != base[part.as_str()];
        let told: Vec<&str> = base.as_object().unwrap().keys().filter(differs).map(String::as_str).collect();
        assert_eq!(told.join(" "), parts, "{path}");
    }
}
