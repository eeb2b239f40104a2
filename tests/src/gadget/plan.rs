//! Builds the manifests of a Gadget, in an order that the host must correct.

use std::panic::resume_unwind;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kaos_policy::contract::{EnvSource, EnvVar, KeySelector, Origin, Plan, Refusal, Subject, Violation};
use serde_json::{Map, Value, json};

use super::object::{object, text};
use super::{hold, inputs};

const CONTAINER: &str = "main";

/// Adds environment variables, most of which come from the objects that answer the needs.
pub(super) fn map_env(subject: &Subject, mut env: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut set = |name: &str, source: EnvSource, origin: &str| {
        env.push(EnvVar { container: CONTAINER.to_owned(), name: name.to_owned(), source, origin: origin.to_owned() });
    };
    if let Some(second) = inputs::one(subject, "second") {
        set("CHAIN", EnvSource::Literal(text(&second["data"]["value"]).to_owned()), "spec.chain");
    }
    let by_selector = (0..).map(|at| format!("hears-{at}")).take(subject.found.len());
    let maps = std::iter::once("heard".to_owned()).chain(by_selector).flat_map(|id| inputs::all(subject, &id));
    let heard: Vec<_> = maps.map(|map| text(&map["metadata"]["name"]).to_owned()).collect();
    if !heard.is_empty() {
        set("HEARD", EnvSource::Literal(heard.join(",")), "spec.listens");
    }
    if let Some(shared) = inputs::one(subject, "shared") {
        set("SHARED", EnvSource::Literal(text(&shared["data"]["value"]).to_owned()), "spec.shared");
    }
    let object = object(subject);
    if let Some(name) = object["spec"]["token"].as_str() {
        let selector = KeySelector { name: name.to_owned(), key: "token".to_owned(), optional: false };
        set("TOKEN", EnvSource::SecretKey(selector), "spec.token");
    }
    env
}

/// Returns the plan of the first edition.
pub(super) fn first(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    translate(subject, env, None)
}

/// Returns the plan of the second edition.
pub(super) fn second(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    translate(subject, env, Some("registry.example/gadget:second"))
}

fn translate(subject: &Subject, env: Vec<EnvVar>, image: Option<&str>) -> Result<Plan, Refusal> {
    let mut object = object(subject);
    match text(&object["spec"]["does"]) {
        // Unwind, because native code cannot trap like a component. Use `resume_unwind`, which prints no panic message,
        // because the test causes this panic deliberately.
        "trap" => resume_unwind(Box::new("told to")),
        "refuse" => {
            let message = object["spec"]["says"].as_str().unwrap_or("says refuse: write work").to_owned();
            return Err(Refusal::Invalid(vec![Violation { path: "spec.does".to_owned(), message }]));
        }
        "give-up" => return Err(Refusal::Unsupported("this cluster has no gadgets".to_owned())),
        _ => {}
    }
    let missing = inputs::missing(subject);
    if !missing.is_empty() {
        return Err(Refusal::Waiting(missing));
    }
    if let Some(image) = image.filter(|_| object["spec"]["follows"] == true) {
        object["spec"]["image"] = json!(image);
    }
    let mut env = env;
    let from = if object["spec"]["port"].is_null() { "settings.port" } else { "spec.port" };
    if object["spec"]["port"].is_null() {
        hold::wait_for(&subject.settings);
        let settings: Value = serde_json::from_str(&subject.settings).unwrap_or_default();
        object["spec"]["port"] = settings["port"].clone();
    }
    let mut manifests = manifests(&object, &env);
    let left_out =
        |manifest: &Value| object["spec"]["leaveOut"].as_array().is_some_and(|kinds| kinds.contains(&manifest["kind"]));
    manifests.retain(|manifest| !left_out(manifest));
    if manifests.iter().all(|manifest| manifest["kind"] != "Deployment") {
        env.clear();
    }
    if object["spec"]["does"] == "stray" {
        manifests.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray"}}));
    }
    // With this origin, the host can report where an invalid port comes from.
    let service = manifests.iter().position(|manifest| manifest["kind"] == "Service");
    let port = |at: usize| Origin {
        manifest: at.try_into().unwrap_or(u32::MAX),
        path: "spec.ports[0].port".to_owned(),
        from: from.to_owned(),
    };
    Ok(Plan {
        origins: service.map(port).into_iter().collect(),
        manifests: manifests.iter().map(Value::to_string).collect(),
        gates: inputs::unready(subject),
        env,
        notes: Vec::new(),
        finalizer: None,
        kept: Vec::new(),
        gates_hold: false,
        extra: "{}".to_owned(),
    })
}

fn manifests(object: &Value, env: &[EnvVar]) -> Vec<Value> {
    let (spec, name) = (&object["spec"], text(&object["metadata"]["name"]));
    let mut labels = spec["labels"].as_object().cloned().unwrap_or_default();
    labels.insert("gadget-of".to_owned(), json!(name));
    let metadata = |name: &str| json!({"name": name, "labels": labels, "annotations": spec["annotations"].as_object()});
    let secret: Map<String, Value> = spec["secret"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), json!(STANDARD.encode(text(value)))))
        .collect();
    let selector = json!({"gadget": name});
    let entry = |var: &EnvVar| match &var.source {
        EnvSource::Literal(value) => json!({"name": var.name, "value": value}),
        EnvSource::SecretKey(key) => {
            json!({"name": var.name, "valueFrom": {"secretKeyRef": {"name": key.name, "key": key.key}}})
        }
        _ => json!({"name": var.name}),
    };
    let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": metadata(spec["deployment"].as_str().unwrap_or(name)),
        "spec": {"selector": {"matchLabels": selector}, "template": {"metadata": {"labels": selector}, "spec": {
            "serviceAccountName": name,
            "containers": [{"name": CONTAINER, "image": spec["image"], "env": env.iter().map(entry).collect::<Vec<_>>()}],
            "volumes": [{"name": "config", "configMap": {"name": name}}]}}}});
    if !spec["replicas"].is_null() {
        deployment["spec"]["replicas"] = spec["replicas"].clone();
    }
    let mut service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(name),
        "spec": {"selector": selector, "ports": [{"name": "http", "port": spec["port"]}]}});
    if spec["does"] == "misspell" {
        // Add a misspelt field, so that the API server rejects the manifest. If a known field had an invalid value, the
        // host would reject the manifest first.
        service["spec"]["prots"] = json!([]);
    }
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name)});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name), "data": spec["config"].as_object()});
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata(name), "type": "Opaque", "data": secret});
    let mut manifests = vec![service, deployment, secret, config, account];
    for manifest in &mut manifests {
        let metadata = &mut manifest["metadata"];
        if metadata["annotations"].is_null() {
            metadata.as_object_mut().map(|fields| fields.remove("annotations"));
        }
        if manifest.get("data").is_some_and(Value::is_null) {
            manifest.as_object_mut().map(|fields| fields.remove("data"));
        }
    }
    manifests
}
