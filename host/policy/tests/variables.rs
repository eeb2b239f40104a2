//! Tests the search for variables that a policy or an overlay drops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::{
    overlay::{Overlay, base},
    widget::{NATIVE, admitted, alone, deployment, translate_planned, widget},
};
use kaos_policy::{
    code::Native,
    contract::{Cluster, EnvVar, Plan, Refusal, Subject},
    gate::dropped_variables,
    lookup::Fixed,
    policy::Stack,
    render::Renderer,
};
use serde_json::{Value, json};

fn spec(container: &Value) -> Value {
    let plan = json!([deployment(json!({"containers": [container]}))]);
    json!({"env": {"A": "1"}, "planned": plan.to_string()})
}

/// Writes all variables of the mapping into the containers.
fn carries_all(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let mut plan = translate_planned(subject, env)?;
    for text in &mut plan.manifests {
        let mut manifest: Value = serde_json::from_str(text).unwrap();
        let variables: Vec<Value> = plan.env.iter().map(|it| json!({"name": it.name, "value": "1"})).collect();
        manifest["spec"]["template"]["spec"]["containers"][0]["env"] = json!(variables);
        *text = manifest.to_string();
    }
    Ok(plan)
}

fn drops_all(subject: &Subject, _: Vec<EnvVar>) -> Result<Plan, Refusal> {
    translate_planned(subject, Vec::new())
}

#[test]
fn a_policy_that_drops_its_own_variables_or_those_of_other_layers_is_found() {
    let dropped = |translate, env: Value| {
        let policy = admitted(Native { translate, ..NATIVE }, "{}");
        let object = widget(spec(&json!({"name": "main", "image": "img:1", "env": env})));
        let rendered = alone(policy.clone(), &[]).render(&object, &Fixed::default()).unwrap();
        assert!(rendered.planned().is_some(), "{:?}", rendered.verdict);
        dropped_variables(&policy, &rendered).unwrap()
    };
    let own = || json!([{"name": "A", "value": "1"}]);
    assert_eq!(dropped(carries_all, own()), [""; 0]);
    assert_eq!(dropped(drops_all, json!([])), ["main A", "main KAOS_CONFORM"]);
    assert_eq!(dropped(translate_planned, own()), ["main KAOS_CONFORM"], "the manifest has only the policy's own");
}

#[test]
fn an_overlay_that_drops_the_mapping_below_is_found() {
    let dropped = |map: fn(Vec<EnvVar>) -> Vec<EnvVar>| {
        let overlay = Overlay::mapping("over", map).policy("{}");
        let stack = Stack::new(base("{}"), vec![overlay.clone()]).unwrap();
        let renderer = Renderer::new(&stack, &[], Cluster::default()).unwrap();
        let object = widget(json!({"planned": "[]"}));
        dropped_variables(&overlay, &renderer.render(&object, &Fixed::default()).unwrap()).unwrap()
    };
    assert_eq!(dropped(|base| base), [""; 0]);
    assert_eq!(dropped(|_| Vec::new()), ["main KAOS_CONFORM"]);
}
