//! Reads from a Deployment how to start its process, so that a test can run the process as the kubelet would.

use std::collections::BTreeMap;

use serde_json::Value;

/// How the first container of a pod starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its arguments, without the addresses on which it serves pages.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Its ServiceAccount.
    pub account: String,
    /// Its namespace.
    pub namespace: String,
}

impl Pod {
    /// Reads the pod template of a Deployment or a Job. `config` returns the data of a `ConfigMap` by name.
    pub fn of(owner: &Value, config: impl Fn(&str) -> Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &owner["spec"]["template"]["spec"];
        let (container, namespace) = (&spec["containers"][0], text(&owner["metadata"]["namespace"]));
        let pages = ["--metrics-bind-address", "--health-probe-bind-address", "--debug-bind-address"];
        let arguments = container["args"].as_array().into_iter().flatten().map(text);
        let mut environment: BTreeMap<String, String> = BTreeMap::new();
        for source in container["envFrom"].as_array().into_iter().flatten() {
            let data = config(&text(&source["configMapRef"]["name"]));
            for (name, value) in data.as_object().into_iter().flatten() {
                environment.insert(name.clone(), text(value));
            }
        }
        for variable in container["env"].as_array().into_iter().flatten() {
            let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                Some("metadata.namespace") => namespace.clone(),
                _ => text(&variable["value"]),
            };
            environment.insert(text(&variable["name"]), value);
        }
        Self {
            arguments: arguments.filter(|flag| !pages.iter().any(|page| flag.starts_with(page))).collect(),
            environment: environment.into_iter().collect(),
            account: text(&spec["serviceAccountName"]),
            namespace,
        }
    }
}
