//! Tests the guard's rules and the stamp, in passes of a native policy. The policy returns `spec.plan` of the object as
//! its plan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::widget::{NATIVE, admitted, alone, assess, config, deployment, planned, render, renderer, rules, widget};
use kaos_policy::{
    code::Native,
    contract::{Child, Observation, Outcome, Reference, Refusal, Report, Subject},
    guard::{Rule, UserPrivileges},
    lookup::Fixed,
    render::Rendered,
    settings::{Layer, Origin},
    stamp::{APPLIED_DIGEST, POD_SPEC_HASH},
};
use serde_json::{Value, json};

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
    assert_ne!(hash(&one), hash(&other), "a change of a mounted ConfigMap restarts the pods");
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
            "spec.plan[1].spec.template.spec.containers[0].resources: must be an object of type ResourceRequirements, \
             but is a number: no Deployment can contain this value; correct or remove it",
            "spec.plan[1].spec.template.spec.volumes: must be a list, but is a text: no Deployment can contain this \
             value; correct or remove it",
        ]
    );
}

#[test]
fn a_value_of_a_wrong_type_from_the_policy_is_its_failure() {
    let own = deployment(json!({"containers": [{"name": "main", "image": "i"}], "volumes": "x"})).to_string();
    assert_eq!(rules(&render(json!({"plan": [own]}))), [Rule::FitsKind]);
}

#[test]
fn every_rule_of_the_guard_is_reported_by_name() {
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
fn the_mapping_must_match_the_manifests() {
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
    let answers = |file: &str, watched: &[&str]| {
        let rendered = renderer(file, &[]).render(&object, &lookup).unwrap();
        assert_eq!(rendered.needs.iter().map(|need| need.id.as_str()).collect::<Vec<_>>(), watched);
        serde_json::to_string(&rendered.subject().found).unwrap()
    };
    assert!(answers("{}", &["widget/s"]).contains("no grant"));
    let grant =
        "grants: {reads: [{apiVersion: v1, kind: ConfigMap, namespace: $(OPERATOR_NAMESPACE), names: [sizes]}]}";
    let granted = answers(grant, &["widget/s", "widget/sizes"]);
    assert!(granted.contains("found") && !granted.contains("c2VjcmV0"));
}

/// Returns a report with the first child's live object as its message.
fn tell_the_first(subject: &Subject, seen: &Observation) -> Report {
    Report { message: seen.children[0].live.clone().unwrap(), ..assess(subject, seen) }
}

#[test]
fn a_policy_sees_the_keys_but_no_values_of_a_child_secret() {
    let live = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": r#"{"data":{"token":"c2VjcmV0"}}"#}},
        "data": {"token": "c2VjcmV0"}, "stringData": {"more": "c2VjcmV0"}, "type": "Opaque"});
    let renderer = alone(admitted(Native { assess: tell_the_first, ..NATIVE }, "{}"), &[]);
    let rendered = renderer.render(&widget(json!({})), &Fixed::default()).unwrap();
    let child = Child::new(Reference::of_object(&live), Some(&live));
    let told = renderer.assess(&rendered, Outcome::Applied, vec![child]).unwrap().report.message;
    assert!(!told.contains("c2VjcmV0"), "{told}");
    let shown: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&shown["data"], &shown["stringData"]), (&json!({"token": ""}), &json!({"more": ""})));
    assert_eq!(shown["type"], "Opaque");
}

#[test]
fn templates_with_metadata_that_controllers_act_on_are_refused() {
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

/// Renders an object with these settings and a plan that requests the finalizer.
fn holding(file: &str, layers: &[Layer], finalizer: &Value) -> Rendered {
    let user = json!({"finalizer": finalizer});
    planned(file, layers, &json!([]), user, UserPrivileges::Allowed)
}

#[test]
fn a_plan_may_not_ask_for_a_finalizer_of_others() {
    for own in ["example.com/hold", "widgets.example.com/hold"] {
        assert!(holding("{}", &[], &json!(own)).planned().is_some(), "{own}");
    }
    let foreign = json!("backup.example.org/hold");
    for wrong in
        [&foreign, &json!("notexample.com/hold"), &json!("foregroundDeletion"), &json!("example.com/"), &json!("")]
    {
        assert_eq!(rules(&holding("{}", &[], wrong)), [Rule::OwnFinalizer], "{wrong}");
    }
    assert!(holding("grants: {finalizers: [backup.example.org/hold]}", &[], &foreign).planned().is_some());
}

#[test]
fn an_extra_has_no_member_in_this_version_and_the_first_one_is_named() {
    let with = |extra: &str| planned("{}", &[], &json!([]), json!({"extra": extra}), UserPrivileges::Allowed);
    assert!(with("{}").planned().is_some());
    assert_eq!(rules(&with("[]")), [Rule::JsonObjects]);
    let refused = with(r#"{"kept": ["data"]}"#);
    assert_eq!(rules(&refused), [Rule::KnownExtra]);
    let told = refused.failed().unwrap().to_string();
    assert!(told.contains("extra: this host does not know the field `kept`"), "{told}");
}

#[test]
fn cluster_settings_may_name_a_foreign_finalizer_and_a_namespaces_may_not() {
    let foreign = json!("backup.example.org/hold");
    let by = |origin: Origin| [Layer::tree(origin, "widget", json!({"security": {"finalizer": foreign}}))];
    for origin in [Origin::OperatorConfig, Origin::ClusterPolicy("p".into()), Origin::CommandLine] {
        assert!(holding("{}", &by(origin.clone()), &foreign).planned().is_some(), "{origin}");
    }
    let said_otherwise = [Layer::tree(Origin::CommandLine, "widget", json!({"security": {"note": foreign}}))];
    assert_eq!(rules(&holding("{}", &said_otherwise, &foreign)), [Rule::OwnFinalizer]);
    let refused = holding("{}", &by(Origin::NamespacePolicy("n/p".into())), &foreign);
    let Some(Refusal::Invalid(violations)) = refused.refused() else { panic!("{:?}", refused.verdict) };
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].path, "settings.widget.security.finalizer");
    assert!(violations[0].message.contains("n/p"), "{violations:?}");
}

#[test]
fn the_needs_of_all_rounds_together_are_limited() {
    let needs = |count: usize| {
        let needs: Vec<Value> = (0..count).map(|i| json!({"name": format!("c{i}")})).collect();
        render(json!({"needs": needs}))
    };
    assert!(needs(256).planned().is_some());
    assert_eq!(rules(&needs(257)), [Rule::NeedsOrderly]);
}

#[test]
fn too_many_containers_are_refused() {
    let containers: Vec<Value> = (0..257).map(|i| json!({"name": format!("c{i}")})).collect();
    assert_eq!(rules(&render(json!({"plan": [deployment(json!({"containers": containers}))]}))), [Rule::Bounded]);
}

#[test]
fn a_pod_like_value_inside_of_a_pod_needs_no_mapping() {
    let inner = json!({"containers": [{"name": "zz", "env": [{"name": "Z", "value": "1"}]}]});
    let pod = json!({"containers": [{"name": "main"}], "x": inner});
    assert!(render(json!({"plan": [deployment(pod)]})).planned().is_some());
}
