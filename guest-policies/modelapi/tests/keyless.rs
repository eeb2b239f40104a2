//! Proxies get the permission to start without a master key, but the upgrade from KAOS's operator restarts no pod.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use kaos_modelapi::ModelApi;
use kaos_policy_sdk::testing;
use serde_json::{Value, json};

const PERMISSION: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";

/// Returns whether the plan gives the permission to a proxy that was created at this time.
fn is_permitted(spec: &Value, created: Option<&str>, since: &str) -> bool {
    let mut object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
        "metadata": {"name": "llm", "namespace": "n"}, "spec": {"mode": "Proxy"}});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    if let Some(created) = created {
        object["metadata"]["creationTimestamp"] = json!(created);
    }
    let mut settings = support::default_settings::<ModelApi>();
    settings["proxyConfig"]["withoutMasterKey"] = json!(true);
    settings["proxyConfig"]["withoutMasterKeySince"] = json!(since);
    let subject = testing::subject(&object).settings(&settings).build();
    let plan = testing::plan::<ModelApi>(&subject).unwrap_or_else(|refused| panic!("{refused:?}"));
    testing::env_value(&plan.env, "model-api", PERMISSION) == Some("true")
}

#[test]
fn only_proxies_that_are_not_older_than_the_time_get_the_permission() {
    let spec = json!({"proxyConfig": {"models": ["m"]}});
    let since = "2026-11-28T00:00:00Z";
    for (created, is) in [
        (None, true),
        (Some("2026-11-28T00:00:00Z"), true),
        (Some("2027-01-01T00:00:00Z"), true),
        (Some("2026-11-27T23:59:59Z"), false),
    ] {
        assert_eq!(is_permitted(&spec, created, since), is, "{created:?}");
        assert!(is_permitted(&spec, created, ""), "without a time, all proxies get the permission");
    }
}

#[test]
fn a_proxy_with_a_master_key_of_its_own_gets_no_permission() {
    let text = |config: &str| json!({"proxyConfig": {"models": ["m"], "configYaml": {"fromString": config}}});
    let env = json!([{"name": "LITELLM_MASTER_KEY", "value": "sk-1"}]);
    assert!(!is_permitted(&json!({"proxyConfig": {"models": ["m"]}, "container": {"env": env}}), None, ""));
    let own = "model_list: [{model_name: m, litellm_params: {model: m}}]";
    assert!(!is_permitted(&text(&format!("{own}\ngeneral_settings: {{master_key: sk-1}}\n")), None, ""));
    assert!(is_permitted(&text(&format!("{own} # no master_key\n")), None, ""));
}
