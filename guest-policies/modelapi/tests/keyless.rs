//! Proxies get the permission to start without a master key, but the upgrade from KAOS's operator restarts no pod.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use kaos_modelapi::ModelApi;
use kaos_policy_sdk::types::{Answer, Target};
use kaos_policy_sdk::{Policy, testing};
use serde_json::{Value, json};

const PERMISSION: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";
const IMAGE: &str = "ghcr.io/berriai/litellm:main-stable";

fn api(spec: Value) -> Value {
    let mut spec = spec;
    spec["mode"] = json!("Proxy");
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "n"},
        "spec": spec})
}

fn settings(only_new: bool) -> Value {
    let mut settings = support::default_settings::<ModelApi>();
    settings["proxyConfig"]["withoutMasterKey"] = json!(true);
    settings["proxyConfig"]["withoutMasterKeyOnlyNew"] = json!(only_new);
    settings
}

fn deployment(image: &str, env: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "modelapi-llm", "namespace": "n"},
        "spec": {"template": {"spec": {"containers": [{"name": "model-api", "image": image, "env": env}]}}}})
}

/// Returns whether the plan gives the permission to the proxy.
fn is_permitted(object: &Value, beside: &[Value], only_new: bool) -> bool {
    let subject = testing::subject(object).settings(&settings(only_new)).beside::<ModelApi>(beside).build();
    let plan = testing::plan::<ModelApi>(&subject).unwrap_or_else(|refused| panic!("{refused:?}"));
    testing::env_value(&plan.env, "model-api", PERMISSION) == Some("true")
}

#[test]
fn a_new_proxy_gets_the_permission_and_keeps_it() {
    let object = api(json!({"proxyConfig": {"models": ["m"]}}));
    assert!(is_permitted(&object, &[], true));
    let own = deployment(IMAGE, &json!([{"name": PERMISSION, "value": "true"}]));
    assert!(is_permitted(&object, &[own], true));
}

#[test]
fn a_proxy_that_runs_without_the_permission_gets_it_with_another_image() {
    let object = api(json!({"proxyConfig": {"models": ["m"]}}));
    let left = deployment(IMAGE, &json!([{"name": "LITELLM_LOG", "value": "INFO"}]));
    assert!(!is_permitted(&object, &[left.clone()], true));
    assert!(is_permitted(&object, &[left.clone()], false), "the setting asks for all proxies");
    assert!(is_permitted(&object, &[deployment("litellm:1", &json!([]))], true));
    for own in [
        json!({"proxyConfig": {"models": ["m"]}, "container": {"image": "litellm:1"}}),
        json!({"proxyConfig": {"models": ["m"]}, "podSpec": {"containers": [{"name": "model-api", "image": "litellm:1"}]}}),
    ] {
        assert!(is_permitted(&api(own.clone()), &[left.clone()], true), "{own}");
        assert!(!is_permitted(&api(own.clone()), &[deployment("litellm:1", &json!([]))], true), "{own}");
    }
}

#[test]
fn a_deployment_that_the_policy_cannot_read_keeps_its_pods() {
    let object = api(json!({"proxyConfig": {"models": ["m"]}}));
    let forbidden = Answer::Forbidden("no right".to_owned());
    let subject = testing::subject(&object).settings(&settings(true)).answer("deployment", forbidden).build();
    let plan = testing::plan::<ModelApi>(&subject).unwrap();
    assert_eq!(testing::env_value(&plan.env, "model-api", PERMISSION), None);
}

#[test]
fn a_proxy_with_a_master_key_of_its_own_gets_no_permission() {
    for own in [
        json!({"proxyConfig": {"models": ["m"]}, "container": {"env": [{"name": "LITELLM_MASTER_KEY", "value": "sk-1"}]}}),
        json!({"proxyConfig": {"models": ["m"],
            "configYaml": {"fromString": "model_list: []\ngeneral_settings: {master_key: sk-1}\n"}}}),
    ] {
        assert!(!is_permitted(&api(own.clone()), &[], true) && !is_permitted(&api(own), &[], false));
    }
    let comment =
        json!({"proxyConfig": {"models": ["m"], "configYaml": {"fromString": "model_list: [] # no master_key\n"}}});
    assert!(is_permitted(&api(comment), &[], true));
}

#[test]
fn only_proxies_read_their_deployment_and_only_if_the_answer_depends_on_it() {
    let needs = |object: &Value, only_new: bool| {
        ModelApi::needs(&testing::subject(object).settings(&settings(only_new)).build())
    };
    let proxy = api(json!({"proxyConfig": {"models": ["m"]}}));
    let all = needs(&proxy, true);
    let Target::Named(named) = &all[0].target else { panic!("{all:?}") };
    assert_eq!(
        (all.len(), named.kind.as_str(), named.name.as_str(), all[0].optional),
        (1, "Deployment", "modelapi-llm", true)
    );
    assert!(needs(&proxy, false).is_empty());
    let mut hosted = api(json!({"hostedConfig": {"model": "m"}}));
    hosted["spec"]["mode"] = json!("Hosted");
    assert!(needs(&hosted, true).is_empty());
}
