//! Tests that `kaos-operator upgrade-check` finds the time of the takeover as the chart does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use serde_json::{Value, json};

use crate::{
    support::{Folder, Ran, run},
    today::sample,
    upgrading::{check, of},
};

/// The time at which the ModelAPI was created. Without a recorded time of the takeover, the preset would give the proxy
/// of this ModelAPI the variable [`PERMISSION`].
const CREATED: &str = "2026-11-28T06:00:00Z";
/// A time before [`CREATED`], and a time after [`CREATED`].
const EARLIER: &str = "2026-11-28T03:00:00Z";
const LATER: &str = "2026-11-28T09:00:00Z";
const PERMISSION: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";

/// A ModelAPI of the cluster.
#[derive(Clone, Copy)]
struct Model {
    name: &'static str,
    created: &'static str,
    /// Whether this operator has had a pass over the ModelAPI. Then the status contains conditions, which KAOS's
    /// operator does not write.
    is_ours: bool,
    /// Whether the proxy has the variable [`PERMISSION`].
    is_permitted: bool,
}

/// A ModelAPI of KAOS's operator, and a ModelAPI that was created under this operator.
const OF_KAOS: Model = Model { name: "llm", created: CREATED, is_ours: false, is_permitted: false };
const NEW: Model = Model { is_ours: true, ..OF_KAOS };
const PERMITTED: Model = Model { name: "own", is_permitted: true, ..NEW };

/// Checks a cluster with these ModelAPIs, their Deployments, and further objects.
fn checked(models: &[Model], further: &[Value], values: &str) -> Ran {
    let folder = Folder::new("upgrade-takeover");
    let text = fs::read_to_string(sample("20-model.yaml")).unwrap();
    let mut files = Vec::new();
    for Model { name, created, is_ours, is_permitted } in models {
        let model = text
            .replace("name: llm,", &format!("name: {name}, creationTimestamp: '{created}',"))
            .replace("modelapi-llm", &format!("modelapi-{name}"));
        let conditions = if *is_ours { "status: {conditions: [{type: Ready}], " } else { "status: {" };
        let model = folder.write(&format!("{name}.yaml"), model.replace("status: {", conditions));
        let rendered = run(["render", "--compatibility", "kaos-0.1", "-o", "json", "-f", &model], "").json();
        let manifests = rendered[0]["manifests"].as_array().unwrap();
        let mut deployment = manifests.iter().find(|it| it["kind"] == "Deployment").unwrap().clone();
        if *is_permitted {
            let variables = &mut deployment["spec"]["template"]["spec"]["containers"][0]["env"];
            variables.as_array_mut().unwrap().push(json!({"name": PERMISSION, "value": "true"}));
        }
        files.extend([model, folder.write(&format!("{name}.json"), deployment.to_string())]);
    }
    let further: Vec<String> = further.iter().map(ToString::to_string).collect();
    files.push(folder.write("objects.yaml", further.join("\n---\n")));
    let values = folder.write("values.yaml", values);
    let files = files.iter().flat_map(|file| ["-f", file.as_str()]);
    check(&files.chain(["--values", &values, "-o", "json"]).collect::<Vec<_>>())
}

/// Returns the number of objects whose pods the upgrade replaces.
fn rolls(models: &[Model], further: &[Value], values: &str) -> usize {
    of(&checked(models, further, values), "rolls").len()
}

/// Returns the finding about the value `takeoverTime`.
fn told(models: &[Model], further: &[Value], values: &str) -> Option<Value> {
    let findings = checked(models, further, values).json()["findings"].as_array().unwrap().clone();
    findings.into_iter().find(|finding| finding["about"] == "takeoverTime")
}

fn config(name: &str, data: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": "kaos-system"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

/// Returns the ConfigMaps of a release of this chart that recorded this time.
fn installed(time: &str) -> [Value; 2] {
    let mut config = config("kaos-operator-config", &json!({"TAKEOVER_TIME": time, "LOG_LEVEL": "INFO"}));
    config["metadata"]["annotations"] = json!({"kaos.tools/compatibility": "kaos-0.8"});
    [config, self::config("kaos-operator-compatibility", &json!({"kaos-0.8.yaml": ""}))]
}

fn of_go() -> Value {
    let container = json!({"name": "manager", "image": "mirror:5000/axsauze/kaos-operator:0.8.2"});
    let metadata = json!({"name": "kaos-controller-manager", "namespace": "kaos-system"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {"template": {"spec": {"containers": [container]}}}})
}

#[test]
fn proxies_of_kaos_keep_their_pods_and_later_upgrades_keep_the_time() {
    let of_kaos = config("kaos-operator-config", &json!({"DEFAULT_LOG_LEVEL": "INFO"}));
    assert_eq!((rolls(&[OF_KAOS], &[], "{}"), rolls(&[OF_KAOS], &[of_kaos], "{}")), (0, 0));
    // The takeover was before the ModelAPI was created, so the preset gives its proxy the variable.
    assert_eq!((rolls(&[NEW], &installed(""), "{}"), rolls(&[NEW], &installed(EARLIER), "{}")), (1, 1));
    let given = format!("takeoverTime: '{LATER}'");
    assert_eq!(rolls(&[NEW], &installed(EARLIER), &given), 0, "the value wins");
    assert_eq!(rolls(&[NEW], &[&installed(EARLIER)[..], &[of_go()]].concat(), "{}"), 0, "KAOS's operator came back");
}

#[test]
fn a_proxy_with_the_permission_keeps_it_after_a_new_installation() {
    assert_eq!(rolls(&[PERMITTED], &[], "{}"), 0);
}

#[test]
fn a_model_that_kaos_created_after_the_recorded_time_keeps_its_pods_if_no_other_loses_the_permission() {
    let installed = installed(EARLIER);
    assert_eq!(rolls(&[OF_KAOS], &installed, "{}"), 0);
    let note = told(&[OF_KAOS], &installed, "{}").unwrap();
    assert!(note["sort"] == "note" && note["message"].to_string().contains("2026-11-28T06:00:01Z"), "{note}");
    let older = Model { created: "2026-11-28T05:00:00Z", ..PERMITTED };
    let stop = told(&[OF_KAOS, older], &installed, "{}").unwrap();
    assert_eq!(stop["sort"], "stops");
    let (message, remedy) = (stop["message"].to_string(), stop["do"].to_string());
    assert!(message.contains("such as ModelAPI today/llm") && message.contains("ModelAPI today/own"), "{stop}");
    assert!(remedy.contains("2026-11-28T06:00:01Z") && remedy.contains(EARLIER), "{stop}");
    let given = format!("takeoverTime: '{EARLIER}'");
    assert_eq!(told(&[OF_KAOS, older], &installed, &given), None, "the user decides");
    let newer = Model { created: LATER, ..PERMITTED };
    assert_eq!(rolls(&[OF_KAOS, newer], &installed, "{}"), 0);
}

#[test]
fn a_time_in_the_values_that_replaces_pods_or_is_none_stops_the_upgrade() {
    let given = format!("takeoverTime: '{EARLIER}'");
    let stop = told(&[NEW], &[&installed(EARLIER)[..], &[of_go()]].concat(), &given).unwrap();
    assert!(stop["sort"] == "stops" && stop["do"].to_string().contains("2026-11-28T06:00:01Z"), "{stop}");
    for (time, message) in [("2026-13-01T00:00:00Z", "is no time"), ("2099-01-01T00:00:00Z", "is in the future")] {
        let stop = told(&[], &[], &format!("takeoverTime: '{time}'")).unwrap();
        assert!(stop["sort"] == "stops" && stop["message"].to_string().contains(message), "{stop}");
    }
}

#[test]
fn without_rights_of_the_operator_the_chart_reads_no_models_and_the_check_tells_the_time() {
    let values = "rbac: {create: false}";
    assert_eq!(rolls(&[OF_KAOS], &[], values), 1);
    let note = told(&[OF_KAOS], &[], values).unwrap();
    assert!(note["do"].to_string().contains("2026-11-28T06:00:01Z"), "{note}");
    // If KAOS's operator still runs, the chart records the time of the upgrade.
    assert_eq!(rolls(&[OF_KAOS], &[of_go()], values), 0);
}

#[test]
fn the_time_for_a_chart_that_is_rendered_without_a_cluster_is_told() {
    let finding = told(&[OF_KAOS], &[], "{}").expect("a note");
    assert_eq!(finding["sort"], "note");
    let message = finding["message"].as_str().unwrap();
    assert!(message.contains("for example by Argo CD, replaces the pods of ModelAPI today/llm"), "{message}");
    assert!(finding["do"].as_str().unwrap().contains("set takeoverTime to \"2026-11-28T06:00:01Z\""), "{finding}");
    // In these cases, the upgrade replaces no pods: the ModelAPI is older than the preset's `withoutMasterKeySince`,
    // the values contain `takeoverTime`, or the preset `kaos-0.1` gives the variable to no proxy.
    let old = Model { created: "2026-10-01T00:00:00Z", ..OF_KAOS };
    assert_eq!(told(&[old], &[], "{}"), None);
    assert_eq!(told(&[OF_KAOS], &[], &format!("takeoverTime: '{LATER}'")), None);
    assert_eq!(told(&[OF_KAOS], &[], "compatibility: kaos-0.1"), None);
}

#[test]
fn the_recorded_preset_counts_and_a_change_of_it_is_told() {
    let mut of_january = installed("");
    of_january[0]["metadata"]["annotations"]["kaos.tools/compatibility"] = json!("kaos-0.1");
    let ran = checked(&[NEW], &of_january, "{}");
    assert_eq!((ran.json()["preset"].clone(), of(&ran, "rolls")), (json!("kaos-0.1"), Vec::new()));
    let ran = checked(&[NEW], &of_january, "compatibility: kaos-0.8");
    let note = of(&ran, "note").into_iter().find(|(about, _)| about == "compatibility").unwrap();
    assert!(note.1.contains("the upgrade changes the preset from kaos-0.1 to kaos-0.8"), "{note:?}");
    assert_eq!(ran.json()["preset"], "kaos-0.8");
}

#[test]
fn a_rollback_that_would_delete_the_definitions_stops_the_upgrade() {
    let stops = |further: &[Value]| of(&checked(&[], further, "crds: {keep: false}"), "stops").len();
    assert_eq!((stops(&[of_go()]), stops(&installed(""))), (1, 0));
}

#[test]
fn the_config_map_of_kaos_tells_its_version_and_a_copy_of_its_image_is_refused_later() {
    let of_kaos = |more: &str| config("kaos-operator-config", &json!({"DEFAULT_AGENT_IMAGE": "x", more: "y"}));
    let preset = |config: Value| checked(&[], &[config], "{}").json()["preset"].clone();
    assert_eq!((preset(of_kaos("A")), preset(of_kaos("SECURITY_PDP_NAME"))), (json!("kaos-0.1"), json!("kaos-0.8")));
    assert_eq!(preset(of_kaos("DEFAULT_MEMORY_SERVICE_IMAGE")), "kaos-0.8");
    let mut recorded = installed("");
    recorded[0]["metadata"]["annotations"]["kaos.tools/replaced-image"] = json!("mirror/operator:0.8.2");
    let stops = |image: &str| {
        let values = format!("controllerManager: {{manager: {{image: {image}}}}}");
        of(&checked(&[], &recorded, &values), "stops").into_iter().map(|(about, _)| about).collect::<Vec<_>>()
    };
    let image = "controllerManager.manager.image";
    assert_eq!(stops("{repository: mirror/operator, tag: 0.8.2}"), [format!("{image}.repository")]);
    assert_eq!(stops("{repository: mirror/policy-operator, tag: 0.8.2}"), [format!("{image}.tag")]);
    assert_eq!(stops("{repository: mirror/policy-operator, tag: '2'}"), [""; 0]);
}

#[test]
fn a_damaged_record_stops_the_upgrade() {
    let mut recorded = installed("");
    recorded[0]["metadata"]["annotations"]["kaos.tools/default-images"] = json!("[]");
    let stops = of(&checked(&[], &recorded, "{}"), "stops");
    assert!(stops.len() == 1 && stops[0].1.contains("kaos.tools/default-images"), "{stops:?}");
}
