//! Finds the pods in a manifest.

use std::fmt::Write;

use serde_json::{Map, Value};

/// The pod template of a workload. A bare Pod is its own template.
pub(crate) fn template(manifest: &Value) -> Option<&Value> {
    template_pointer(manifest).and_then(|pointer| manifest.pointer(pointer))
}

/// The pod template of a workload, mutably. `None` for a bare Pod: its template cannot be changed.
pub(crate) fn template_mut(manifest: &mut Value) -> Option<&mut Value> {
    let pointer = template_pointer(manifest).filter(|pointer| !pointer.is_empty())?;
    manifest.pointer_mut(pointer)
}

/// The JSON pointer to the result of [`template`].
pub(crate) fn template_pointer(manifest: &Value) -> Option<&'static str> {
    let has_pod =
        |pointer: &&str| manifest.pointer(pointer).is_some_and(|template| template["spec"]["containers"].is_array());
    ["", "/spec/template", "/spec/jobTemplate/spec/template"].into_iter().find(has_pod)
}

/// Every value with the metadata of pods, with its path: values that contain a pod spec, and pod specs themselves,
/// since some kinds put metadata there. At most twice [`SPECS`].
pub(crate) fn templates(value: &Value) -> Vec<(String, &Value)> {
    let mut templates = Vec::new();
    walk(value, &mut String::new(), &mut |path, value, fields| {
        if templates.len() < 2 * SPECS && (is_spec(value) || fields.values().any(is_spec)) {
            templates.push((path.to_owned(), value));
        }
        true
    });
    templates
}

/// The most pod specs that are collected of one manifest: one more than any well-meant manifest has.
pub(crate) const SPECS: usize = 17;

/// The most characters of a name in a path.
const NAME: usize = 64;

/// The pod specs in a value at any depth, with their paths; at most [`SPECS`]. With `within`, also values inside of a
/// pod spec that look like another one, although Kubernetes does not expect any there.
pub(crate) fn specs(value: &Value, within: bool) -> Vec<(String, &Value)> {
    let mut specs = Vec::new();
    walk(value, &mut String::new(), &mut |path, value, _| {
        let is_spec = is_spec(value) && specs.len() < SPECS;
        if is_spec {
            specs.push((path.to_owned(), value));
        }
        within || !is_spec
    });
    specs
}

/// Passes every object in a value with its path to `seen`, the outer ones first. Walks into an object if `seen` returns
/// true.
fn walk<'a>(
    value: &'a Value,
    path: &mut String,
    seen: &mut impl FnMut(&str, &'a Value, &'a Map<String, Value>) -> bool,
) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            if !seen(path, value, fields) {
                return;
            }
            for (name, value) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.extend(name.chars().take(NAME));
                walk(value, path, seen);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let _ = write!(path, "[{i}]");
                walk(item, path, seen);
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

/// The lists of containers in a pod spec.
pub(crate) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Every container of a pod spec, with its path in the spec.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    CONTAINERS.into_iter().flat_map(|list| {
        let items = spec[list].as_array().into_iter().flatten();
        items.enumerate().map(move |(i, container)| (format!("{list}[{i}]"), container))
    })
}
