//! Where pods are in a manifest.

use std::fmt::Write;

use serde_json::Value;

/// The pod template of a workload; a bare Pod is its own.
pub(crate) fn template(manifest: &Value) -> Option<&Value> {
    template_pointer(manifest).and_then(|pointer| manifest.pointer(pointer))
}

/// The pod template of a workload, to be changed. A bare Pod has none that could be.
pub(crate) fn template_mut(manifest: &mut Value) -> Option<&mut Value> {
    let pointer = template_pointer(manifest).filter(|pointer| !pointer.is_empty())?;
    manifest.pointer_mut(pointer)
}

fn template_pointer(manifest: &Value) -> Option<&'static str> {
    let has_pod =
        |pointer: &&str| manifest.pointer(pointer).is_some_and(|template| template["spec"]["containers"].is_array());
    ["", "/spec/template", "/spec/jobTemplate/spec/template"].into_iter().find(has_pod)
}

/// Every pod spec in a value, wherever it stands, with its path.
pub(crate) fn specs(value: &Value) -> Vec<(String, &Value)> {
    let mut specs = Vec::new();
    collect(value, &mut String::new(), &mut specs);
    specs
}

fn collect<'a>(value: &'a Value, path: &mut String, specs: &mut Vec<(String, &'a Value)>) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            if CONTAINERS.iter().any(|list| fields.get(*list).is_some_and(Value::is_array)) {
                specs.push((path.clone(), value));
            }
            for (name, value) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                collect(value, path, specs);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let _ = write!(path, "[{i}]");
                collect(item, path, specs);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// The lists of a pod spec that hold containers.
pub(crate) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Every container of a pod spec, with its path within the spec.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    CONTAINERS.into_iter().flat_map(|list| {
        let items = spec[list].as_array().into_iter().flatten();
        items.enumerate().map(move |(i, container)| (format!("{list}[{i}]"), container))
    })
}
