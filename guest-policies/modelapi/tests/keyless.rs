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

#[test]
fn an_older_proxy_gets_the_permission_if_its_image_does_not_start_without_it() {
    let (older, since) = (Some("2026-01-01T00:00:00Z"), "2026-11-28T00:00:00Z");
    let with = |image: &str, more: Value| {
        let mut spec = json!({"proxyConfig": {"models": ["m"]}, "container": {"image": image}});
        for (field, value) in more.as_object().unwrap() {
            spec[field].as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        }
        is_permitted(&spec, older, since)
    };
    let later = "ghcr.io/berriai/litellm:main-v1.104.1-stable";
    assert!(with(later, json!({})) && !with("ghcr.io/berriai/litellm:main-v1.103.0-stable", json!({})));
    assert!(!with("ghcr.io/berriai/litellm:main-stable", json!({})), "the tag names no version");
    // Each of these proxies has a master key, or can have one in a Secret. So these proxies do not need the permission.
    let secret = json!({"proxyConfig": {"configYaml": {"fromSecretKeyRef": {"name": "s", "key": "k"}}}});
    let key = json!({"container": {"env": [{"name": "LITELLM_MASTER_KEY", "value": "sk-1"}]}});
    for hidden in [secret, key] {
        assert!(!with(later, hidden.clone()), "{hidden}");
    }
    let pod = |container: Value| {
        let spec = json!({"proxyConfig": {"models": ["m"]}, "container": {"image": later},
            "podSpec": {"containers": [container]}});
        is_permitted(&spec, older, since)
    };
    assert!(!pod(json!({"name": "model-api", "envFrom": [{"secretRef": {"name": "s"}}]})));
    assert!(pod(json!({"name": "model-api", "workingDir": "/x"})));
}
