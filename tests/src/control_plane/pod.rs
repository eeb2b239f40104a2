//! Reads from a Deployment how the kubelet would start the Deployment's process, so that a test can start this process
//! itself.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::files;

/// The arguments, files and variables with which the first container of a pod starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// The container's arguments, without the flags that set the addresses of the operator's HTTP pages.
    pub arguments: Vec<String>,
    /// The files in the container's volumes that come from ConfigMaps, by path.
    pub files: BTreeMap<String, String>,
    /// The container's environment.
    pub environment: Vec<(String, String)>,
    /// The pod's ServiceAccount.
    pub account: String,
    /// The pod's namespace.
    pub namespace: String,
}

impl Pod {
    /// Reads the pod template of a Deployment or a Job. `config` returns the data of the ConfigMap with the given name.
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
        let mut files = BTreeMap::new();
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            let mut volumes = spec["volumes"].as_array().into_iter().flatten();
            let volume = volumes.find(|volume| volume["name"] == mount["name"]);
            let Some(name) = volume.and_then(|volume| volume["configMap"]["name"].as_str()) else { continue };
            for (key, value) in config(name).as_object().into_iter().flatten() {
                files.insert(format!("{}/{key}", text(&mount["mountPath"])), text(value));
            }
        }
        Self {
            files,
            arguments: arguments.filter(|flag| !pages.iter().any(|page| flag.starts_with(page))).collect(),
            environment: environment.into_iter().collect(),
            account: text(&spec["serviceAccountName"]),
            namespace,
        }
    }

    /// Writes the mounted files into a folder. Returns the arguments, with the paths of the files in this folder.
    pub fn arguments_in(&self, folder: &Path) -> anyhow::Result<Vec<String>> {
        let mut arguments = self.arguments.clone();
        for (path, text) in &self.files {
            let there = folder.join(path.trim_start_matches('/').replace('/', "-"));
            files::write(&there, text)?;
            for argument in &mut arguments {
                *argument = argument.replace(path, &there.display().to_string());
            }
        }
        Ok(arguments)
    }
}
