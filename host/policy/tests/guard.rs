//! The guard's rules and the stamp, seen through the pass with a native policy that answers what it finds in the
//! object: `spec.plan` is its plan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/widget.rs"]
mod widget;

use kaos_policy::{
    contract::Refusal,
    guard::Rule,
    lookup::Fixed,
    render::Rendered,
    stamp::{APPLIED_DIGEST, POD_SPEC_HASH},
};
use serde_json::{Value, json};
use widget::{config, deployment, render, renderer, rules, widget};

#[test]
fn a_plan_is_stamped_with_its_owner_and_digests() {
    let pod = json!({"containers": [{"name": "main", "image": "i"}],
        "volumes": [{"name": "c", "configMap": {"name": "c"}}]});
    let plan = |data: &str| {
        let mut config = config("c");
        config["data"]["a"] = json!(data);
        render(json!({"plan": [config, deployment(pod.clone())]}))
    };
    let (one, other) = (plan("1"), plan("2"));
    let live = &one.manifests()[1];
    assert_eq!(live["metadata"]["namespace"], "n");
    assert_eq!(
        live["metadata"]["ownerReferences"],
        json!([{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u",
            "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(live["metadata"]["labels"]["app.kubernetes.io/managed-by"], "kaos-operator");
    assert!(live["metadata"]["annotations"][APPLIED_DIGEST].as_str().unwrap().starts_with("sha256:"));
    let hash = |rendered: &Rendered| {
        rendered.manifests()[1]["spec"]["template"]["metadata"]["annotations"][POD_SPEC_HASH].clone()
    };
    assert_eq!(hash(&one).as_str().unwrap().len(), 16);
    assert_ne!(hash(&one), hash(&other), "a ConfigMap that the pod mounts rolls it");
    assert_eq!(live["spec"]["selector"], json!({}), "selectors are never stamped");
}

#[test]
fn a_value_of_a_wrong_type_is_refused_where_the_user_wrote_it() {
    let pod = json!({"containers": [{"name": "main", "image": "i", "resources": 3}], "volumes": "x"});
    let refused = render(json!({"plan": [config("c"), deployment(pod)]}));
    let Some(Refusal::Invalid(violations)) = refused.refused() else { panic!("{:?}", refused.verdict) };
    let told: Vec<String> = violations.iter().map(|it| format!("{}: {}", it.path, it.message)).collect();
    assert_eq!(
        told,
        [
            "spec.plan[1].spec.template.spec.containers[0].resources: must be an object of type \
             ResourceRequirements, and is a number: no Deployment can hold it; correct it or take it out",
            "spec.plan[1].spec.template.spec.volumes: must be a list, and is a text: \
             no Deployment can hold it; correct it or take it out",
        ]
    );
}

#[test]
fn a_value_of_a_wrong_type_that_no_user_wrote_is_the_policys_failure() {
    let own = deployment(json!({"containers": [{"name": "main", "image": "i"}], "volumes": "x"})).to_string();
    assert_eq!(rules(&render(json!({"plan": [own]}))), [Rule::FitsKind]);
}

#[test]
fn each_rule_of_the_guard_is_told_by_name() {
    let with = |field: &str, value: Value| {
        let mut config = config("c");
        config["metadata"][field] = value;
        render(json!({"plan": [config]}))
    };
    assert_eq!(rules(&with("namespace", json!("other"))), [Rule::OwnNamespace]);
    assert_eq!(rules(&with("name", json!("No"))), [Rule::ValidNames]);
    assert_eq!(rules(&with("finalizers", json!(["a/b"]))), [Rule::HostMetadata]);
    assert_eq!(rules(&with("ownerReferences", json!([]))), [Rule::HostMetadata]);
    assert_eq!(rules(&with("labels", json!({"kaos.tools/policy": "x"}))), [Rule::HostMetadata]);
    assert_eq!(rules(&with("labels", json!({"a": "no label"}))), [Rule::ValidNames]);
    assert_eq!(rules(&with("annotations", json!({APPLIED_DIGEST: "x"}))), [Rule::HostMetadata]);
    assert_eq!(rules(&render(json!({"plan": [config("c"), config("c")]}))), [Rule::NoDuplicates]);
    assert!(
        rules(&render(json!({"plan": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}]})))
            .contains(&Rule::NoClusterPower)
    );
    assert!(rules(&render(json!({"plan": [[]]}))).contains(&Rule::WellFormed));
    let itself = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    assert!(rules(&render(json!({"plan": [itself]}))).contains(&Rule::NotItself));
}

#[test]
fn the_mapping_must_be_what_the_manifests_carry() {
    let run = |env: Value, carried: Value| {
        render(json!({"env": env, "plan": [deployment(json!({"containers": [{"name": "main", "env": carried}]}))]}))
    };
    let a = json!({"name": "A", "value": "1"});
    assert!(run(json!({"A": "1"}), json!([a])).planned().is_some());
    assert_eq!(rules(&run(json!({}), json!([a]))), [Rule::EnvAsMapped]);
    assert_eq!(rules(&run(json!({"A": "2"}), json!([a]))), [Rule::EnvAsMapped]);
    assert_eq!(rules(&run(json!({"A": "1", "B": "1"}), json!([a]))), [Rule::EnvAsMapped]);
    assert_eq!(rules(&run(json!({"A": "1"}), json!([a, a]))), [Rule::NoDuplicateEnv]);
}

#[test]
fn other_namespaces_are_read_by_grant_and_secrets_never() {
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "sizes", "namespace": "kaos-system"}, "data": {"x": "found"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "namespace": "n"}, "data": {"k": "c2VjcmV0"}});
    let lookup = Fixed::new([elsewhere, secret]);
    let object =
        widget(json!({"needs": [{"name": "sizes", "namespace": "kaos-system"}, {"name": "s", "kind": "Secret"}]}));
    let answers = |file: &str| {
        let rendered = renderer(file, &[]).render(&object, &lookup).unwrap();
        assert_eq!(
            rendered.needs.iter().map(|need| need.id.as_str()).collect::<Vec<_>>(),
            ["widget/s", "widget/sizes"]
        );
        serde_json::to_string(&rendered.subject().found).unwrap()
    };
    assert!(answers("{}").contains("no grant"));
    let grant =
        "grants: {reads: [{apiVersion: v1, kind: ConfigMap, namespace: $(OPERATOR_NAMESPACE), names: [sizes]}]}";
    let granted = answers(grant);
    assert!(granted.contains("found") && !granted.contains("c2VjcmV0"));
}

#[test]
fn templates_have_no_metadata_that_controllers_act_on() {
    let template = |metadata: Value| {
        let mut deployment = deployment(json!({"containers": [{"name": "main"}]}));
        deployment["spec"]["template"]["metadata"] = metadata;
        render(json!({"plan": [deployment]}))
    };
    assert!(template(json!({"name": "w", "labels": {"a": "b"}, "creationTimestamp": null})).planned().is_some());
    assert_eq!(rules(&template(json!({"finalizers": ["evil.example/never"]}))), [Rule::HostMetadata]);
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}]);
    assert_eq!(rules(&template(json!({"ownerReferences": owner}))), [Rule::HostMetadata]);
    assert_eq!(rules(&template(json!({"labels": {"a": "no label"}}))), [Rule::ValidNames]);
    assert_eq!(rules(&template(json!({"annotations": {POD_SPEC_HASH: "x"}}))), [Rule::HostMetadata]);
    let claim = json!({"metadata": {"name": "data", "finalizers": ["evil.example/never"]}, "spec": {}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w"}, "spec": {
        "serviceName": "w", "selector": {}, "volumeClaimTemplates": [claim],
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "main"}]}}}});
    assert_eq!(rules(&render(json!({"plan": [set]}))), [Rule::HostMetadata]);
}

#[test]
fn the_needs_of_all_rounds_together_are_bounded() {
    let needs = |count: usize| {
        let needs: Vec<Value> = (0..count).map(|i| json!({"name": format!("c{i}")})).collect();
        render(json!({"needs": needs}))
    };
    assert!(needs(256).planned().is_some());
    assert_eq!(rules(&needs(257)), [Rule::NeedsOrderly]);
}

#[test]
fn more_containers_than_anybody_means_are_refused() {
    let containers: Vec<Value> = (0..257).map(|i| json!({"name": format!("c{i}")})).collect();
    assert_eq!(rules(&render(json!({"plan": [deployment(json!({"containers": containers}))]}))), [Rule::Bounded]);
}

#[test]
fn what_looks_like_a_pod_inside_of_a_pod_has_no_mapping() {
    let inner = json!({"containers": [{"name": "zz", "env": [{"name": "Z", "value": "1"}]}]});
    let pod = json!({"containers": [{"name": "main"}], "x": inner});
    assert!(render(json!({"plan": [deployment(pod)]})).planned().is_some());
}
