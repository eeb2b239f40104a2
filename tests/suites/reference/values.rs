//! Checks that the Helm values with which the chart installs a policy have the same names as the fields of
//! `policy.yaml`.

use std::{collections::BTreeSet, fs, path::Path};

use kaos_policy::{
    limits::Limits,
    manifest::{Grants, OnRefusal, PolicyFile, Privilege, ReadGrant, Scope},
    rollout::{Approval, Rollout, RolloutGate, RolloutMode, RolloutSteps, RolloutUnit, Share},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::page::ROOT;

/// Names that exist in the chart's values, but not in `policy.yaml`. The value `policy` contains the name of the policy
/// to which the settings belong. The values `component` and `file` say from where the chart takes a component.
const OWN: [&str; 3] = ["component", "file", "policy"];

/// Fails if the schema of the chart's values and `policy.yaml` do not contain the same names.
pub(crate) fn check() {
    let schema = fs::read_to_string(Path::new(ROOT).join("deploy/helm/kaos-operator/values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let entry = &schema["properties"]["policies"]["additionalProperties"];
    // Set these fields to values other than their defaults, because serialization omits a field that has its default.
    let gate = RolloutGate {
        max_objects_changed: Some(Share::Number(1)),
        max_pods_replaced: Some(Share::Number(1)),
        max_fuel_increase: serde_json::from_value("20%".into()).unwrap(),
        none_refused: true,
        none_failed: true,
        frozen_paths: vec!["spec".to_owned()],
        approval: Some(Approval::Required),
    };
    let steps = RolloutSteps::default();
    let rollout = Rollout {
        mode: Some(RolloutMode::Shadow),
        steps: Some(steps.shares),
        pause: Some(steps.pause),
        patience: Some(steps.patience),
        by: Some(steps.by),
        max_unavailable: Some(steps.max_unavailable),
        gate: gate.clone(),
    };
    let file = PolicyFile { on_refusal: OnRefusal::Hold, rollout: rollout.clone(), ..PolicyFile::default() };
    let mut known = fields(&file);
    known.extend(OWN.map(str::to_owned));
    assert_eq!(properties(entry), known);

    let part = |name: &str| &entry["properties"][name];
    assert_eq!(properties(part("scope")), fields(&Scope::default()));
    assert_eq!(properties(part("limits")), fields(&Limits::default()));
    assert_eq!(words(part("onRefusal")), variants::<OnRefusal>());
    assert_eq!(properties(part("rollout")), fields(&rollout));
    assert_eq!(words(&part("rollout")["properties"]["mode"]), variants::<RolloutMode>());
    assert_eq!(words(&part("rollout")["properties"]["by"]), variants::<RolloutUnit>());
    let mut defaults = fields(&rollout);
    defaults.remove("gate");
    assert_eq!(properties(&schema["properties"]["rollout"]), defaults);
    let gates = [&part("rollout")["properties"]["gate"], &schema["properties"]["rolloutGate"]];
    for part in gates {
        assert_eq!(properties(part), fields(&gate));
    }
    let grants = part("grants");
    assert_eq!(properties(grants), fields(&Grants::default()));
    assert_eq!(words(&grants["properties"]["privileges"]["items"]), variants::<Privilege>());
    let read = ReadGrant { api_version: String::new(), kind: String::new(), namespace: None, names: Vec::new() };
    assert_eq!(properties(&grants["properties"]["reads"]["items"]), fields(&read));
}

fn properties(schema: &Value) -> BTreeSet<String> {
    assert_eq!(schema["additionalProperties"], false, "{schema}");
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

fn words(schema: &Value) -> BTreeSet<String> {
    schema["enum"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

fn fields(value: &impl Serialize) -> BTreeSet<String> {
    serde_json::to_value(value).unwrap().as_object().unwrap().keys().cloned().collect()
}

/// Returns the variants of a type. The error for an unknown variant lists all variants.
fn variants<T: DeserializeOwned>() -> BTreeSet<String> {
    let told = serde_json::from_value::<T>(json!("x")).err().unwrap().to_string();
    told.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}
