//! Checks that the generated files are current and small, and have the promised columns and defaults.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kaos_crds::{AgentSpec, MCPServerSpec, ModelAPISpec, RevisionState, Status, defaults, generate};
use serde_json::{Value, json};

fn properties<'a>(crd: &'a Value, path: &str) -> &'a Value {
    let mut node = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for field in path.split('.') {
        node = &node["properties"][field];
    }
    node
}

#[test]
fn the_files_equal_the_schemas_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated");
    for (file, text) in generate::files().unwrap() {
        let stored = fs::read_to_string(folder.join(&file)).unwrap_or_default();
        assert!(
            stored == text,
            "crds/generated/{file} is stale; run `cargo run -p kaos-crds --features schema --bin crdgen`"
        );
    }
}

#[test]
fn each_file_fits_into_the_annotation_of_a_client_side_apply() {
    for (file, text) in generate::files().unwrap() {
        assert!(text.len() < 100_000, "{file} has {} bytes", text.len());
    }
}

#[test]
fn every_kind_is_in_the_category_and_only_those_with_default_replicas_scale() {
    for crd in generate::definitions().unwrap() {
        let version = &crd["spec"]["versions"][0];
        assert_eq!(crd["spec"]["names"]["categories"], json!(["kaos"]));
        assert_eq!(properties(&crd, "status.phase")["enum"], json!(["Pending", "Ready", "Failed", "Waiting"]));
        assert_eq!(properties(&crd, "status.conditions")["x-kubernetes-list-map-keys"], json!(["type"]));
        if ["MemoryStore", "AccessGrant", "AuthorizationPolicy"]
            .iter()
            .any(|kind| crd["spec"]["names"]["kind"] == *kind)
        {
            assert_eq!(version["subresources"], json!({"status": {}}));
            assert!(properties(&crd, "spec.replicas")["default"].is_null());
            continue;
        }
        assert_eq!(
            version["subresources"],
            json!({
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                },
                "status": {},
            })
        );
        assert_eq!(properties(&crd, "spec.replicas")["default"], defaults::REPLICAS);
    }
}

#[test]
fn a_new_object_of_every_kind_is_not_observed_yet() {
    for crd in generate::definitions().unwrap().into_iter().chain([generate::revision().unwrap()]) {
        assert_eq!(properties(&crd, "status")["default"], json!({"observedGeneration": -1}));
        let observed = properties(&crd, "status.observedGeneration");
        assert_eq!((&observed["type"], &observed["minimum"]), (&json!("integer"), &Value::Null));
        assert_eq!(properties(&crd, "status.conditions")["x-kubernetes-list-map-keys"], json!(["type"]));
    }
}

#[test]
fn every_field_is_described() {
    fn undescribed(node: &Value, path: &str, found: &mut Vec<String>) {
        let open = node["x-kubernetes-preserve-unknown-fields"] == true;
        for (name, field) in node["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let top = path == ".spec" || path == ".status";
            if !field["description"].is_string() && !top && !open {
                found.push(path.clone());
            }
            undescribed(field, &path, found);
            undescribed(&field["items"], &path, found);
        }
    }
    let mut found = Vec::new();
    for crd in generate::definitions().unwrap().into_iter().chain([generate::revision().unwrap()]) {
        undescribed(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_state_of_a_revision_is_listed() {
    let revision = generate::revision().unwrap();
    assert_eq!(properties(&revision, "status.state")["enum"], json!(RevisionState::ALL.map(RevisionState::name)));
}

#[test]
fn the_columns_names_and_defaults_of_a_store_are_those_of_kaos() {
    let [_, _, _, store, ..] = generate::definitions().unwrap();
    let columns = store["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
    let columns: Vec<_> = columns.iter().take(4).map(|it| (it["name"].as_str(), it["jsonPath"].as_str())).collect();
    let of = |name, path| (Some(name), Some(path));
    let wanted = [
        of("Engine", ".spec.engine"),
        of("Storage", ".spec.storage.type"),
        of("Ready", ".status.ready"),
        of("Phase", ".status.phase"),
    ];
    assert_eq!(columns, wanted);
    assert_eq!(store["spec"]["names"]["shortNames"], json!(["memstore", "memstores"]));
    let mut defaulted = BTreeSet::new();
    collect_defaults(properties(&store, "spec"), "", &mut defaulted);
    let wanted = [
        ".defaultFailureMode",
        ".engine",
        ".longTerm.extraction.concurrency",
        ".maxReadScope",
        ".storage.external.embeddingDims",
        ".storage.external.provider",
        ".storage.local.persistentVolume.size",
        ".storage.local.provider",
    ];
    assert_eq!(defaulted, wanted.map(str::to_owned).into());
}

#[test]
fn serde_and_the_definition_set_the_same_defaults() {
    let [agent, ..] = generate::definitions().unwrap();
    let spec: AgentSpec =
        serde_json::from_value(json!({"modelAPI": "a", "agentNetwork": {}, "config": {"memory": {"enabled": null}}}))
            .unwrap();
    let filled = serde_json::to_value(&spec).unwrap();
    for path in [
        "waitForDependencies",
        "agentNetwork.expose",
        "config.memory.enabled",
        "config.memory.contextLimit",
        "config.memory.maxSessions",
        "config.memory.maxSessionEvents",
    ] {
        let default = &properties(&agent, &format!("spec.{path}"))["default"];
        assert!(!default.is_null(), "{path} has no default");
        assert_eq!(filled.pointer(&format!("/{}", path.replace('.', "/"))), Some(default), "{path}");
    }
    let mut defaulted = BTreeSet::new();
    collect_defaults(&properties(&agent, "spec").clone(), "", &mut defaulted);
    assert_eq!(defaulted.len(), 7, "six and replicas: {defaulted:?}");
}

fn collect_defaults(node: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, field) in node["properties"].as_object().into_iter().flatten() {
        if !field["default"].is_null() {
            found.insert(format!("{path}.{name}"));
        }
        collect_defaults(field, &format!("{path}.{name}"), found);
    }
}

#[test]
fn unknown_fields_are_ignored_and_kubernetes_objects_kept() {
    let agent: AgentSpec = serde_json::from_value(json!({
        "modelAPI": "a", "new": 1, "podSpec": {"new": [null]}, "config": {"new": 1, "agenticLoop": {"maxSteps": 7}},
    }))
    .unwrap();
    assert_eq!(agent.pod_spec, Some(json!({"new": [null]})));
    assert_eq!(agent.config.unwrap().max_steps(), 7);
    let api: ModelAPISpec =
        serde_json::from_value(json!({"mode": "Proxy", "proxyConfig": {"configYaml": "a: 1", "x": 1}})).unwrap();
    assert_eq!(serde_json::to_value(api.proxy_config).unwrap(), json!({"configYaml": "a: 1"}));
    serde_json::from_value::<MCPServerSpec>(json!({"new": {}})).unwrap();
    serde_json::from_value::<Status>(json!({"phase": "Ready", "supportedModels": []})).unwrap();
}
