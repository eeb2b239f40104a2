//! Makes invalid and extreme objects, and checks the policies' answers to these objects.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use kaos_policy::contract::{Cluster, Refusal, ResourceType, Violation};
use kaos_policy::lookup::Fixed;
use kaos_policy::policy::{Policy, Stack};
use kaos_policy::render::{Renderer, Verdict};
use serde_json::{Value, json};

use crate::typed;

/// A policy, and one of its samples with many additional fields for the container and the pod.
pub struct Subject {
    renderer: Renderer,
    lookup: Fixed,
    /// The sample.
    pub object: Value,
}

/// Returns those samples of the policies that get a plan, each with many additional fields.
pub fn subjects(policies: &[Arc<Policy>]) -> Result<Vec<Subject>> {
    let served = vec![ResourceType::new("gateway.networking.k8s.io/v1", "HTTPRoute")];
    let mut subjects = Vec::new();
    for policy in policies {
        for sample in policy.descriptor().claims.iter().flat_map(|claim| &claim.samples) {
            let beside =
                sample.beside.iter().map(|text| Ok(serde_json::from_str(text)?)).collect::<Result<Vec<_>>>()?;
            let cluster = Cluster { served: served.clone(), ..Cluster::default() };
            let renderer = Renderer::new(&Stack::single(Arc::clone(policy))?, &[], cluster)?;
            let mut object: Value = serde_json::from_str(&sample.object)?;
            talkative(&mut object);
            let subject = Subject { renderer, lookup: Fixed::new(beside), object };
            if subject.answers(&subject.object)? {
                subjects.push(subject);
            }
        }
    }
    Ok(subjects)
}

/// Sets those fields of an object that the policy copies into the Deployment.
fn talkative(object: &mut Value) {
    let container = json!({
        "command": ["run"], "args": ["--fast"], "workingDir": "/w",
        "env": [{"name": "A", "value": "b"}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "100m"}},
        "securityContext": {"runAsUser": 1, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}],
    });
    let mut side = container.clone();
    side["name"] = json!("side");
    side["image"] = json!("side:1");
    side["ports"] = json!([{"name": "metrics", "containerPort": 9000, "protocol": "TCP"}]);
    side["readinessProbe"] = json!({"httpGet": {"path": "/", "port": "metrics"}, "periodSeconds": 3});
    side["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "1"]}}});
    let spec = &mut object["spec"];
    if let (Some(own), Value::Object(more)) = (spec["container"].as_object_mut(), container.clone()) {
        own.extend(more);
    } else {
        spec["container"] = container;
    }
    spec["podSpec"] = json!({
        "containers": [side], "initContainers": [{"name": "first", "image": "first:1", "command": ["true"]}],
        "volumes": [
            {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "c", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
        ],
        "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}},
        ]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "imagePullSecrets": [{"name": "pull"}], "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a"]}],
        "securityContext": {"fsGroup": 1, "supplementalGroups": [1]}, "terminationGracePeriodSeconds": 5,
        "priorityClassName": "high", "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
    });
}

impl Subject {
    /// Returns whether an object gets a plan. Fails if the plan's manifests do not fit Kubernetes' types, or if the
    /// refusal names no path or no reason.
    pub fn answers(&self, object: &Value) -> Result<bool> {
        match self.renderer.render(object, &self.lookup)?.verdict {
            Verdict::Planned(planned) => {
                planned.manifests.iter().try_for_each(typed::readable)?;
                Ok(true)
            }
            Verdict::Refused(Refusal::Invalid(violations)) => {
                ensure!(!violations.is_empty(), "a refusal without a reason");
                for it in violations {
                    ensure!(it.path.starts_with("spec") || it.path.starts_with("metadata"), "path `{}`", it.path);
                    ensure!(!it.message.is_empty() && it.message.len() < 4096, "{}: {}", it.path, it.message);
                }
                Ok(false)
            }
            Verdict::Refused(Refusal::Waiting(_) | Refusal::Unsupported(_)) => Ok(false),
            Verdict::Failed(failure) => Err(failure.into()),
        }
    }

    /// Returns the result of a pass over `object`: a plan, a refusal or a failure.
    pub fn verdict(&self, object: &Value) -> Result<Verdict> {
        Ok(self.renderer.render(object, &self.lookup)?.verdict)
    }

    /// Returns the violations of an object that the policy refuses as invalid.
    pub fn refusal(&self, object: &Value) -> Vec<Violation> {
        match self.renderer.render(object, &self.lookup).map(|rendered| rendered.verdict) {
            Ok(Verdict::Refused(Refusal::Invalid(violations))) => violations,
            _ => Vec::new(),
        }
    }

    /// Calls [`Self::answers`] for the sample with `value` at `path`.
    pub fn answers_with(&self, path: &[String], value: Value) -> Result<bool> {
        let mut object = self.object.clone();
        put(&mut object, path, value);
        self.answers(&object)
    }
}

impl Subject {
    /// Returns the value at a path.
    ///
    /// # Panics
    /// If the path has no value.
    pub fn at(&self, path: &[String]) -> &Value {
        path.iter().fold(&self.object, |value, key| match value {
            Value::Array(items) => &items[key.parse::<usize>().unwrap_or_default()],
            other => &other[key],
        })
    }

    /// Returns the paths of all lists and objects in the spec that are not empty.
    pub fn lists_and_objects(&self) -> Vec<Vec<String>> {
        let has_several = |value: &Value| match value {
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            _ => false,
        };
        let mut all = places(&self.object);
        all.retain(|path| path[0] == "spec" && has_several(self.at(path)));
        all
    }
}

/// Returns every path below `value`.
pub fn places(value: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    collect(value, &mut Vec::new(), &mut found);
    found
}

fn collect(value: &Value, here: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let mut below = |key: String, value: &Value| {
        here.push(key);
        found.push(here.clone());
        collect(value, here, found);
        here.pop();
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| below(name.clone(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, value)| below(i.to_string(), value)),
        _ => {}
    }
}

/// Replaces the value at a path that exists in `object`.
pub fn put(object: &mut Value, path: &[String], value: Value) {
    let place = path.iter().try_fold(object, |value, key| match value {
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        other => other.get_mut(key),
    });
    if let Some(place) = place {
        *place = value;
    }
}

/// If `result` is an error, adds the path and the value to the error.
pub fn told(result: Result<bool>, path: &[String], value: &Value) -> Result<bool> {
    result.with_context(|| {
        let value: String = value.to_string().chars().take(200).collect();
        format!("with {value} at {}", path.join("."))
    })
}
