//! Tests privileges and names of Secrets that come from settings: which authors of settings may set them, and how
//! refusals name the settings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::guard_power::{container, pod};
use crate::widget::{deployment, planned, planned_by, rules};
use kaos_policy::{
    contract::Refusal,
    guard::{Rule, UserPrivileges},
    manifest::Privilege,
    render::Verdict,
    settings::{Layer, Origin},
};
use serde_json::{Value, json};

#[test]
fn only_settings_for_the_cluster_allow_secrets_and_privileges() {
    let origins = json!([
        ["spec.template.spec.imagePullSecrets[0].name", "settings.pullSecrets[0]"],
        ["spec.template.spec.containers[0]", "settings.security"],
    ]);
    let run = |layers: &[Layer], pod: Value| {
        let own = json!({"origins": origins.clone()});
        planned("{}", layers, &json!([deployment(pod)]), own, UserPrivileges::Forbidden)
    };
    let pull = |name: &str| pod(json!({"imagePullSecrets": [{"name": name}]}));
    let given = |origin| [Layer::tree(origin, "widget", json!({"pullSecrets": ["regcred"]}))];
    assert_eq!(
        rules(&run(&[], pull("of-the-policy"))),
        [Rule::NamedReferences],
        "a default comes from the policy itself"
    );
    assert!(run(&given(Origin::OperatorConfig), pull("regcred")).planned().is_some());
    let namespace = given(Origin::NamespacePolicy("n/p".into()));
    assert_eq!(rules(&run(&namespace, pull("regcred"))), [Rule::NamedReferences]);
    let privileged = json!({"security": {"securityContext": {"privileged": true}}});
    let layers = [Layer::tree(Origin::ClusterPolicy("p".into()), "widget", privileged)];
    assert!(run(&layers, container(json!({"securityContext": {"privileged": true}}))).planned().is_some());
}

#[test]
fn installed_settings_raise_only_privileges_that_the_operator_may_grant() {
    let privileged = || json!({"securityContext": {"privileged": true}});
    let run = |layers: &[Layer], mut user: Value, listed: Option<&[Privilege]>| {
        user["origins"] = json!([["spec.template.spec.containers[0]", "settings.security"]]);
        let listed = listed.map(|listed| listed.iter().copied().collect());
        let plan = json!([deployment(container(privileged()))]);
        planned_by("{}", layers, &plan, user, |renderer| renderer.with_grantable_privileges(listed))
    };
    let by = |origin: Origin| [Layer::tree(origin, "widget", json!({"security": privileged()}))];
    for origin in [Origin::ClusterPolicy("p".into()), Origin::OperatorConfig, Origin::Environment] {
        let layers = by(origin.clone());
        assert!(run(&layers, json!({}), None).planned().is_some(), "{origin}");
        assert!(run(&layers, json!({}), Some(&[Privilege::Privileged])).planned().is_some(), "{origin}");
        let refused = run(&layers, json!({}), Some(&[Privilege::HostPath]));
        assert_eq!(rules(&refused), [Rule::NoPrivilege], "{origin}");
        let told = refused.failed().unwrap().to_string();
        assert!(told.contains("--grantable-privileges"), "{told}");
        assert!(run(&layers, json!({"podSpec": container(privileged())}), Some(&[])).planned().is_some(), "{origin}");
    }
    for origin in [Origin::PolicyFile("x.wasm".into()), Origin::File("s.yaml".into()), Origin::CommandLine] {
        assert!(
            run(&by(origin.clone()), json!({}), Some(&[])).planned().is_some(),
            "the operator's own flags set {origin}"
        );
    }
}

#[test]
fn a_setting_may_have_a_prefix_before_the_fields_name() {
    let sysctls = json!({"sysctls": [{"name": "net.core.somaxconn", "value": "9"}]});
    let layers =
        |name: &str| [Layer::tree(Origin::CommandLine, "widget", json!({"security": {name: sysctls.clone()}}))];
    let run = |layers: &[Layer]| {
        let pod = pod(json!({"securityContext": sysctls.clone()}));
        let names = ["podSecurityContext", "podsecurityContext", "securityContextOfPods"];
        let from =
            names.map(|name| ["spec.template.spec.securityContext".to_owned(), format!("settings.security.{name}")]);
        planned("{}", layers, &json!([deployment(pod)]), json!({"origins": from}), UserPrivileges::Allowed)
    };
    assert!(run(&layers("podSecurityContext")).planned().is_some());
    assert_eq!(rules(&run(&layers("podsecurityContext"))), [Rule::NoPrivilege]);
    assert_eq!(rules(&run(&layers("securityContextOfPods"))), [Rule::NoPrivilege]);
}

#[test]
fn a_namespaces_setting_that_raises_privilege_is_reported_by_its_origin() {
    let privileged = || json!({"securityContext": {"privileged": true}});
    let layers = [Layer::tree(Origin::NamespacePolicy("n/p".into()), "widget", json!({"security": privileged()}))];
    let plan = json!([deployment(container(privileged()))]);
    let own = || json!({"origins": [["spec.template.spec.containers[0]", "settings.security"]]});
    let run = |file: &str| planned(file, &layers, &plan, own(), UserPrivileges::Allowed);
    let Verdict::Refused(Refusal::Invalid(violations)) = run("{}").verdict else { panic!("must be refused") };
    assert!(violations[0].path.starts_with("settings.widget.security"), "{violations:?}");
    let message = &violations[0].message;
    assert!(message.contains("n/p") && message.contains("privilege privileged"), "{message}");
    assert_eq!(violations.len(), 1);
    assert!(run("grants: {privileges: [privileged]}").planned().is_some());
    let more = json!([deployment(pod(
        json!({"hostPID": true, "containers": [{"name": "main", "securityContext": {"privileged": true}}]})
    ))]);
    let both = planned("{}", &layers, &more, own(), UserPrivileges::Allowed);
    assert_eq!(rules(&both), [Rule::NoPrivilege], "the policy is responsible for a privilege that it adds itself");
}
