//! Tests origins that an overlay declares for the values that it adds or changes. The guard checks these origins like
//! the origins of a policy, and names the overlay.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::{
    overlay::{Overlay, base, each, rendered},
    widget::{config, deployment, rules},
};
use kaos_policy::{
    contract::{EnvSource, EnvVar, KeySelector, Origin, Plan},
    guard::Rule,
    render::Rendered,
};
use serde_json::{Value, json};

const POD: &str = "spec.template.spec";

fn pod() -> Value {
    json!({"containers": [{"name": "main", "image": "img:1"}]})
}

/// Checks the layer that the guard names and the rules that this layer broke. Returns the message of the failure.
fn broken(rendered: &Rendered, layer: &str, expected: &[Rule]) -> String {
    let failed = rendered.failed().unwrap_or_else(|| panic!("{:?}", rendered.verdict));
    assert_eq!((failed.policy.name.as_str(), rules(rendered).as_slice()), (layer, expected), "{failed}");
    failed.to_string()
}

fn declare(plan: &mut Plan, path: &str, from: &str) {
    plan.origins.push(Origin { manifest: 0, path: format!("{POD}{path}"), from: from.into() });
}

/// Renders a Deployment with an overlay that sets a field of the Deployment's pods. If `from` is given, the overlay
/// also declares this origin of the field.
fn over(pod: Value, user: Value, field: (&'static str, Value), from: Option<&'static str>) -> Rendered {
    let amend = move |plan: &mut Plan| {
        each(plan, |manifest| manifest["spec"]["template"]["spec"][field.0] = field.1.clone());
        if let Some(from) = from {
            declare(plan, &format!(".{}", field.0), from);
        }
    };
    let overlay = Overlay::amending("over", amend).policy("{}");
    rendered(base("{}"), vec![overlay], &json!([deployment(pod)]), user)
}

#[test]
fn a_secret_of_an_overlay_needs_a_declared_origin_in_a_field_for_secrets() {
    let user = json!({"pull": [{"name": "mine"}], "pullSecrets": [{"name": "mine"}]});
    let secrets = || ("imagePullSecrets", json!([{"name": "mine"}]));
    let undeclared = broken(&over(pod(), user.clone(), secrets(), None), "over", &[Rule::NamedReferences]);
    assert!(undeclared.contains("declare the origin of the value in the plan's `origins`"), "{undeclared}");
    let other = over(pod(), user.clone(), secrets(), Some("spec.pull"));
    let other = broken(&other, "over", &[Rule::NamedReferences]);
    assert!(other.contains("spec.pull[0].name is not a field for such values"), "{other}");
    let declared = over(pod(), user, secrets(), Some("spec.pullSecrets"));
    assert!(declared.planned().is_some(), "{:?}", declared.verdict);
}

#[test]
fn a_false_origin_of_an_overlay_allows_no_privilege() {
    let user = json!({"debug": true, "hostNetwork": false, "net": {"hostNetwork": true}});
    for (from, reason) in [
        ("spec.debug", "spec.debug is not a field for such values"),
        ("spec.hostNetwork", "spec.hostNetwork has another value"),
        ("settings.hostNetwork", "the declared origin has no value"),
    ] {
        let told = over(pod(), user.clone(), ("hostNetwork", json!(true)), Some(from));
        let told = broken(&told, "over", &[Rule::NoPrivilege]);
        assert!(told.contains(reason), "{from}: {told}");
    }
    let declared = over(pod(), user.clone(), ("hostNetwork", json!(true)), Some("spec.net.hostNetwork"));
    assert!(declared.planned().is_some(), "{:?}", declared.verdict);
    let nonsense = over(pod(), user, ("hostname", json!("h")), Some("nonsense"));
    broken(&nonsense, "over", &[Rule::ValidOrigins]);
}

#[test]
fn values_that_an_overlay_leaves_as_they_are_keep_the_origins_of_the_layer_below() {
    let own = json!({"containers": [{"name": "main", "image": "img:1"}], "hostNetwork": true});
    let user = json!({"podSpec": own});
    let image = ("containers", json!([{"name": "main", "image": "mirror/img:1"}]));
    let changed = over(own.clone(), user.clone(), image, None);
    assert!(changed.planned().is_some(), "{:?}", changed.verdict);
    // The overlay drops the origins of the layer below, so no origin says that the user wrote the value.
    let amend = |plan: &mut Plan| {
        plan.origins.clear();
        each(plan, |manifest| manifest["spec"]["template"]["spec"]["containers"][0]["image"] = json!("mirror/img:1"));
    };
    let overlay = Overlay::amending("over", amend).policy("{}");
    let dropped = rendered(base("{}"), vec![overlay], &json!([deployment(own)]), user);
    broken(&dropped, "over", &[Rule::NoPrivilege]);
}

#[test]
fn the_origin_of_a_variable_names_the_overlay_that_mapped_it() {
    let run = |origin: &'static str| {
        let map = move |mut env: Vec<EnvVar>| {
            let key = KeySelector { name: "t".into(), key: "k".into(), optional: false };
            let source = EnvSource::SecretKey(key);
            env.push(EnvVar { container: "main".into(), name: "TOKEN".into(), source, origin: origin.into() });
            env
        };
        let mut pod = pod();
        pod["containers"][0]["env"] =
            json!([{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}}]);
        let overlay = Overlay::mapping("over", map).policy("{}");
        rendered(base("{}"), vec![overlay], &json!([deployment(pod)]), json!({"tokenSecret": {"name": "t"}, "x": "t"}))
    };
    assert!(run("spec.tokenSecret").planned().is_some(), "{:?}", run("spec.tokenSecret").verdict);
    broken(&run("spec.x"), "over", &[Rule::NamedReferences]);
    broken(&run("overlay"), "over", &[Rule::ValidOrigins, Rule::NamedReferences]);
}

#[test]
fn an_explanation_names_the_overlay_that_set_a_value() {
    let user = json!({"podSpec": {"priorityClassName": "fast"}, "tolerations": [{"operator": "Exists"}]});
    let mut own = pod();
    own["priorityClassName"] = json!("fast");
    let amend = |plan: &mut Plan| {
        each(plan, |manifest| {
            let pod = &mut manifest["spec"]["template"]["spec"];
            pod["containers"][0]["image"] = json!("mirror/img:1");
            pod["tolerations"] = json!([{"operator": "Exists"}]);
        });
        declare(plan, ".tolerations", "spec.tolerations");
        plan.manifests.push(config("more").to_string());
    };
    let overlay = Overlay::amending("over", amend).policy("{}");
    let explained = rendered(base("{}"), vec![overlay], &json!([deployment(own)]), user).explained();
    let of = |child: &str, path: &str| {
        let found = explained.iter().find(|it| it.child == child && it.path == path);
        let found = found.unwrap_or_else(|| panic!("{child} {path}: {explained:#?}"));
        (found.from.clone(), found.overlay.clone())
    };
    let over = || Some("over".to_owned());
    for (path, from, overlay) in [
        (".containers[0].name", "the policy", None),
        (".containers[0].image", "the overlay over", over()),
        (".priorityClassName", "spec.podSpec.priorityClassName", None),
        (".tolerations[0].operator", "spec.tolerations[0].operator", over()),
    ] {
        assert_eq!(of("Deployment/w", &format!("{POD}{path}")), (from.to_owned(), overlay), "{path}");
    }
    assert_eq!(of("ConfigMap/more", "data.a"), ("the overlay over".to_owned(), over()));
    assert_eq!(of("ConfigMap/more", "metadata.namespace"), ("the operator".to_owned(), None));
}
