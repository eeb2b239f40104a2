//! Checks that the template for overlays in JavaScript amends the plan of every recorded case like the template in
//! Rust, byte for byte.

use kaos_policy::contract::Plan;
use kaos_policy::gate::CodeForm;
use kaos_tests::{mirrors, websites};
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("../../../guest-policies/overlay-template/javascript/policy.js");

#[test]
fn the_overlay_in_javascript_amends_every_recorded_plan_like_the_one_in_rust() {
    let overlay = websites::load(CodeForm::Script, SCRIPT.into());
    mirrors::same_description(&overlay);
    mirrors::same_amendments(&overlay);
}

#[test]
fn the_overlay_in_the_guide_adds_labels_tolerations_and_a_sidecar() {
    let guide = include_str!("../../../docs/guide/writing-scripts.md");
    let mut blocks = guide.split("```js\n").skip(1).filter_map(|rest| rest.split("```").next());
    let amend = blocks.find(|block| block.contains("export function amend")).unwrap();
    let describe = "export const describe = () => ({name: 'placement', version: '0.1.0', claims: [{
  primary: {apiVersion: 'kaos.tools/v1alpha1', kind: 'Agent'}, emits: [{apiVersion: 'apps/v1', kind: 'Deployment'}],
  samples: [{name: 'any', object: {apiVersion: 'kaos.tools/v1alpha1', kind: 'Agent',
    metadata: {name: 'any', namespace: 'default'}, spec: {}}}]}],
  settingsSchema: {type: 'object', additionalProperties: false, properties: {
    team: {type: 'string', default: 'red', description: 'The team.'},
    tolerations: {type: 'array', default: [], description: 'Tolerations.', items: {type: 'object'}}}}});\n";
    let overlay = websites::load(CodeForm::Script, format!("{describe}{amend}").into_bytes());
    let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "a:1"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pod}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {}});
    let plan = Plan {
        manifests: vec![service.to_string(), deployment.to_string()],
        origins: Vec::new(),
        gates: Vec::new(),
        env: Vec::new(),
        notes: Vec::new(),
        finalizer: None,
        kept: Vec::new(),
        gates_hold: false,
        extra: "{}".to_owned(),
    };
    let subject = websites::subject(&websites::blog(), &json!({}));
    let settings = json!({"team": "blue", "tolerations": [{"key": "gpu", "operator": "Exists"}]});
    let amended = mirrors::amended(&overlay, &subject, &plan, &settings);
    assert_eq!(serde_json::from_str::<Value>(&amended.manifests[0]).unwrap(), service);
    let template = serde_json::from_str::<Value>(&amended.manifests[1]).unwrap()["spec"]["template"].take();
    assert_eq!(template["metadata"]["labels"], json!({"app": "a", "team": "blue"}));
    assert_eq!(template["spec"]["tolerations"], settings["tolerations"]);
    assert_eq!(template["spec"]["containers"][1]["name"], "forwarder");
    assert_eq!((amended.origins[0].manifest, amended.origins[0].from.as_str()), (1, "settings.tolerations"));
}
