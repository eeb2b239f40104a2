//! Tests which layer's settings a declared origin names. The settings of one layer allow nothing in the plan of another
//! layer. A policy that changes an overlay's variable is the author of the variable.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::{
    overlay::{Overlay, base, each, rendered, rendered_with},
    widget::{NATIVE, admitted, deployment, rules, translate_planned},
};
use kaos_policy::{
    code::Native,
    contract::{EnvSource, EnvVar, KeySelector, Origin as Declared, Plan, Refusal, Subject},
    guard::Rule,
    render::Rendered,
    settings::{Layer, Origin},
};
use serde_json::{Value, json};

const CONTAINER: &str = "spec.template.spec.containers[0]";
const SCHEMA: &str = r#"{"type":"object","additionalProperties":false,"properties":{
    "image":{"type":"string","default":"img:1"},
    "pullSecrets":{"type":"array","default":[]},
    "security":{"type":"object","default":{}}}}"#;

/// Checks which layer broke which rules. Returns the message of the failure.
fn broken(rendered: &Rendered, layer: &str, expected: &[Rule]) -> String {
    let failed = rendered.failed().unwrap_or_else(|| panic!("{:?}", rendered.verdict));
    assert_eq!((failed.policy.name.as_str(), rules(rendered).as_slice()), (layer, expected), "{failed}");
    failed.to_string()
}

fn privileged() -> Value {
    json!({"securityContext": {"privileged": true}})
}

fn container(extra: &Value) -> Value {
    let mut container = json!({"name": "main", "image": "img:1"});
    container.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"containers": [container]})
}

/// Returns a layer of settings that the operator's owner wrote for the policy with this name.
fn owners(policy: &str, tree: Value) -> [Layer; 1] {
    [Layer::tree(Origin::ClusterPolicy("p".into()), policy, tree)]
}

fn change(key: &'static str, value: Value) -> impl Fn(&mut Plan) + Send + Sync + 'static {
    move |plan| {
        each(plan, |manifest| manifest["spec"]["template"]["spec"]["containers"][0][key] = value.clone());
        let declared =
            Declared { manifest: 0, path: format!("{CONTAINER}.{key}"), from: format!("settings.security.{key}") };
        plan.origins.push(declared);
    }
}

/// Renders a Deployment. The policy declares `settings.security` as the origin of the container, and
/// `settings.pullSecrets` as the origin of the pod's Secrets.
fn over(layers: &[Layer], pod: Value, amend: impl Fn(&mut Plan) + Send + Sync + 'static) -> Rendered {
    let overlay = Overlay { schema: SCHEMA, ..Overlay::amending("over", amend) }.policy("{}");
    let origins = json!([
        [CONTAINER, "settings.security"],
        ["spec.template.spec.imagePullSecrets[0].name", "settings.pullSecrets[0]"],
    ]);
    rendered_with(layers, base("{}"), vec![overlay], &json!([deployment(pod)]), json!({"origins": origins}))
}

#[test]
fn a_setting_of_the_policy_below_allows_no_privilege_of_an_overlay() {
    let add = || change("securityContext", json!({"privileged": true}));
    let run = |policy: &str| over(&owners(policy, json!({"security": privileged()})), container(&json!({})), add());
    let told = broken(&run("widget"), "over", &[Rule::NoPrivilege]);
    assert!(told.contains("is a setting of the layer below (policy widget)"), "{told}");
    assert!(run("over").planned().is_some(), "{:?}", run("over").verdict);
}

#[test]
fn another_image_does_not_keep_a_privilege_from_a_setting_of_the_policy_below() {
    let run = |amend: fn(&mut Plan)| {
        let layers = owners("widget", json!({"security": privileged(), "pullSecrets": ["regcred"]}));
        let mut pod = container(&privileged());
        pod["imagePullSecrets"] = json!([{"name": "regcred"}]);
        over(&layers, pod, amend)
    };
    let image = |plan: &mut Plan| {
        each(plan, |manifest| manifest["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other:1"));
    };
    let label = |plan: &mut Plan| each(plan, |manifest| manifest["metadata"]["labels"] = json!({"team": "x"}));
    broken(&run(image), "over", &[Rule::NoPrivilege, Rule::NamedReferences]);
    assert!(run(label).planned().is_some(), "{:?}", run(label).verdict);
}

#[test]
fn a_setting_of_an_overlay_allows_nothing_in_the_plan_of_the_policy() {
    let layers = owners("over", json!({"security": privileged(), "pullSecrets": ["regcred"]}));
    let mut pod = container(&privileged());
    pod["imagePullSecrets"] = json!([{"name": "regcred"}]);
    broken(&over(&layers, pod, |_| ()), "widget", &[Rule::NoPrivilege, Rule::NamedReferences]);
}

#[test]
fn an_explanation_names_the_settings_of_the_layer_that_set_the_value() {
    let layers: Vec<Layer> = ["widget", "over"]
        .into_iter()
        .flat_map(|policy| owners(policy, json!({"image": "img:2", "security": {"workingDir": "/w"}})))
        .collect();
    let pod = json!({"containers": [{"name": "main", "image": "img:2"}]});
    let amend = change("workingDir", json!("/w"));
    let overlay = Overlay { schema: SCHEMA, ..Overlay::amending("over", amend) }.policy("{}");
    let user = json!({"origins": [[format!("{CONTAINER}.image"), "settings.image"]]});
    let explained = rendered_with(&layers, base("{}"), vec![overlay], &json!([deployment(pod)]), user).explained();
    for (field, from, policy) in
        [("image", "settings.image", "widget"), ("workingDir", "settings.security.workingDir", "over")]
    {
        let value = explained.iter().find(|it| it.path == format!("{CONTAINER}.{field}")).unwrap();
        let layer = value.layer.as_deref().unwrap_or_default();
        assert_eq!(value.from, from);
        assert!(layer.ends_with(&format!("(policy {policy})")), "{field}: {layer}");
    }
}

fn secret(name: &str) -> EnvSource {
    EnvSource::SecretKey(KeySelector { name: name.into(), key: "k".into(), optional: false })
}

fn from_secret(name: &str) -> Value {
    json!({"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]})
}

/// An overlay that sets a variable from a Secret.
fn mapping() -> Overlay {
    Overlay::mapping("over", |mut env: Vec<EnvVar>| {
        let (container, name, origin) = ("main".into(), "TOKEN".into(), "settings.x".into());
        env.push(EnvVar { container, name, source: secret("token"), origin });
        env
    })
}

/// Returns a plan in which the overlay's variable comes from another Secret.
fn takes_another_secret(subject: &Subject, mut env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    for variable in &mut env {
        variable.source = secret("owners");
    }
    translate_planned(subject, env)
}

/// Returns a plan that declares an invalid origin for the overlay's variable.
fn declares_nonsense(subject: &Subject, mut env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    for variable in &mut env {
        variable.origin = "nonsense".into();
    }
    translate_planned(subject, env)
}

#[test]
fn a_policy_that_changes_a_variable_of_an_overlay_is_the_author_of_the_variable() {
    let run = |translate, name: &str, grants: &str| {
        let policy = admitted(Native { translate, ..NATIVE }, "{}");
        let overlay = mapping().policy(grants);
        rendered(policy, vec![overlay], &json!([deployment(container(&from_secret(name)))]), json!({}))
    };
    let grants = "grants: {secrets: [token, owners]}";
    assert!(run(translate_planned, "token", grants).planned().is_some());
    broken(&run(takes_another_secret, "owners", grants), "widget", &[Rule::NamedReferences]);
    broken(&run(takes_another_secret, "owners", "{}"), "widget", &[Rule::NamedReferences]);
    let nonsense = run(declares_nonsense, "token", grants);
    broken(&nonsense, "widget", &[Rule::ValidOrigins, Rule::NamedReferences]);
}

#[test]
fn a_policy_that_leaves_a_variable_of_an_overlay_out_of_the_container_breaks_the_rule_itself() {
    let policy = admitted(Native { translate: translate_planned, ..NATIVE }, "{}");
    let overlay = mapping().policy("grants: {secrets: [token]}");
    let left_out = rendered(policy, vec![overlay], &json!([deployment(container(&json!({})))]), json!({}));
    broken(&left_out, "widget", &[Rule::EnvAsMapped]);
}

#[test]
fn a_variable_that_an_overlay_maps_twice_is_a_breach_of_the_overlay() {
    let twice = Overlay::mapping("over", |mut env: Vec<EnvVar>| {
        for value in ["a", "b"] {
            let source = EnvSource::Literal(value.into());
            env.push(EnvVar { container: "main".into(), name: "X".into(), source, origin: "settings.x".into() });
        }
        env
    });
    let env = json!({"env": [{"name": "X", "value": "a"}, {"name": "X", "value": "b"}]});
    let plan = json!([deployment(container(&env))]);
    broken(&rendered(base("{}"), vec![twice.policy("{}")], &plan, json!({})), "over", &[Rule::NoDuplicateEnv]);
}
