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

/// Pod specs of one manifest that are looked for: one more than any has that is meant well.
pub(crate) const SPECS: usize = 17;

/// Characters of a name in a path.
const NAME: usize = 64;

/// The pod specs in a value, wherever they stand, with their paths; at most [`SPECS`]. With `within`, also those that
/// seem to stand inside of another, where Kubernetes looks for none.
pub(crate) fn specs(value: &Value, within: bool) -> Vec<(String, &Value)> {
    let mut specs = Vec::new();
    collect(value, within, &mut String::new(), &mut specs);
    specs
}

fn collect<'a>(value: &'a Value, within: bool, path: &mut String, specs: &mut Vec<(String, &'a Value)>) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            if is_spec(value) && specs.len() < SPECS {
                specs.push((path.clone(), value));
                if !within {
                    return;
                }
            }
            for (name, value) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.extend(name.chars().take(NAME));
                collect(value, within, path, specs);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let _ = write!(path, "[{i}]");
                collect(item, within, path, specs);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Whether a value has the form of a pod spec.
pub(crate) fn is_spec(value: &Value) -> bool {
    CONTAINERS.iter().any(|list| value.get(*list).is_some_and(Value::is_array))
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
