//! Tests that `kaos-operator upgrade-check` compares the sizes of volume claims.
//!
//! Also tests that pods keep two things from KAOS's operator: their references to Secrets, and their ServiceAccounts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use serde_json::{Value, json};

use crate::{
    support::{Folder, Ran, run},
    today::sample,
    upgrading::{check, of},
};

fn written(folder: &Folder, objects: &[Value]) -> String {
    let objects: Vec<String> = objects.iter().map(Value::to_string).collect();
    folder.write("objects.yaml", objects.join("\n---\n"))
}

fn model(more: &Value) -> Value {
    let mut proxy = json!({"models": ["*"]});
    proxy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "today"},
        "spec": {"mode": "Proxy", "proxyConfig": proxy},
        "status": {"phase": "Ready", "ready": true, "endpoint": "http://modelapi-llm.today.svc.cluster.local:8000"}})
}

fn store(storage: &Value) -> Value {
    let model = |model: &str| json!({"modelAPI": "llm", "model": model});
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MemoryStore",
        "metadata": {"name": "notes", "namespace": "today", "uid": "u1"},
        "spec": {"storage": storage, "models": {"summarization": model("chat"), "embedding": model("embed")}}})
}

#[test]
fn a_volume_claim_that_grows_is_told_and_one_that_would_shrink_is_refused() {
    let folder = Folder::new("upgrade-volume");
    let with = |wanted: &str, live: &str, annotations: Value| {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "memorystore-notes-data", "namespace": "today", "ownerReferences": [
                {"apiVersion": "kaos.tools/v1alpha1", "kind": "MemoryStore", "name": "notes", "uid": "u1", "controller": true}]},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": live}}},
            "status": {"phase": "Bound", "capacity": {"storage": live}}});
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"LOG_LEVEL": "INFO"},
            "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system", "annotations": annotations}});
        let store = store(&json!({"type": "local", "local": {"persistentVolume": {"size": wanted}}}));
        check(&["-f", &written(&folder, &[model(&json!({})), store, claim, config]), "-o", "json"])
    };
    let grows = |ran: &Ran| -> Vec<String> {
        let notes = of(ran, "note").into_iter().filter(|(about, _)| about == "MemoryStore today/notes");
        notes.map(|(_, message)| message).filter(|message| message.contains("grows")).collect()
    };
    let told = with("20Gi", "5Gi", json!({}));
    let message = "PersistentVolumeClaim memorystore-notes-data grows from 5Gi to 20Gi, which KAOS ignored";
    assert_eq!((told.code, grows(&told)), (0, vec![message.to_owned()]), "{}", told.stdout);
    assert_eq!(grows(&with("5Gi", "5120Mi", json!({}))), [""; 0], "both are the same size");
    // In a release of this chart, the operator changes the sizes even without an upgrade, so the check does not report
    // them.
    assert_eq!(grows(&with("20Gi", "5Gi", json!({"kaos.tools/compatibility": "kaos-0.8"}))), [""; 0]);
    let smaller = with("1Gi", "5Gi", json!({}));
    assert_eq!((smaller.code, grows(&smaller), of(&smaller, "refused").len()), (2, vec![], 1), "{}", smaller.stdout);
}

#[test]
fn references_that_are_not_optional_stay_as_the_object_says() {
    let folder = Folder::new("upgrade-optional");
    for optional in [json!(false), json!(true), json!(null)] {
        let selector = |name: &str| {
            let mut selector = json!({"name": name, "key": "k"});
            if !optional.is_null() {
                selector["optional"] = optional.clone();
            }
            selector
        };
        let key = json!({"apiKey": {"valueFrom": {"secretKeyRef": selector("provider")}}});
        let external = json!({"provider": "pgvector", "connectionSecretRef": selector("database")});
        let objects = [model(&key), store(&json!({"type": "external", "external": external}))];
        let objects = written(&folder, &objects);
        let rendered = run(["render", "--compatibility", "kaos-0.8", "-o", "json", "-f", &objects], "").json();
        let manifests = rendered.as_array().unwrap().iter().flat_map(|it| it["manifests"].as_array().unwrap());
        let deployments: Vec<&Value> = manifests.filter(|it| it["kind"] == "Deployment").collect();
        let variables = deployments
            .iter()
            .flat_map(|deployment| deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap());
        let sources: Vec<&Value> =
            variables.map(|it| &it["valueFrom"]["secretKeyRef"]).filter(|it| !it.is_null()).collect();
        assert_eq!(sources, [&selector("provider"), &selector("database")], "{rendered:#}");
        // KAOS's operator gave its pods the same fields, so the upgrade does not replace these pods.
        let live =
            folder.write("live.yaml", deployments.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n"));
        let ran = check(&["-f", &objects, "-f", &live, "-o", "json"]);
        assert_eq!((of(&ran, "rolls"), of(&ran, "refused")), (vec![], vec![]), "{}", ran.stdout);
    }
}

#[test]
fn an_empty_identity_provider_of_kaos_gives_agents_no_service_accounts() {
    let folder = Folder::new("upgrade-provider");
    let carried = fs::read_to_string(sample("values/kaos-0.8.2.yaml")).unwrap();
    let usual = "provider: serviceaccount";
    assert_eq!(carried.matches(usual).count(), 1);
    let image = folder.write("image.yaml", "defaultImages: {agentRuntime: 'axsauze/kaos-agent:0.8.4'}");
    let fields = |values: String, reuse: &[&str]| {
        let (values, files) = (folder.write("values.yaml", values), ["20-as-found.yaml", "20-model.yaml"].map(sample));
        let files = ["-f", &files[0], "-f", &files[1], "--values", &values, "--values", &image, "-o", "json"];
        let told = check(&[&files[..], reuse].concat()).json();
        let all = told["findings"].as_array().unwrap().iter().filter(|it| it["sort"] == "rolls");
        all.map(|it| it["fields"].to_string()).collect::<Vec<_>>()
    };
    // The pod of the sample has a ServiceAccount.
    assert_eq!(fields(carried.clone(), &["--reuse-values"]), [""; 0]);
    let empty = carried.replace(usual, "provider: \"\"");
    let set = "{security: {agentAuth: {identity: {provider: ''}}}}".to_owned();
    for lost in [fields(empty, &["--reuse-values"]), fields(set, &[])] {
        assert!(lost.len() == 1 && lost[0].contains("serviceAccountName"), "{lost:?}");
    }
    assert_eq!(fields("{}".to_owned(), &[]), [""; 0], "without the value, the preset decides");
}
