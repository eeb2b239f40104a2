//! Tests the origins that the host reports for values that an API server would refuse, in passes of a native policy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::widget::{planned_by, renderer, widget};
use kaos_policy::{
    contract::Refusal,
    guard::UserPrivileges,
    kubernetes::Checks,
    lookup::Fixed,
    render::Rendered,
    settings::{Layer, Origin},
};
use serde_json::{Value, json};

fn workload(container: &Value) -> Value {
    let labels = json!({"app": "w"});
    let mut main = json!({"name": "main", "image": "i"});
    main.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [main]}}}})
}

/// Renders a plan with values that do not come from the user's spec.
fn own(container: &Value, user: Value, layers: &[Layer]) -> Rendered {
    let told = |renderer: kaos_policy::render::Renderer| renderer.with_checks(Checks::Fields);
    planned_by("{}", layers, &json!([workload(container)]), user, |it| {
        told(it.with_user_privileges(UserPrivileges::Allowed))
    })
}

fn failure(rendered: &Rendered) -> String {
    rendered.failed().unwrap_or_else(|| panic!("{:?}", rendered.verdict)).to_string()
}

fn violations(rendered: &Rendered) -> Vec<String> {
    let Some(Refusal::Invalid(violations)) = rendered.refused() else { panic!("{:?}", rendered.verdict) };
    violations.iter().map(|violation| violation.path.clone()).collect()
}

#[test]
fn a_bad_value_in_the_object_is_reported_to_the_user() {
    let plan = json!({"plan": [workload(&json!({"ports": [{"containerPort": 0}], "nodeSelecter": {}}))]});
    let render =
        |checks| renderer("{}", &[]).with_checks(checks).render(&widget(plan.clone()), &Fixed::default()).unwrap();
    let at = "spec.plan[0].spec.template.spec.containers[0]";
    assert_eq!(
        violations(&render(Checks::Fields)),
        [format!("{at}.nodeSelecter"), format!("{at}.ports[0].containerPort")]
    );
    assert_eq!(violations(&render(Checks::Values)), [format!("{at}.ports[0].containerPort")]);
    assert!(render(Checks::Nothing).planned().is_some());
}

#[test]
fn a_missing_field_is_reported_at_its_place() {
    let probe = json!({"readinessProbe": {"httpGet": {"path": "/x"}}});
    let mut user = probe.clone();
    user["origins"] = json!([["spec.template.spec.containers[0]", "spec"]]);
    let rendered = own(&probe, user, &[]);
    assert_eq!(violations(&rendered), ["spec.readinessProbe.httpGet.port"]);
}

#[test]
fn a_bad_value_from_a_setting_names_the_setting_and_its_origin() {
    let layer = |origin| [Layer::tree(origin, "widget", json!({"security": {"foo": 7}}))];
    let user = json!({"origins": [["spec.template.spec.containers[0].securityContext", "settings.security"]]});
    let rendered = own(&json!({"securityContext": {"foo": 7}}), user, &layer(Origin::CommandLine));
    let told = failure(&rendered);
    for part in [
        "manifests[0] (Deployment w) spec.template.spec.containers[0].securityContext.foo: ",
        "it comes from the setting widget.security.foo (--set)",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_bad_value_of_the_policy_itself_is_its_failure() {
    let told = failure(&own(&json!({"imagePullPolicy": "Sometimes"}), json!({}), &[]));
    assert!(
        told.contains("(Deployment w) spec.template.spec.containers[0].imagePullPolicy: \"Sometimes\" is not one of "),
        "{told}"
    );
}
