//! Checks the variables of a container.

use super::{found::Findings, found::quoted, manifest_value::ManifestValue, quantity};

/// The pod fields from which a variable can take its value.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The pod fields that a file of a volume can contain.
const FILE_FIELDS: [&str; 5] =
    ["metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
];
const SOURCES: [&str; 5] = ["secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef"];

/// Checks `env` and `envFrom` of a container.
pub(super) fn check(container: &ManifestValue<'_>, found: &mut Findings) {
    found.differ(&container.field("env"), &[("name", "")]);
    for variable in container.list("env") {
        let name = variable.field("name");
        if found.needs(&name, "the variable's name") {
            is_printable(&name, "the name of a variable", found);
        }
        let from = variable.field("valueFrom");
        if from.is_there() {
            source(&from, !variable.text_of("value").is_empty(), found);
        }
    }
    for from in container.list("envFrom") {
        let prefix = from.field("prefix");
        if !prefix.text().is_empty() {
            is_printable(&prefix, "the beginning of a variable's name", found);
        }
        let references = [from.field("configMapRef"), from.field("secretRef")];
        let given: Vec<_> = references.iter().filter(|reference| reference.is_there()).collect();
        if given.len() != 1 {
            found.add(&from, "must have one of configMapRef and secretRef");
        }
        for reference in given {
            let name = reference.field("name");
            if found.needs(&name, "the object's name") {
                // Kubernetes accepts a hyphen at the end of this name.
                let text = name.text().strip_suffix('-').unwrap_or(name.text());
                if !crate::names::is_subdomain(text) {
                    found.name(&name);
                }
            }
        }
    }
}

fn is_printable(name: &ManifestValue<'_>, what: &str, found: &mut Findings) {
    if !name.text().chars().all(|c| matches!(c, ' '..='~') && c != '=') {
        let text = quoted(name.text());
        found.add(name, format!("{text} is not {what}: write printable ASCII characters without `=`"));
    }
}

fn source(from: &ManifestValue<'_>, has_value: bool, found: &mut Findings) {
    let given = SOURCES.iter().filter(|source| from.field(source).is_there()).count();
    if given == 0 {
        let message = format!("must have one of {}", SOURCES.join(", "));
        found.add(from, format!("{message}; remove this field if the variable should be empty"));
    } else if has_value {
        found.add(from, "is present together with a value: remove one of the two");
    } else if given > 1 {
        found.add(from, "has more than one source: keep one");
    }
    for reference in [from.field("secretKeyRef"), from.field("configMapKeyRef")] {
        if reference.is_there() {
            key_of(&reference, found);
        }
    }
    let field = from.field("fieldRef");
    if field.is_there() {
        pod_field(&field, &FIELDS, found);
    }
    let resource = from.field("resourceFieldRef");
    if resource.is_there() {
        pod_resource(&resource, false, found);
    }
}

/// Checks a reference to a key of a Secret or `ConfigMap`.
fn key_of(reference: &ManifestValue<'_>, found: &mut Findings) {
    let (name, key) = (reference.field("name"), reference.field("key"));
    if found.needs(&name, "the object's name") {
        found.name(&name);
    }
    if found.needs(&key, "one of the object's keys") {
        found.data_key(&key, key.text());
    }
}

/// Checks a pod field that a volume writes to a file.
pub(super) fn file_field(at: &ManifestValue<'_>, found: &mut Findings) {
    pod_field(at, &FILE_FIELDS, found);
}

fn pod_field(at: &ManifestValue<'_>, fields: &[&str], found: &mut Findings) {
    let path = at.field("fieldPath");
    let version = at.field("apiVersion");
    if !version.text().is_empty() && version.text() != "v1" {
        return found.add(&version, "must be v1 or absent");
    }
    if !found.needs(&path, "the path of the field") {
        return;
    }
    // `spec.host` is an older name of `spec.nodeName` that still works.
    if path.text() == "spec.host" {
        return;
    }
    match path.text().strip_suffix(']').and_then(|text| text.split_once("['")) {
        Some((map @ ("metadata.annotations" | "metadata.labels"), key)) if key.ends_with('\'') => {
            let key = &key[..key.len() - 1];
            let key = if map == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            found.key(&path, &key);
        }
        _ if fields.contains(&path.text()) => {}
        _ => {
            let message = format!("{} cannot be used here: use one of {}", quoted(path.text()), fields.join(", "));
            found.add(&path, format!("{message}, or a label or an annotation as metadata.labels['<key>']"));
        }
    }
}

/// Checks a reference to a resource of a container.
pub(super) fn pod_resource(at: &ManifestValue<'_>, is_file: bool, found: &mut Findings) {
    if is_file && !found.needs(&at.field("containerName"), "the container's name") {
        return;
    }
    let resource = at.field("resource");
    if !found.needs(&resource, "the resource") {
        return;
    }
    let name = resource.text();
    let is_huge = name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
    if !is_huge && !RESOURCES.contains(&name) {
        found.add(&resource, format!("{} is not one of {}", quoted(name), RESOURCES.join(", ")));
    }
    divisor(&at.field("divisor"), matches!(name, "limits.cpu" | "requests.cpu"), found);
}

fn divisor(at: &ManifestValue<'_>, is_cpu: bool, found: &mut Findings) {
    const MEMORY: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let allowed = if is_cpu { &["1m", "1"][..] } else { &MEMORY[..] };
    if !at.is_there() {
        return;
    }
    let same = |text: &&str| quantity::amount(at.value()) == quantity::amount(&serde_json::Value::from(*text));
    match quantity::amount(at.value()) {
        Some(0) => {}
        Some(_) if allowed.iter().any(same) => {}
        _ => found.add(at, format!("must be one of {}", allowed.join(", "))),
    }
}
