//! Tests that `kaos-operator upgrade-check` finds the time of the takeover as the chart does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use serde_json::{Value, json};

use crate::{
    support::{Folder, Ran, run},
    today::sample,
    upgrading::{check, of},
};

/// The time at which the ModelAPI was created. The preset alone would give the variable to its proxy.
const CREATED: &str = "2027-01-01T00:00:00Z";

/// Checks a cluster with the ModelAPI `llm`, its Deployment under the preset `preset`, and further objects.
fn checked(created: &str, preset: &str, further: &[Value], values: &str) -> Ran {
    let folder = Folder::new("upgrade-takeover");
    let text = fs::read_to_string(sample("20-model.yaml")).unwrap();
    let model = text.replace("name: llm,", &format!("name: llm, creationTimestamp: '{created}',"));
    // Only this operator writes conditions. KAOS's operator sets no variable, as the preset of January does.
    let conditions = if preset == "kaos-0.8" { "status: {conditions: [{type: Ready}], " } else { "status: {" };
    let model = folder.write("model.yaml", model.replace("status: {", conditions));
    let rendered = run(["render", "--compatibility", preset, "-o", "json", "-f", &model], "").json();
    let manifests = rendered[0]["manifests"].as_array().unwrap();
    let deployment = manifests.iter().find(|it| it["kind"] == "Deployment").unwrap();
    let objects: Vec<String> = further.iter().chain([deployment]).map(ToString::to_string).collect();
    let objects = folder.write("objects.yaml", objects.join("\n---\n"));
    let values = folder.write("values.yaml", values);
    check(&["-f", &model, "-f", &objects, "--values", &values, "-o", "json"])
}

/// Returns the number of objects whose pods the upgrade replaces.
fn rolls(preset: &str, further: &[Value], values: &str) -> usize {
    of(&checked(CREATED, preset, further, values), "rolls").len()
}

fn config(name: &str, data: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": "kaos-system"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

#[test]
fn proxies_of_kaos_keep_their_pods_and_later_upgrades_keep_the_time() {
    let of_kaos = config("kaos-operator-config", &json!({"DEFAULT_LOG_LEVEL": "INFO"}));
    let recorded = config("kaos-operator-config", &json!({"TAKEOVER_TIME": "2026-12-01T00:00:00Z"}));
    let own = config("kaos-operator-compatibility", &json!({"kaos-0.8.yaml": ""}));
    let january = |further: &[Value], values: &str| rolls("kaos-0.1", further, values);
    assert_eq!(
        (january(&[], "{}"), january(std::slice::from_ref(&of_kaos), "{}")),
        (0, 0),
        "the chart records the time of now"
    );
    // This release found no ModelAPI, or its takeover was earlier, so the ModelAPI is new.
    assert_eq!((january(&[of_kaos, own.clone()], "{}"), january(&[recorded.clone(), own.clone()], "{}")), (1, 1));
    let later = "takeoverTime: '2027-02-01T00:00:00Z'";
    assert_eq!(january(&[recorded.clone(), own.clone()], later), 0, "the value wins");
    // An earlier upgrade failed, so KAOS's operator still works.
    let container = json!({"name": "manager", "image": "mirror:5000/axsauze/kaos-operator:0.8.2"});
    let metadata = json!({"name": "kaos-controller-manager", "namespace": "kaos-system"});
    let go = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {"template": {"spec": {"containers": [container]}}}});
    assert_eq!(january(&[recorded, own, go], "{}"), 0);
}

#[test]
fn a_proxy_with_the_permission_keeps_it_after_a_new_installation() {
    assert_eq!(rolls("kaos-0.8", &[], "{}"), 0);
}

#[test]
fn the_time_for_a_chart_that_is_rendered_without_a_cluster_is_told() {
    let told = |created: &str, values: &str| {
        let findings = checked(created, "kaos-0.1", &[], values).json()["findings"].as_array().unwrap().clone();
        findings.into_iter().find(|finding| finding["about"] == "takeoverTime")
    };
    let finding = told(CREATED, "{}").expect("a note");
    assert_eq!(finding["sort"], "note");
    let message = finding["message"].as_str().unwrap();
    assert!(message.contains("replaces the pods of 1 ModelAPIs, such as ModelAPI today/llm"), "{message}");
    assert!(finding["do"].as_str().unwrap().contains("set takeoverTime to \"2027-01-01T00:00:01Z\""), "{finding}");
    // The preset, or the value, already keeps these pods. The preset of January gives the variable to no proxy.
    assert_eq!(told("2026-10-01T00:00:00Z", "{}"), None);
    assert_eq!(told(CREATED, "takeoverTime: '2027-02-01T00:00:00Z'"), None);
    assert_eq!(told(CREATED, "compatibility: kaos-0.1"), None);
}
