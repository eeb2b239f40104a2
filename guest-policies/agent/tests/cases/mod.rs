//! The recorded cases of the kind `Agent`, for tests that run the policy without the operator.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure must end the test

use kaos_agent::{Agent, Settings};
use kaos_policy_sdk::types::{Outcome, Plan, Refusal, Report, Subject};
use kaos_policy_sdk::{Object, Policy, testing, yaml};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A recorded case.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) recorded: Value,
    about: Value,
    objects: Vec<Value>,
    ready: Vec<String>,
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|one| yaml::parse(one).unwrap()).filter(|value| !value.is_null()).collect()
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        let entries = fs::read_dir(golden().join("cases")).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.starts_with("agent-"));
        names.sort();
        names.iter().map(|name| Self::named(name)).collect()
    }

    pub(crate) fn named(name: &str) -> Self {
        let folder = golden().join("cases").join(name);
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let mut objects = documents(&read("input.yaml").unwrap());
        for update in documents(&read("update.yaml").unwrap_or_default()) {
            let update = Object::new(update);
            objects.retain(|old| {
                (old["kind"].as_str(), old["metadata"]["name"].as_str()) != (Some(update.kind()), Some(update.name()))
            });
            objects.push(update.value().clone());
        }
        let status = read("status.yaml").map(|text| yaml::parse(&text).unwrap()).unwrap_or_default();
        let before = status["before"].as_array().cloned().unwrap_or_default();
        let ready = before
            .iter()
            .filter(|entry| entry["ready"] != 0)
            .map(|entry| entry["deployment"].as_str().unwrap().to_owned());
        Self {
            name: name.to_owned(),
            recorded: serde_json::from_str(&read("expected.json").unwrap()).unwrap(),
            about: yaml::parse(&read("case.yaml").unwrap()).unwrap(),
            ready: ready.collect(),
            objects,
        }
    }

    pub(crate) fn deviates(&self) -> bool {
        !self.about["desired"].is_null()
    }

    /// Returns the recorded children of the case's object, or `None` if the plan need not match the recorded children.
    pub(crate) fn expected(&self) -> Option<Vec<Value>> {
        // These cases deviate from the Go operator, but not in the children: their plans match the recordings.
        const SAME_PLAN: [&str; 3] =
            ["agent-network-peer-missing", "agent-network-peer-unexposed", "agent-telemetry-enabled-no-endpoint"];
        let own = format!("agent-{}", self.primary().name());
        let mut children = self.recorded["children"].as_array()?.clone();
        children.retain(|child| child["metadata"]["name"] == own.as_str());
        let wanted = !self.deviates() || SAME_PLAN.contains(&self.name.as_str());
        (wanted && !children.is_empty()).then(|| children.iter().map(stripped).collect())
    }

    fn primary(&self) -> Object {
        let wanted = self.about["primary"][0].as_str().unwrap().split_once('/').unwrap().1;
        let own = |object: &&Value| object["kind"] == "Agent" && object["metadata"]["name"] == wanted;
        Object::new(self.objects.iter().find(own).unwrap().clone())
    }

    fn subject(&self) -> Subject {
        let profile = self.about["profile"].as_str().unwrap_or("default");
        let mut subject = testing::subject(self.primary().value()).settings(&settings(profile));
        if profile.starts_with("gateway") {
            subject = subject.serves("gateway.networking.k8s.io/v1", "HTTPRoute");
        }
        let beside: Vec<Value> = self.objects.iter().map(|object| self.with_status(object)).collect();
        subject.beside::<Agent>(&beside).build()
    }

    /// Returns `object` with the status that the policy of the object's kind would write in its first pass.
    fn with_status(&self, object: &Value) -> Value {
        let seen = Object::new(object.clone());
        let (prefix, port) = match seen.kind() {
            "ModelAPI" if seen.str_at(&["spec", "mode"]) == Some("Hosted") => ("modelapi", 11434),
            "ModelAPI" => ("modelapi", 8000),
            "MCPServer" => ("mcpserver", 8000),
            "MemoryStore" => ("memorystore", 8080),
            "Agent" if seen.at(&["spec", "agentNetwork", "expose"]) != Some(&json!(false)) => ("agent", 8000),
            _ => return object.clone(),
        };
        let child = format!("{prefix}-{}", seen.name());
        let ready = self.ready.contains(&child);
        let mut object = object.clone();
        object["status"] =
            json!({"ready": ready, "endpoint": format!("http://{child}.parity.svc.cluster.local:{port}")});
        object
    }

    pub(crate) fn plan(&self) -> Result<Plan, Refusal> {
        testing::plan::<Agent>(&self.subject())
    }

    /// Returns the report of the policy if the Deployment has the status of the recording.
    pub(crate) fn report(&self) -> Report {
        let subject = self.subject();
        let plan = testing::plan::<Agent>(&subject).unwrap();
        let mut status = self.recorded["status"]["deployment"].clone();
        status["observedGeneration"] = json!(1);
        let mut deployment = testing::manifest(&plan, "Deployment").value().clone();
        deployment["metadata"]["generation"] = json!(1);
        deployment["spec"]["replicas"] = json!(1);
        deployment["status"] = status;
        let seen = testing::observation(Outcome::Applied).plan(&plan).child(&deployment).build();
        Agent::assess(&subject, &seen)
    }
}

/// Returns the settings that result from the variables of a profile in `profiles.yaml`, such as the profile `gateway`.
fn settings(profile: &str) -> Value {
    let profiles = yaml::parse(&fs::read_to_string(golden().join("profiles.yaml")).unwrap()).unwrap();
    let mut environment = profiles["base"].as_object().unwrap().clone();
    environment.extend(profiles["profiles"][profile].as_object().unwrap().clone());
    let schema: Value = serde_json::from_str(&Settings::schema_text()).unwrap();
    let mut settings = json!({});
    for (path, leaf) in kaos_workload::schema::leaves(&schema) {
        let given = leaf["x-env"].as_str().and_then(|variable| environment.get(variable)?.as_str());
        let value = match (given, leaf["type"].as_str()) {
            (None, _) => leaf["default"].clone(),
            (Some(text), Some("boolean")) => json!(text == "true"),
            (Some(text), _) => json!(text),
        };
        settings = kaos_workload::schema::with(&settings, &path, value);
    }
    settings
}

/// Returns the manifests of a plan in the format of the recorded children.
pub(crate) fn rendered(plan: &Plan) -> Vec<Value> {
    let mut manifests: Vec<Value> =
        testing::manifests(plan).iter().map(|manifest| stripped(manifest.value())).collect();
    manifests.sort_by_key(|manifest| manifest["kind"].as_str().map(ToOwned::to_owned));
    manifests
}

/// Removes the fields that the host adds, and the API server's defaults.
fn stripped(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    let spec = &mut object["spec"];
    match object_kind(spec) {
        Kind::Deployment => {
            drop_equal(spec, &json!({"replicas": 1}));
            spec["template"]["metadata"].as_object_mut().unwrap().remove("annotations");
            let pod = &mut spec["template"]["spec"];
            for list in ["containers", "initContainers"] {
                for container in pod[list].as_array_mut().into_iter().flatten() {
                    strip_container(container);
                }
            }
            pod.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        }
        Kind::Service => {
            drop_equal(spec, &json!({"type": "ClusterIP"}));
            each(spec, "ports", &json!({"protocol": "TCP"}));
        }
        Kind::Route => {
            each(spec, "parentRefs", &json!({"group": "gateway.networking.k8s.io", "kind": "Gateway"}));
            for rule in spec["rules"].as_array_mut().unwrap() {
                each(rule, "backendRefs", &json!({"kind": "Service"}));
            }
        }
    }
    object
}

enum Kind {
    Deployment,
    Service,
    Route,
}

fn object_kind(spec: &Value) -> Kind {
    match (spec.get("template"), spec.get("rules")) {
        (Some(_), _) => Kind::Deployment,
        (_, Some(_)) => Kind::Route,
        _ => Kind::Service,
    }
}

fn strip_container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default().to_owned();
    let latest = image.ends_with(":latest") || !image.contains(':');
    drop_equal(container, &json!({"imagePullPolicy": if latest { "Always" } else { "IfNotPresent" }}));
    each(container, "ports", &json!({"protocol": "TCP"}));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            drop_equal(
                probe,
                &json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}),
            );
            if let Some(http) = probe.get_mut("httpGet") {
                drop_equal(http, &json!({"scheme": "HTTP"}));
            }
        }
    }
}

fn each(owner: &mut Value, list: &str, defaults: &Value) {
    for item in owner.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        drop_equal(item, defaults);
    }
}

fn drop_equal(value: &mut Value, defaults: &Value) {
    let defaults: &Map<String, Value> = defaults.as_object().unwrap();
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, member| defaults.get(name) != Some(member));
    }
}
