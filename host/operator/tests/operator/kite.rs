//! The kind Kite for tests, and its policy. The children are a Deployment, a Service, and a ConfigMap if the spec
//! requests one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread::ThreadId,
};

use kaos_policy::{
    code::Native,
    contract::{
        Answer, Blocker, Claim, Descriptor, EnvVar, Need, Observation, Outcome, Plan, Reference, Refusal, Report,
        ResourceType, Sample, Subject, Target, Violation,
    },
    digest::Digest,
    limits::Limits,
    manifest::PolicyFile,
    policy::{Policy, Stack},
};
use serde_json::{Value, json};

use crate::stalling::Stalling;

/// Returns the type of Kites.
pub(crate) fn of() -> ResourceType {
    ResourceType::new("sky.io/v1", "Kite")
}

/// Returns a Kite.
pub(crate) fn object(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "sky.io/v1", "kind": "Kite", "metadata": {"name": name, "namespace": "t"}, "spec": spec})
}

/// Returns the CRD of Kites.
pub(crate) fn definition() -> Value {
    let condition = json!({"type": "object", "required": ["type", "status"], "properties": {
        "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
        "message": {"type": "string"}, "observedGeneration": {"type": "integer"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    }});
    let status = json!({"type": "object", "properties": {
        "phase": {"type": "string"}, "ready": {"type": "boolean"}, "message": {"type": "string"},
        "observedGeneration": {"type": "integer"}, "appliedGeneration": {"type": "integer"},
        "policy": {"type": "object", "properties": {
            "name": {"type": "string"}, "version": {"type": "string"}, "digest": {"type": "string"},
        }},
        "conditions": {"type": "array", "items": condition, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"]},
    }});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "kites.sky.io"},
    "spec": {"group": "sky.io", "scope": "Namespaced", "names": {"plural": "kites", "kind": "Kite"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "status": status,
            }}}}]}})
}

/// Returns the policy for Kites.
pub(crate) fn stacks() -> BTreeMap<ResourceType, Stack> {
    let code = Native { describe, needs, map_env: |_, base| Ok(base), translate, assess };
    let code = Stalling(code, Mutex::default());
    let policy = Policy::admit(Arc::new(code), Digest::of(b"kite"), &PolicyFile::default(), Limits::default());
    [(of(), Stack::single(Arc::new(policy.unwrap())).unwrap())].into()
}

fn describe() -> Descriptor {
    let types =
        |types: &[(&str, &str)]| types.iter().map(|(version, kind)| ResourceType::new(*version, *kind)).collect();
    Descriptor {
        name: "kite".to_owned(),
        version: "1.0.0".to_owned(),
        claims: vec![Claim {
            primary: of(),
            emits: types(&[("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "ConfigMap")]),
            reads: types(&[("v1", "ConfigMap")]),
            wishes: Vec::new(),
            finalizer: None,
            samples: vec![Sample {
                name: "one".to_owned(),
                object: object("a", &json!({"image": "x"})).to_string(),
                beside: vec![],
            }],
            extra: "{}".to_owned(),
        }],
        settings_schema: r#"{"type":"object","properties":{}}"#.to_owned(),
        extra: "{}".to_owned(),
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn awaited(subject: &Subject) -> Option<Reference> {
    let name = parse(&subject.object)["spec"]["waitsFor"].as_str()?.to_owned();
    Some(Reference { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), namespace: None, name })
}

fn needs(subject: &Subject) -> Vec<Need> {
    awaited(subject)
        .map(|on| Need { id: "awaited".to_owned(), target: Target::Named(on), fields: Vec::new(), optional: false })
        .into_iter()
        .collect()
}

/// The calls of the policy's function `translate`: the name of the object, and the thread.
pub(crate) static TRANSLATED: Mutex<Vec<(String, ThreadId)>> = Mutex::new(Vec::new());

fn translate(subject: &Subject, _: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let object = parse(&subject.object);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    TRANSLATED.lock().unwrap().push((name, std::thread::current().id()));
    let spec = &object["spec"];
    let image = spec["image"].as_str().unwrap_or_default();
    assert_ne!(image, "panic");
    if image.is_empty() {
        let message = "must name an image".to_owned();
        return Err(Refusal::Invalid(vec![Violation { path: "spec.image".to_owned(), message }]));
    }
    let mut gates = Vec::new();
    if let Some(on) = awaited(subject) {
        let blocker =
            |reason: &str| Blocker { on: on.clone(), reason: reason.to_owned(), message: format!("{on}: {reason}") };
        match &subject.found[0].answer {
            Answer::Objects(found) if found.is_empty() => return Err(Refusal::Waiting(vec![blocker("NotFound")])),
            Answer::Objects(found) if parse(&found[0])["data"]["force"] != "strong" => gates.push(blocker("NotReady")),
            _ => {}
        }
    }
    let name = format!("kite-{}", object["metadata"]["name"].as_str().unwrap());
    let labels = json!({"kite": name});
    let mut container = json!({"name": "main", "image": image, "resources": {"limits": {"cpu": "1000m"}}});
    let mut manifests =
        vec![json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels},
        "spec": {"selector": labels, "ports": [{"port": 80}]}})];
    if let Some(config) = spec["config"].as_str() {
        container["envFrom"] = json!([{"configMapRef": {"name": name}}]);
        manifests
            .push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": config}}));
    }
    let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": spec["replicas"].as_i64().unwrap_or(1), "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
    if spec["misspells"] == true {
        deployment["spec"]["replica"] = json!(1);
    }
    manifests.push(deployment);
    let manifests = manifests.iter().map(Value::to_string).collect();
    let finalizer = (spec["hold"] == true).then(|| "sky.io/hold".to_owned());
    let (env, notes, kept) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Plan {
        manifests,
        gates,
        env,
        notes,
        finalizer,
        kept,
        gates_hold: false,
        origins: Vec::new(),
        extra: "{}".to_owned(),
    })
}

fn assess(_: &Subject, seen: &Observation) -> Report {
    let available = seen.children.iter().filter(|child| child.identity.kind == "Deployment").any(|child| {
        let live = child.live.as_deref().map(parse).unwrap_or_default();
        live["status"]["availableReplicas"].as_i64().unwrap_or(0) > 0
    });
    let ready = available && seen.outcome == Outcome::Applied;
    let phase = match &seen.outcome {
        Outcome::Applied if available => "Ready",
        Outcome::Refused(Refusal::Invalid(_)) | Outcome::Failed(_) => "Failed",
        _ => "Pending",
    };
    Report {
        ready,
        phase: phase.to_owned(),
        message: phase.to_lowercase(),
        fields: "{}".to_owned(),
        conditions: Vec::new(),
        extra: "{}".to_owned(),
    }
}
