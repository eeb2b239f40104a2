//! Proxies get the permission to start without a master key, but the upgrade from KAOS's operator restarts no pod.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use kaos_modelapi::ModelApi;
use kaos_policy_sdk::types::Plan;
use kaos_policy_sdk::{Policy as _, testing};
use serde_json::{Value, json};

const PERMISSION: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";

/// Returns the plan for a proxy that was created at this time. `live` are the objects of the cluster.
fn plan(spec: &Value, created: Option<&str>, since: &str, live: &[Value]) -> Plan {
    let mut object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
        "metadata": {"name": "llm", "namespace": "n"}, "spec": {"mode": "Proxy"}});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    if let Some(created) = created {
        object["metadata"]["creationTimestamp"] = json!(created);
    }
    let mut settings = support::default_settings::<ModelApi>();
    settings["proxyConfig"]["withoutMasterKey"] = json!(true);
    settings["proxyConfig"]["withoutMasterKeySince"] = json!(since);
    let subject = testing::subject(&object).settings(&settings).beside::<ModelApi>(live).build();
    testing::plan::<ModelApi>(&subject).unwrap_or_else(|refused| panic!("{refused:?}"))
}

fn has_permission(plan: &Plan) -> bool {
    testing::env_value(&plan.env, "model-api", PERMISSION) == Some("true")
}

/// Returns whether the plan gives the permission to a proxy that was created at this time.
fn is_permitted(spec: &Value, created: Option<&str>, since: &str) -> bool {
    has_permission(&plan(spec, created, since, &[]))
}

/// Returns the Deployment of the proxy with this metadata.
fn deployment(metadata: &Value) -> Value {
    let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "modelapi-llm", "namespace": "n"}});
    deployment["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    deployment
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
fn a_proxy_of_kaos_keeps_its_pods_without_the_permission_until_its_mark_goes() {
    let spec = json!({"proxyConfig": {"models": ["m"]}});
    let (created, since) = (Some("2027-01-01T00:00:00Z"), "2026-11-28T00:00:00Z");
    let with = |live: &[Value], since| plan(&spec, created, since, live);
    let mark = |plan: &Plan| {
        let deployment = testing::manifest(plan, "Deployment");
        deployment.str_at(&["metadata", "annotations", "kaos.tools/pods-without"]).map(str::to_owned)
    };
    // KAOS's operator sets no label `managed-by`.
    let of_kaos = deployment(&json!({"labels": {"app": "modelapi"}}));
    let taken_over = with(std::slice::from_ref(&of_kaos), since);
    assert_eq!((has_permission(&taken_over), mark(&taken_over).as_deref()), (false, Some(PERMISSION)));
    // This operator has applied the plan.
    let labels = json!({"app.kubernetes.io/managed-by": "kaos-operator"});
    let marked = deployment(&json!({"labels": labels, "annotations": {"kaos.tools/pods-without": PERMISSION}}));
    let again = with(&[marked], since);
    assert_eq!((has_permission(&again), mark(&again).as_deref()), (false, Some(PERMISSION)));
    // The mark or the Deployment is gone, or all proxies get the permission.
    for (live, since) in [(vec![deployment(&json!({"labels": labels}))], since), (vec![], since), (vec![of_kaos], "")] {
        let plan = with(&live, since);
        assert_eq!((has_permission(&plan), mark(&plan)), (true, None), "{live:?} {since}");
    }
}

#[test]
fn a_proxy_whose_deployment_does_not_matter_does_not_ask_for_it() {
    let needs = |created: &str, key: bool| {
        let env = if key { json!([{"name": "LITELLM_MASTER_KEY", "value": "sk-1"}]) } else { json!([]) };
        let object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
            "metadata": {"name": "llm", "namespace": "n", "creationTimestamp": created},
            "spec": {"mode": "Proxy", "proxyConfig": {"models": ["m"]}, "container": {"env": env}}});
        let mut settings = support::default_settings::<ModelApi>();
        settings["proxyConfig"]["withoutMasterKey"] = json!(true);
        settings["proxyConfig"]["withoutMasterKeySince"] = json!("2026-11-28T00:00:00Z");
        ModelApi::needs(&testing::subject(&object).settings(&settings).build()).len()
    };
    assert_eq!((needs("2027-01-01T00:00:00Z", false), needs("2027-01-01T00:00:00Z", true)), (1, 0));
    assert_eq!(needs("2026-01-01T00:00:00Z", false), 0);
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
