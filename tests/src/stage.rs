//! A minimal operator that runs passes over objects in memory until nothing changes.
//!
//! The stage imitates the cluster with which the cases of the Go operator were recorded: applied children exist at
//! once, and the test decides when pods become ready. The stage renders and assesses every object with the host's own
//! code. Each manifest must fit the complete type of its kind. The stage does not add an API server's defaults, so
//! tests remove these defaults with [`crate::normalize`].

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use kaos_operator::status::{self, Hindrance, Standing};
use kaos_policy::contract::{Child, Outcome, Reference};
use kaos_policy::lookup::Fixed;
use kaos_policy::render::{Rendered, Renderer, Verdict};
use serde_json::{Value, json};

use crate::typed;

/// The kind and the name of an object. A stage has only one namespace.
pub type Key = (String, String);

/// A cluster in memory, with a renderer for each kind of object.
pub struct Stage {
    renderers: BTreeMap<String, Renderer>,
    objects: BTreeMap<Key, Value>,
    children: BTreeMap<Key, Value>,
    /// The objects for which the stage has already applied a plan. For these objects, plan gates have no effect any
    /// more.
    applied: BTreeSet<Key>,
    /// The statuses of Deployments by name. A Deployment without an entry has the status that `started` returns.
    deployments: BTreeMap<String, Value>,
    /// The statuses that the host would write, including conditions. Policies do not see these statuses, because the
    /// recordings have no conditions.
    composed: BTreeMap<Key, Value>,
    /// The fuel of the last pass over each object.
    pub fuel: BTreeMap<Key, u64>,
    /// The variables of all plans.
    pub variables: BTreeSet<MappedVariable>,
}

/// An environment variable that a plan gives to pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MappedVariable {
    /// The kind of the object.
    pub kind: String,
    /// The variable's name.
    pub name: String,
    /// The origin of the value.
    pub origin: String,
}

impl Stage {
    /// Creates an empty stage with a renderer for each kind.
    pub fn new(renderers: BTreeMap<String, Renderer>) -> Self {
        Self {
            renderers,
            objects: BTreeMap::new(),
            children: BTreeMap::new(),
            applied: BTreeSet::new(),
            deployments: BTreeMap::new(),
            composed: BTreeMap::new(),
            fuel: BTreeMap::new(),
            variables: BTreeSet::new(),
        }
    }

    /// Applies an object like a user. Replaces the spec and keeps the status.
    pub fn apply(&mut self, object: &Value) {
        let key = key(object);
        let generation = self.objects.get(&key).map_or(0, |old| old["metadata"]["generation"].as_i64().unwrap_or(0));
        let mut new = object.clone();
        new["metadata"]["generation"] = json!(generation + 1);
        if let Some(status) = self.objects.get(&key).and_then(|old| old.get("status")) {
            new["status"] = status.clone();
        }
        self.objects.insert(key, new);
    }

    /// Sets the status of a Deployment.
    pub fn deployment_status(&mut self, name: &str, status: Value) {
        self.deployments.insert(name.to_owned(), status);
    }

    /// Makes `ready` pods of a Deployment ready.
    pub fn make_ready(&mut self, name: &str, ready: u32) {
        let status = json!({
            "replicas": ready, "updatedReplicas": ready, "readyReplicas": ready, "availableReplicas": ready,
            "conditions": [{
                "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
            }],
        });
        self.deployment_status(name, status);
    }

    /// Runs passes over all objects until no status and no child changes.
    pub fn settle(&mut self) -> Result<()> {
        for _ in 0..20 {
            let before = (self.objects.clone(), self.children.clone());
            let keys: Vec<Key> =
                self.objects.keys().filter(|(kind, _)| self.renderers.contains_key(kind)).cloned().collect();
            for key in keys {
                self.pass(&key)?;
            }
            if before == (self.objects.clone(), self.children.clone()) {
                return Ok(());
            }
        }
        bail!("the objects do not settle")
    }

    /// Returns the rendered children of one object.
    pub fn children_of(&self, key: &Key) -> Vec<Value> {
        self.children.values().filter(|child| owner(child) == *key).cloned().collect()
    }

    /// Returns the status of one object.
    pub fn status_of(&self, key: &Key) -> Value {
        self.objects.get(key).and_then(|object| object.get("status")).cloned().unwrap_or_else(|| json!({}))
    }

    /// Returns the object `key` with the status that the host would write, or `None` if the object has no such status.
    pub fn as_written(&self, key: &Key) -> Option<Value> {
        let mut object = self.objects.get(key)?.clone();
        object["status"] = self.composed.get(key)?.clone();
        Some(object)
    }

    fn pass(&mut self, key: &Key) -> Result<()> {
        let object = self.objects[key].clone();
        let lookup = Fixed::new(self.objects.values().cloned());
        let renderer = &self.renderers[&key.0];
        let rendered = renderer.render(&object, &lookup)?;
        for manifest in rendered.manifests() {
            typed::lossless(manifest).with_context(|| format!("{}/{}: {manifest}", key.0, key.1))?;
        }
        let outcome = outcome(&rendered, self.applied.contains(key));
        if matches!(outcome, Outcome::Applied) {
            self.applied.insert(key.clone());
            self.children.retain(|_, child| owner(child) != *key);
            for manifest in rendered.manifests() {
                let mut live = manifest.clone();
                if live["kind"] == "Deployment" {
                    live["metadata"]["generation"] = json!(1);
                    live["status"] = self.deployment_now(&live);
                }
                self.children.insert(self::key(&live), live);
            }
        }
        let assessed = renderer.assess(&rendered, outcome.clone(), self.seen(&rendered, key))?;
        let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
        let before = self.composed.get(key);
        let applied_before = before.and_then(|before| before["appliedGeneration"].as_i64());
        let standing = Standing {
            outcome: &outcome,
            hindrance: Hindrance::ApplyFailed,
            missing: &status::missing(&rendered, &lookup),
            generation,
            applied_generation: if outcome == Outcome::Applied { Some(generation) } else { applied_before },
            before,
            fallback: None,
        };
        let composed = status::compose(&rendered, Ok(assessed.clone()), standing);
        self.composed.insert(key.clone(), composed);
        let mut status = assessed.fields.clone();
        status.insert("phase".into(), json!(assessed.report.phase));
        status.insert("ready".into(), json!(assessed.report.ready));
        status.insert("message".into(), json!(assessed.report.message));
        let conditions: Vec<Value> = assessed.report.conditions.iter().map(|condition| json!(condition)).collect();
        status.insert("conditions".into(), json!(conditions));
        if let Some(object) = self.objects.get_mut(key) {
            object["status"] = Value::Object(status);
        }
        self.fuel.insert(key.clone(), rendered.fuel + assessed.fuel);
        if let Verdict::Planned(planned) = &rendered.verdict {
            self.variables.extend(planned.env.iter().map(|variable| MappedVariable {
                kind: key.0.clone(),
                name: variable.name.clone(),
                origin: variable.origin.clone(),
            }));
        }
        Ok(())
    }

    /// Returns the planned children and the existing children, each child only once.
    fn seen(&self, rendered: &Rendered, key: &Key) -> Vec<Child> {
        let mut seen: BTreeMap<Key, Child> = BTreeMap::new();
        for child in rendered.manifests().iter().chain(&self.children_of(key)) {
            let live = self.children.get(&self::key(child)).map(ToString::to_string);
            seen.insert(self::key(child), Child { identity: identity(child), live });
        }
        seen.into_values().collect()
    }

    fn deployment_now(&self, deployment: &Value) -> Value {
        let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
        let mut status = self.deployments.get(name).cloned().unwrap_or_else(started);
        status["observedGeneration"] = json!(1);
        status
    }
}

fn outcome(rendered: &Rendered, applied_before: bool) -> Outcome {
    match &rendered.verdict {
        Verdict::Planned(planned) if planned.gates.is_empty() || applied_before => Outcome::Applied,
        Verdict::Planned(_) => Outcome::Gated,
        Verdict::Refused(refusal) => Outcome::Refused(refusal.clone()),
        Verdict::Failed(failure) => Outcome::Failed(failure.to_string()),
    }
}

/// Returns the status of a Deployment with a single pod that has just been created.
fn started() -> Value {
    json!({
        "replicas": 1, "updatedReplicas": 1,
        "conditions": [
            {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
             "message": "Deployment does not have minimum availability."},
            {"type": "Progressing", "status": "True", "reason": "<NewReplicaSetCreated|ReplicaSetUpdated>",
             "message": "<in progress>"},
        ],
    })
}

/// Returns the kind and the name of an object.
pub fn key(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn owner(child: &Value) -> Key {
    let owner = &child["metadata"]["ownerReferences"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&owner["kind"]), text(&owner["name"]))
}

fn identity(child: &Value) -> Reference {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Reference {
        api_version: text(&child["apiVersion"]),
        kind: text(&child["kind"]),
        namespace: child["metadata"]["namespace"].as_str().map(str::to_owned),
        name: text(&child["metadata"]["name"]),
    }
}
