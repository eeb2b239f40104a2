//! Tests Secrets and PersistentVolumeClaims that no pod of a plan names. The plan refers to these objects in data
//! sources, or in the ServiceAccount of its pods.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value)]

use crate::widget::{deployment, planned, rules};
use kaos_policy::{
    guard::{Rule, UserPrivileges},
    render::Rendered,
};
use serde_json::{Value, json};

fn run(file: &str, plan: &Value, user: Value) -> Rendered {
    planned(file, &[], plan, user, UserPrivileges::Allowed)
}

fn claim(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec})
}

/// Returns a manifest for each way in which a plan can create a PersistentVolumeClaim.
fn made(spec: &Value) -> [Value; 3] {
    let volume = json!({"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}});
    let pod = json!({"containers": [{"name": "main"}], "volumes": [volume]});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w"}, "spec": {
        "serviceName": "w", "selector": {}, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}],
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "main"}]}}}});
    [claim("own", spec), deployment(pod), set]
}

/// The path of the PersistentVolumeClaim's spec in each manifest of [`made`].
const AT: [&str; 3] =
    ["spec", "spec.template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec", "spec.volumeClaimTemplates[0].spec"];

#[test]
fn data_sources_need_the_users_spec_or_a_grant() {
    for source in [
        json!({"kind": "PersistentVolumeClaim", "name": "c"}),
        json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "c"}),
    ] {
        for field in ["dataSource", "dataSourceRef"] {
            for (manifest, at) in made(&json!({"accessModes": ["ReadWriteOnce"], field: source})).into_iter().zip(AT) {
                let plan = json!([manifest]);
                let from = |source: &str| json!([[format!("{at}.{field}"), source]]);
                assert_eq!(rules(&run("{}", &plan, json!({}))), [Rule::NamedReferences], "{plan}");
                let title = json!({"title": {"name": "c"}, "origins": from("spec.title")});
                assert_eq!(rules(&run("{}", &plan, title)), [Rule::NamedReferences], "no reference");
                assert!(run("grants: {persistentVolumeClaims: [c]}", &plan, json!({})).planned().is_some(), "{plan}");
                let origins = from("spec.podSpec.volumes[0].spec.dataSource");
                let own = json!({"podSpec": {"volumes": [{"spec": {"dataSource": source}}]}, "origins": origins});
                assert!(run("{}", &plan, own).planned().is_some(), "the user's own spec names the data source: {plan}");
                // A PersistentVolumeClaim of another user can already have the planned name. Kubernetes would copy this
                // user's data before the operator notices the conflict.
                let both = json!([claim("c", &json!({"accessModes": ["ReadWriteOnce"]})), manifest]);
                assert_eq!(rules(&run("{}", &both, json!({}))), [Rule::NamedReferences], "{plan}");
            }
        }
    }
    for (own, from) in [
        (json!({"restore": {"snapshotName": "s"}}), "spec.restore.snapshotName"),
        (json!({"snapshots": ["s"]}), "spec.snapshots[0]"),
    ] {
        let mut own = own;
        own["origins"] = json!([["spec.dataSource.name", from]]);
        let source = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"});
        assert!(run("{}", &json!([claim("own", &json!({"dataSource": source}))]), own).planned().is_some());
    }
    for empty in made(&json!({"accessModes": ["ReadWriteOnce"]})) {
        assert!(run("{}", &json!([empty]), json!({})).planned().is_some(), "{empty}");
    }
}

#[test]
fn only_the_users_spec_allows_a_data_source_in_another_namespace() {
    let source = |namespace: &str| json!({"kind": "PersistentVolumeClaim", "name": "c", "namespace": namespace});
    let plan = |namespace: &str| json!([claim("own", &json!({"dataSourceRef": source(namespace)}))]);
    let granted = "grants: {persistentVolumeClaims: [c]}";
    let from = |source: &str| json!([["spec.dataSourceRef.name", source]]);
    let name = json!({"claim": "c", "origins": from("spec.claim")});
    assert_eq!(rules(&run(granted, &plan("other"), name)), [Rule::NamedReferences]);
    let of = |namespace: &str| json!({"dataSourceRef": source(namespace), "origins": from("spec.dataSourceRef.name")});
    assert!(run("{}", &plan("other"), of("other")).planned().is_some());
    assert_eq!(rules(&run("{}", &plan("other"), of("third"))), [Rule::NamedReferences]);
    assert!(run(granted, &plan("n"), json!({})).planned().is_some(), "the object's own");
}

#[test]
fn secrets_of_a_planned_account_need_the_spec_a_grant_or_the_same_plan() {
    for field in ["imagePullSecrets", "secrets"] {
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "own"}, field: [{"name": "s"}]});
        let plan = json!([account]);
        assert_eq!(rules(&run("{}", &plan, json!({}))), [Rule::NamedReferences], "{field}");
        assert!(run("grants: {secrets: [s]}", &plan, json!({})).planned().is_some(), "{field}");
        let own = json!({"pullSecret": "s", "origins": [[format!("{field}[0].name"), "spec.pullSecret"]]});
        assert!(run("{}", &plan, own).planned().is_some(), "{field}");
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        assert!(run("{}", &json!([secret, account]), json!({})).planned().is_some(), "{field}");
    }
}

#[test]
fn a_service_account_of_the_same_plan_needs_no_grant() {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "own"}});
    let pod = json!({"containers": [{"name": "main"}], "serviceAccountName": "own"});
    let plan = json!([account, deployment(pod)]);
    assert!(run("{}", &plan, json!({})).planned().is_some());
}
