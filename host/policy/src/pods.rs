//! Finds the pod templates, pod specs and containers in a manifest.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Returns the pod template of a workload, or `None` if the manifest has no pods. A bare Pod is its own template.
pub(crate) fn template(manifest: &Value) -> Option<&Value> {
    template_pointer(manifest).and_then(|pointer| manifest.pointer(pointer))
}

/// Returns the pod template of a workload, for changes. Returns `None` for a bare Pod, because the host must not change
/// a Pod.
pub(crate) fn template_mut(manifest: &mut Value) -> Option<&mut Value> {
    let pointer = template_pointer(manifest).filter(|pointer| !pointer.is_empty())?;
    manifest.pointer_mut(pointer)
}

/// Returns the JSON pointer to the result of [`template`], or `None` if the manifest has no pods.
pub(crate) fn template_pointer(manifest: &Value) -> Option<&'static str> {
    let has_pod =
        |pointer: &&str| manifest.pointer(pointer).is_some_and(|template| template["spec"]["containers"].is_array());
    ["", "/spec/template", "/spec/jobTemplate/spec/template"].into_iter().find(has_pod)
}

/// Finds every value that can contain the metadata of pods, with its path. Such a value has a field with a pod spec.
/// Some kinds keep the metadata in the pod spec, so the value can also be the pod spec itself. Returns at most twice
/// [`SPECS`] values.
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

/// The maximum number of pod specs that [`specs`] collects from one manifest. The guard accepts only `SPECS - 1` pod
/// specs, so this number is enough to detect a manifest with too many pod specs.
pub(crate) const SPECS: usize = 17;

/// The maximum number of characters of a name in a path.
const NAME: usize = 64;

/// Finds the pod specs in a value at any depth, with their paths. Returns at most [`SPECS`] pod specs. If `within` is
/// true, also searches inside of pod specs, although Kubernetes expects no pod specs there.
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

/// Calls `seen` with every object in a value and the object's path, outer objects first. Continues inside of an object
/// only if `seen` returns true.
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

/// Returns whether a value looks like a pod spec: it has a list of containers.
pub(crate) fn is_spec(value: &Value) -> bool {
    CONTAINERS.iter().any(|list| value.get(*list).is_some_and(Value::is_array))
}

/// The lists of containers in a pod spec.
pub(crate) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Returns every container of a pod spec, with its path in the spec.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    CONTAINERS.into_iter().flat_map(|list| {
        let items = spec[list].as_array().into_iter().flatten();
        items.enumerate().map(move |(i, container)| (format!("{list}[{i}]"), container))
    })
}
